// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What is damaged can be repaired, removed and replaced; then all is as if it never had been.
#pragma once

#include "test/objectstore/tablestore/sim/machine.h"

namespace tablestore_sim {

/// Of a store that is mounted and has nothing queued; it is mounted again afterwards. Throws
/// Failure where something of that cannot be done.
class Healing {
 public:
  Healing(Machine& machine, Random& random) : machine(machine), random(random) {}

  /// False: the store is refused, as it may be.
  bool heal();
  /// Removes what is damaged, or writes it anew.
  void replace(const coll_t& cid, const ghobject_t& oid);
  /// Reads that failed may have left blocks that nothing owns, and counts that are wrong.
  void repair();

  uint64_t repairs() const { return repairs_made; }
  /// A repair has left nothing to be repaired.
  bool is_clean() const { return clean; }

 private:
  /// What repair cannot bring back it gives up, and nothing else. False: it is refused, as it may
  /// be.
  bool salvage(const Damage& damage);

  Machine& machine;
  Random& random;
  uint64_t repairs_made = 0;
  bool clean = false;
};

}  // namespace tablestore_sim
