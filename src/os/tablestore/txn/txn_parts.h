// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "include/common_fwd.h"

namespace tablestore {

class Collections;
class DamagedObjects;
class Engine;
class ErasedRows;
class ErrorInjection;
class LostNames;
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
  DamagedObjects& damaged;
  ErasedRows& erased;
  LostNames& lost_names;
  ceph::common::PerfCounters& logger;
  /// How often rows that cannot be read are read again before they are given up for good, with time
  /// in between. Where no time passes: 0.
  unsigned rereads_before_loss;
};

}  // namespace tablestore
