// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <algorithm>
#include <cstring>

#include "include/stringify.h"
#include "os/tablestore/rows/keys.h"
#include "test/objectstore/tablestore/sim/machine_record.h"
#include "test/tablestore/sim/damage_bounds.h"

namespace tablestore_sim {

using tablestore::Family;

uint64_t Machine::recovered_lsn()
{
  engine().drain();
  return applied_lsn() - engine().counters().transactions;
}

uint64_t Machine::applied_lsn()
{
  std::string row;
  auto found = engine().get(Family::super, std::string("\0applied", 8), &row);
  if (!found.ok())
    throw Unreadable{"the last transaction: " + found.status().what()};
  uint64_t lsn = 0;
  if (*found)
    std::memcpy(&lsn, row.data(), sizeof(lsn));
  return lsn;
}

std::vector<Machine::RecordRef> Machine::records_until(uint64_t lsn) const
{
  std::vector<RecordRef> order;
  for (const auto& record : submitted) {
    if (record->txn->lsn() && record->txn->lsn() <= lsn)
      order.push_back(record);
  }
  std::ranges::sort(order, {}, [](const auto& r) { return r->txn->lsn(); });
  return order;
}

State Machine::state_at(uint64_t lsn) const
{
  State state = floor_state;
  for (const auto& record : records_until(lsn))
    state.apply(record->change);
  return state;
}

std::set<ghobject_t> Machine::doubtful_at(uint64_t lsn) const
{
  std::set<ghobject_t> found = floor_doubtful;
  for (const auto& record : records_until(lsn))
    record->add_doubts(&found);
  return found;
}

bool Machine::may_find_more_in_removed()
{
  if (last_removed.empty())
    return false;
  // It has to be while one looks whether it is empty.
  if (sim_disk->refused().reads > refused_before_last ||
      !damaged_table_files(sim_disk->image()).empty())
    return true;
  return std::any_of(last_removed.begin(), last_removed.end(), [this](const auto& removed) {
    const auto in_it = [&removed](const ghobject_t& oid) {
      return belongs(oid, removed.first, removed.second);
    };
    return std::any_of(known.doubtful.begin(), known.doubtful.end(), in_it) ||
        std::any_of(last_doubtful.begin(), last_doubtful.end(), in_it);
  });
}

void Machine::check_order() const
{
  // In the order of submission; UINT64_MAX: one that is in no group yet.
  std::map<std::string, uint64_t> last;
  for (const auto& record : submitted) {
    const uint64_t lsn = record->txn->lsn() ? record->txn->lsn() : UINT64_MAX;
    std::vector<std::string> chains{"handle " + stringify(record->through)};
    for (const coll_t& cid : record->touched)
      chains.push_back("collection " + stringify(cid));
    for (const std::string& chain : chains) {
      if (lsn < last[chain])
        throw Failure{"transaction " + std::to_string(lsn) + " of " + chain +
                      " has overtaken one that was queued before"};
      last[chain] = lsn;
    }
  }
}

void Machine::check_callbacks() const
{
  for (const auto& record : submitted) {
    for (unsigned kind : {Callback::commit, Callback::applied, Callback::applied_sync}) {
      if (record->calls[kind] != 1)
        throw Failure{"a callback of transaction " + std::to_string(record->txn->lsn()) +
                      " has run " + std::to_string(record->calls[kind]) + " times"};
    }
  }
}

void Machine::check_recovered(const Machine& before, uint64_t least_lsn, bool mounts_crashed)
{
  before.check_order();
  const uint64_t lsn = recovered_lsn();
  if (lsn < least_lsn)
    throw Failure{"transaction " + std::to_string(least_lsn) +
                  " was acknowledged, the store ends with " + std::to_string(lsn)};
  known = before.known;
  const uint64_t lowest =
    mounts_crashed ? std::min(lsn, std::max(least_lsn, before.floor_at)) : lsn;
  std::string difference;
  for (uint64_t last = lsn + 1; last-- > lowest;) {
    State state = before.state_at(last);
    known.doubtful = before.doubtful_at(last);
    Comparison compare(*store, damage(state), false);
    const std::string d = compare.all(state);
    if (difference.empty())
      difference = d;
    if (!d.empty())
      continue;
    eios += compare.errors();
    return become(std::move(state), lsn);
  }
  throw Failure{"after recovery up to transaction " + std::to_string(lsn) + ": " + difference};
}

void Machine::check_some(Random& chance, bool may_fail)
{
  const auto& collections = latest_state.collections;
  const auto& [cid, bits] = *std::next(collections.begin(), chance() % collections.size());
  for (int n = 0; n < 4; ++n) {
    // What completes meanwhile may be damaged.
    Comparison compare(*store, damage(latest_state), may_fail);
    const auto all = possible_objects(cid, bits);
    const ghobject_t& oid = all[chance() % all.size()];
    const auto p = latest_state.objects.find(oid);
    const Object* expected = p == latest_state.objects.end() ? nullptr : p->second.get();
    if (std::string d = compare.object(cid, oid, expected); !d.empty())
      throw Failure{"with transactions in flight: " + d};
    eios += compare.errors();
  }
}

void Machine::check_live(bool unclean)
{
  const Faults faults = sim_disk->set_faults({});
  check_order();
  if (!sim_disk->misuse().empty())
    throw Failure{"the disk is not used as it wants to be: " + sim_disk->misuse()};
  const State state = state_at(UINT64_MAX);
  Comparison compare(*store, damage(state), false);
  std::string d = compare.all(state);
  eios += compare.errors();
  if (d.empty() && !unclean && is_whole()) {
    engine().drain();
    run_callbacks();
    check_callbacks();
    d = compare.space(latest_state);
    // Of a damaged table fsck says that, also where nothing is lost that anybody has.
    const bool may_find = !damaged_table_files(sim_disk->image()).empty();
    if (const int errors = d.empty() ? store->parts().check({.deep = true}) : 0;
        errors != 0 && !may_find)
      d = "fsck = " + std::to_string(errors);
  }
  sim_disk->set_faults(faults);
  if (!d.empty())
    throw Failure{"of a running store: " + d};
}

void Machine::scrub()
{
  // What is on its way to the disk is read from memory, and what is there is replaced by it.
  engine().drain();
  run_callbacks();
  Comparison compare(*store, damage(latest_state), false);
  compare.scrub();
  if (std::string d = compare.all(latest_state); !d.empty())
    throw Failure{"in a scrub: " + d};
  eios += compare.errors();
}

// ---- damage

Damage Machine::damage(const State& state)
{
  Damage found = known;
  const DiskImage image = sim_disk->image();
  if (!image.is_damaged() && !image.lost_promises())
    return found;
  found.data = damaged_data(image);
  const auto files = damaged_table_files(image);
  if (files.empty() && !image.lost_promises())
    return found;
  LostKeys lost;
  const auto damaged = engine().find_table_damage();
  if (!damaged.ok()) throw Failure{damaged.status().what()};
  for (const auto& file : *damaged) {
    // After some reads that failed a file is taken for damaged.
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    if (!files.contains(name) && !tablestore::sim::lost_table_file(image, name) &&
        sim_disk->refused().reads == 0)
      throw Failure{"the store takes " + file.path + " for damaged, which is not: " + file.why};
    lost.add(file);
  }
  found.own_rows |= lost.of(Family::super);
  const auto [first_map, end_of_maps] = tablestore::reference_maps_range();
  found.reference_maps = lost.any(Family::super, first_map, end_of_maps);
  const auto [first_copy, end_of_copies] = tablestore::all_copies_range();
  found.both_copies = lost.any(Family::super, "C", "N") &&
      lost.any(Family::object, first_copy, end_of_copies);
  for (const auto& [cid, bits] : state.collections) {
    // Those that are there, and those that were or will be.
    const auto possible = possible_objects(cid, bits);
    const auto there = state.objects_of(cid);
    std::set<ghobject_t> all(possible.begin(), possible.end());
    all.insert(there.begin(), there.end());
    for (const ghobject_t& oid : all) {
      if (const unsigned rows = lost.empty() ? 0 : lost_rows(*store, cid, oid, lost))
        found.rows[oid] |= rows;
    }
  }
  return found;
}

void Machine::note_salvage(const Damage& before)
{
  known.rows = before.rows;
  known.salvaged = true;
}

void Machine::forget_damage()
{
  known = {};
  floor_doubtful.clear();
  for (const auto& record : submitted)
    record->doubtful.clear();
  if (store->parts().lost_names.any()) {
    store->parts().lost_names.settle();
    run_callbacks();
  }
}

bool Machine::may_be_hit() const
{
  return sim_disk->is_damaged() || !known.changed.empty() || !known.spoilt.empty() ||
      !known.rows.empty() || !known.doubtful.empty();
}

bool Machine::is_whole()
{
  if (!may_be_hit())
    return true;
  const Damage now = damage(latest_state);
  return now.rows.empty() && !now.own_rows && now.spoilt.empty() && now.changed.empty() &&
      now.doubtful.empty() && objects_not_whole().empty();
}

bool Machine::died_of_own_state()
{
  const Damage now = damage(latest_state);
  if (!cut_short)
    return false;
  const bool reads_failed = sim_disk->refused().reads > 0;
  return std::ranges::any_of(cut_short->named, [&](const ghobject_t& oid) {
    const bool is_own = oid.is_pgmeta() || oid.hobj.pool == -1;
    return is_own && (reads_failed || now.reference_maps || now.rows.contains(oid));
  });
}

bool Machine::decay(Random& chance)
{
  std::vector<Damage::Block> blocks;
  for (const auto& [container, owned] : engine().owned_blocks()) {
    for (uint32_t b = owned.next_set(0); b < owned.blocks(); b = owned.next_set(b + 1))
      blocks.push_back({container, b});
  }
  if (blocks.empty())
    return false;
  const auto [container, block] = blocks[chance() % blocks.size()];
  const uint64_t bit = chance();
  bool done = false;
  sim_disk->change([&](DiskImage* image) {
    for (const auto& [path, id] : image->names()) {
      if (!path.starts_with("containers/") || !path.ends_with("/" + std::to_string(container)))
        continue;
      const bool at_rest = image->inode(id).pending.empty();
      done = at_rest && image->rot(id, block, bit);
      return;
    }
  });
  return done;
}

std::optional<Machine::DamagedRow> Machine::decay_row(Random& chance)
{
  std::vector<std::pair<coll_t, ghobject_t>> objects;
  for (const auto& [cid, bits] : latest_state.collections) {
    for (const ghobject_t& oid : latest_state.objects_of(cid)) {
      if (!oid.is_pgmeta())
        objects.emplace_back(cid, oid);
    }
  }
  if (objects.empty())
    return std::nullopt;
  const auto& [cid, oid] = objects[chance() % objects.size()];
  std::string row;
  const auto found = engine().get(Family::object, tablestore::onode_key(oid), &row);
  if (!found.ok() || !*found)
    throw Failure{stringify(oid) + " has no row, though all is applied"};
  row[chance() % row.size()] ^= char(1 << chance() % 8);
  known.spoilt.insert(oid);
  auto txn = std::make_shared<tablestore::Txn>();
  txn->barrier = true;
  txn->put(Family::object, tablestore::onode_key(oid), row);
  engine().submit(txn);
  engine().drain();
  run_callbacks();
  acknowledged_lsn = std::max(acknowledged_lsn, txn->lsn());
  tablestore().flush_cache(nullptr);   // it is read anew
  return DamagedRow{cid, oid};
}

std::set<std::pair<coll_t, ghobject_t>> Machine::objects_not_whole()
{
  const Damage now = damage(latest_state);
  Comparison compare(*store, now, false);
  if (std::string d = compare.all(latest_state); !d.empty())
    throw Failure{"of a damaged store: " + d};
  auto found = compare.not_whole();
  for (const auto& [cid, bits] : latest_state.collections) {
    for (const ghobject_t& oid : latest_state.objects_of(cid)) {
      // Data may be in a cache, and marks are for those who read them.
      if (damaged_blocks(*store, cid, oid, now.data).any())
        found.emplace(cid, oid);
    }
  }
  return found;
}

int Machine::change_damaged(Random& chance)
{
  const auto hit = objects_not_whole();
  if (hit.empty())
    return 0;
  const auto& [cid, oid] = *std::next(hit.begin(), chance() % hit.size());
  const auto p = latest_state.objects.find(oid);
  if (p == latest_state.objects.end())
    return 0;
  const DamagedBlocks blocks = damaged_blocks(*store, cid, oid, damage(latest_state).data);
  const uint64_t size = p->second->data.size();
  std::vector<uint64_t> offsets;
  for (uint64_t at = 0; at < size; at += tablestore::block_bytes) {
    if (blocks.at(at / tablestore::block_bytes))
      offsets.push_back(at);
  }
  if (offsets.empty())   // its rows are hit
    return 0;
  TransactionMaker maker(latest_state, (floor_at + 1) * 4096 + submitted.size());
  maker.change_in_block(cid, oid, offsets[chance() % offsets.size()]);
  return maker.empty() ? 0 : queue(maker, cid);
}

int Machine::replace(const coll_t& cid, const ghobject_t& oid, bool anew)
{
  TransactionMaker maker(latest_state, (floor_at + 1) * 4096 + submitted.size());
  maker.replace(cid, oid, anew);
  const int r = queue(maker, cid);
  if (r == 0) {
    commit_all();
    apply();
    known.rows.erase(oid);   // this is known again
  }
  return r;
}

}  // namespace tablestore_sim
