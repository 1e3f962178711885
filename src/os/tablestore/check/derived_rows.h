// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>

#include "os/tablestore/engine/engine.h"

namespace tablestore {

/// What rows about the store as a whole say that follows from the rows of its objects: for where
/// they are damaged or missing.
struct DerivedRows {
  uint64_t nid_max = 0;        ///< the highest number in use, also in rows that belong to nothing
  uint64_t inline_bytes = 0;   ///< of the largest object with inline data
};

/// Reads the rows of all objects, and is slow in a large store. EIO where they cannot be read; a
/// single row that is damaged is left out.
Result<DerivedRows> derive_rows(Engine& engine);

}  // namespace tablestore
