// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "common/Throttle.h"
#include "include/mempool.h"
#include "os/tablestore/home/options.h"

namespace tablestore {

/// How many transactions, and how many bytes of them, wait to become durable: no more than the
/// options say. Thread-safe.
class TxnThrottle {
 public:
  TxnThrottle(CephContext* cct, const StoreOptions& options)
    : options(options),
      bytes(cct, "tablestore_throttle_bytes", options.throttle_bytes, false),
      ops(cct, "tablestore_throttle_ops", options.throttle_ops, false)
  {
  }
  /// What an end without an umount leaves queued.
  ~TxnThrottle()
  {
    pool().adjust_count(-ssize_t(ops.get_current()), -ssize_t(bytes.get_current()));
  }

  /// Waits until there is room.
  void get(uint64_t get_ops, uint64_t get_bytes)
  {
    follow(options.throttle_ops, ops);
    follow(options.throttle_bytes, bytes);
    ops.get(get_ops);
    bytes.get(get_bytes);
    pool().adjust_count(ssize_t(get_ops), ssize_t(get_bytes));
  }
  void put(uint64_t put_ops, uint64_t put_bytes)
  {
    pool().adjust_count(-ssize_t(put_ops), -ssize_t(put_bytes));
    bytes.put(put_bytes);
    ops.put(put_ops);
  }
  bool is_idle() const { return ops.get_current() == 0; }

 private:
  static mempool::pool_t& pool() { return mempool::get_pool(mempool::mempool_tablestore_txc); }
  /// Who waits already learns of a new limit with the next put().
  static void follow(uint64_t limit, Throttle& throttle)
  {
    if (uint64_t(throttle.get_max()) != limit)
      throttle.reset_max(limit);
  }

  const StoreOptions& options;
  Throttle bytes;
  Throttle ops;
};

}  // namespace tablestore
