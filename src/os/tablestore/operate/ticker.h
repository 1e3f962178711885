// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <functional>
#include <memory>

#include "common/ceph_mutex.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

/// Calls a function once a second, in a thread of its own, for as long as it lives.
class Ticker {
 public:
  Ticker(Threads& threads, std::function<void()> tick);
  ~Ticker();

 private:
  void run();

  const std::function<void()> tick;
  ceph::mutex mutex = ceph::make_mutex("TableStore::Ticker::mutex");
  ceph::condition_variable cond;
  bool stopping = false;
  std::unique_ptr<Worker> worker;
};

}  // namespace tablestore
