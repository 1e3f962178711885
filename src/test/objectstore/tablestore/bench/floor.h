// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// The least that a durable write, or a read from the disk, takes on this file system: no store at
// all.
#pragma once

#include <vector>

#include "test/objectstore/tablestore/bench/client.h"

namespace store_bench {

inline constexpr char floor_store[] = "raw", first_touch_floor[] = "raw-thin";   ///< --store

/// `raw`: at random places of a file in --dir that was written before: one write of --size and one
/// flush at a time, and the same with the flush asked for by the write itself; where there is
/// io_uring, also that write and one of a block elsewhere, both under way at once, and one flush:
/// the least for a store that puts data in their place and a record of them into a log. With more
/// --depth, what a perfect group commit would do: one write for all operations in flight, and one
/// flush.
/// `raw-thin`: the first of these, or with more --depth the last, at places that are allocated and
/// were never written to, in order: what a store pays whose file system first learns of each
/// write that there are data now.
///
/// `raw` with the workload "read": --depth threads that read a file of written blocks, without
/// verifying what they read. No place comes twice, and nothing of it is in memory.
std::vector<PhaseResult> measure_floor(const Options& options);

}  // namespace store_bench
