// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <atomic>
#include <list>
#include <string>
#include <string_view>

#include "common/ceph_mutex.h"
#include "os/tablestore/collection/op_sequencer.h"

namespace tablestore {

/// Ranges of Family::object that queued transactions erase without knowing what was in them,
/// because nobody could read it. No onode in memory stands for these rows, and the table has them
/// until the transaction is applied, which on a full file system may take for ever. Until then
/// there is nothing in such a range but what has an onode in memory.
///
/// Thread-safe; the mutex guards the list.
class ErasedRows {
 public:
  /// The rows of [first, last), by the transaction with that mark. Under the lock of the collection
  /// that they were in.
  void add(std::string first, std::string last, TxnMark mark);
  /// Whether such a range has this key: asked before the table is.
  bool has(std::string_view key);

 private:
  struct Range {
    std::string first, last;
    TxnMark mark;
  };
  std::atomic<bool> any{false};
  ceph::mutex mutex = ceph::make_mutex("TableStore::ErasedRows::mutex");
  std::list<Range> ranges;
};

}  // namespace tablestore
