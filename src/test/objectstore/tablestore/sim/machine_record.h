// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What a machine keeps of each transaction. For machine*.cc.
#pragma once

#include <array>

#include "test/objectstore/tablestore/sim/machine.h"

namespace tablestore_sim {

/// Deleted by complete(), or by the machine when its process ends before that.
class Machine::Callback : public Context {
 public:
  enum Kind { commit, applied, applied_sync, after, kinds };

  Callback(Machine& machine, RecordRef record, unsigned kind);
  ~Callback() override;
  void finish(int r) override;

 private:
  Machine& machine;
  const RecordRef record;
  const unsigned kind;
};

struct Machine::Record {
  coll_t through;                        ///< queued by its handle
  std::set<coll_t> touched;
  Change change;
  std::vector<ghobject_t> named;         ///< by its ops, whether they are there or not
  std::set<ghobject_t> doubtful;         ///< Damage::doubtful by this
  std::shared_ptr<const tablestore::Txn> txn;
  std::array<unsigned, Callback::kinds> calls{};

  /// What it changes for good is not in doubt any more.
  void add_doubts(std::set<ghobject_t>* all) const
  {
    all->insert(doubtful.begin(), doubtful.end());
    for (const auto& [oid, object] : change.objects)
      all->erase(oid);
  }
};

}  // namespace tablestore_sim
