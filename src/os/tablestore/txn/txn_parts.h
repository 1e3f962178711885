// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "include/common_fwd.h"

namespace tablestore {

class Collections;
class Engine;
class ErrorInjection;
class NidAllocator;
class ObjectData;
class Objects;
class OnodeCache;
class PoolTotals;
class ReferenceMaps;

/// What a transaction works on.
struct TxnParts {
  CephContext* cct;
  Engine& engine;
  Collections& collections;
  Objects& objects;
  OnodeCache& onodes;
  ObjectData& data;
  ReferenceMaps& reference_maps;
  NidAllocator& nids;
  PoolTotals& pools;
  ErrorInjection& injected;
  ceph::common::PerfCounters& logger;
};

}  // namespace tablestore
