// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <vector>

#include "os/Transaction.h"

namespace tablestore {

/// What must be known of transactions before the first change is made: which collections to lock,
/// how much space to reserve, what to take from the throttle.
struct TxnScan {
  uint64_t ops = 0;
  uint64_t bytes = 0;             ///< that the transactions hold, and the data that they write
  uint64_t written_bytes = 0;     ///< of OP_WRITE
  uint64_t reservation = 0;       ///< upper bound of the container space that they take
  uint64_t row_bytes = 0;         ///< what they put into the table, about; not what they clone
  bool removes = false;           ///< objects, or parts of them
  bool removes_rows = false;      ///< keys or attributes, beside what else it does
  bool changes_collections = false;
  /// They change objects of the meta collection and of others, and nothing but that: these have
  /// nothing to do with each other, so that those of the meta collection can come last.
  bool meta_can_wait = false;
  std::vector<coll_t> cids;       ///< sorted, each once
  /// Of each transaction, before its first operation. They hold the names of its objects, which are
  /// not cheap to copy: made once, here.
  std::vector<ceph::os::Transaction::iterator> begins;
};

/// A copy for who needs operations only.
ceph::os::Transaction::iterator without_names(ceph::os::Transaction::iterator& i);

/// `inline_bound_bytes`: how large inline data can be, which a change may have to move to a
/// container.
TxnScan scan_transactions(std::vector<ceph::os::Transaction>& tls, uint64_t inline_bound_bytes);

}  // namespace tablestore
