// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/healing.h"

namespace tablestore_sim {

bool Healing::heal()
{
  if (!machine.may_be_hit())
    return true;
  const Damage damage = machine.damage(machine.latest());
  // Of a damaged file a repair says that, also where it held nothing that anybody has.
  const bool rows_lost = damage.own_rows || !damage.rows.empty() ||
      !damaged_table_files(machine.disk().image()).empty();
  if ((rows_lost || random() % 3 == 0) && !salvage(damage))
    return false;
  for (const auto& [cid, oid] : machine.objects_not_whole())
    replace(cid, oid);
  if (rows_lost) {   // what is known again stays so
    repair();
    machine.check_live(true);
  }
  machine.forget_damage();
  if (rows_lost)   // nobody knew which blocks and rows were those of what was lost
    repair();
  return true;
}

bool Healing::salvage(const Damage& damage)
{
  machine.disk().set_other_bytes(0);   // it needs some room
  machine.umount();
  const int left = machine.repair();
  const int r = left < 0 ? left : machine.mount();
  if (r < 0 && !damage.both_copies)
    throw Failure{"a damaged store cannot be repaired: " + std::to_string(r)};
  if (r < 0)
    return false;
  ++repairs_made;
  machine.note_salvage(damage);
  machine.check_live(true);
  return true;
}

void Healing::replace(const coll_t& cid, const ghobject_t& oid)
{
  machine.disk().set_other_bytes(0);   // who replaces an object waits for space where there is none
  try {
    if (int r = machine.replace(cid, oid, random() % 2); r < 0)
      throw Failure{"a damaged object cannot be replaced: " + std::to_string(r)};
  } catch (const Died& d) {
    throw Failure{"the store dies when a damaged object is replaced: " + d.why};
  }
}

void Healing::repair()
{
  machine.disk().set_other_bytes(0);   // it needs some room
  machine.umount();
  if (const int left = machine.repair(); left != 0)
    throw Failure{"repair = " + std::to_string(left)};
  if (const int r = machine.mount(); r < 0)
    throw Failure{"mount after repair = " + std::to_string(r)};
  ++repairs_made;
  clean = true;
}

}  // namespace tablestore_sim
