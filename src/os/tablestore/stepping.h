// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include "os/tablestore/TableStore.h"
#include "os/tablestore/engine/stepping.h"

namespace tablestore {

/// The work of a mounted store without threads (StoreSeams::stepped), one step at a time.
class StoreStepper {
 public:
  explicit StoreStepper(TableStore& store) : store(store) {}

  Engine& engine() { return *store.engine; }
  EngineStepper lane() { return EngineStepper(*store.engine); }
  /// What the store does once a second.
  void tick() { store.tick(); }
  /// fsck without umount, while nobody else uses the store: the number of errors, or -EIO.
  int fsck(bool deep) { return store.check_rows(deep, false); }

 private:
  TableStore& store;
};

}  // namespace tablestore
