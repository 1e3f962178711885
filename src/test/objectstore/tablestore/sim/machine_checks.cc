// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <algorithm>
#include <cstring>

#include "include/stringify.h"
#include "test/objectstore/tablestore/sim/machine_record.h"

namespace tablestore_sim {

using tablestore::Family;

uint64_t Machine::recovered_lsn()
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

State Machine::state_at(uint64_t lsn) const
{
  State state = floor_state;
  std::vector<RecordRef> order;
  for (const auto& record : submitted) {
    if (record->txn->lsn() && record->txn->lsn() <= lsn)
      order.push_back(record);
  }
  std::ranges::sort(order, {}, [](const auto& r) { return r->txn->lsn(); });
  for (const auto& record : order)
    state.apply(record->change);
  return state;
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

void Machine::check_recovered(const Machine& before, const Snapshot& crashed, bool lied)
{
  before.check_order();
  const uint64_t lsn = recovered_lsn();
  if (lsn < crashed.acknowledged_lsn && !lied)
    throw Failure{"transaction " + std::to_string(crashed.acknowledged_lsn) +
                  " was acknowledged, the store ends with " + std::to_string(lsn)};
  State state = before.state_at(lsn);
  Comparison compare(*store, lied);
  if (std::string d = compare.all(state); !d.empty())
    throw Failure{"after recovery up to transaction " + std::to_string(lsn) + ": " + d};
  eios += compare.errors();
  become(std::move(state), lsn);
}

void Machine::check_some(Random& chance, bool may_fail)
{
  const auto& collections = latest_state.collections;
  const auto& [cid, bits] = *std::next(collections.begin(), chance() % collections.size());
  Comparison compare(*store, may_fail);
  for (int n = 0; n < 4; ++n) {
    const auto all = possible_objects(cid, bits);
    const ghobject_t& oid = all[chance() % all.size()];
    const auto p = latest_state.objects.find(oid);
    const Object* expected = p == latest_state.objects.end() ? nullptr : p->second.get();
    if (std::string d = compare.object(cid, oid, expected); !d.empty())
      throw Failure{"with transactions in flight: " + d};
  }
  eios += compare.errors();
}

void Machine::check_live(bool lied, bool unclean)
{
  const Faults faults = sim_disk->set_faults({});
  check_order();
  Comparison compare(*store, lied);
  std::string d = compare.all(state_at(UINT64_MAX));
  eios += compare.errors();
  if (d.empty() && !lied && !unclean) {
    engine().drain();
    d = compare.space(latest_state);
    if (const int errors = d.empty() ? store->parts().check({.deep = true}) : 0; errors != 0)
      d = "fsck = " + std::to_string(errors);
  }
  sim_disk->set_faults(faults);
  if (!d.empty())
    throw Failure{"of a running store: " + d};
}

}  // namespace tablestore_sim
