// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <string>

#include "include/common_fwd.h"
#include "os/tablestore/engine/own_threads.h"
#include "os/tablestore/home/surroundings.h"

namespace tablestore {

/// The files of the OSD's data directory, and threads of its process.
class OsdSurroundings : public Surroundings {
 public:
  OsdSurroundings(CephContext* cct, std::string path) : cct(cct), path(std::move(path)) {}

  Result<std::shared_ptr<Disk>> open_disk(bool for_reading) override;
  Threads& threads() override { return *own_threads; }
  void adjust(EngineOptions& options) override;

 private:
  CephContext* const cct;
  const std::string path;
  const std::shared_ptr<Threads> own_threads = std::make_shared<OwnThreads>();
};

}  // namespace tablestore
