// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// Another disk's flush: all stores flush by fdatasync() or fsync(), and this program has its own.
#pragma once

#include <cstdint>
#include <optional>

namespace store_bench {

/// From here on a flush does not reach the disk, and takes so many microseconds: 0 as on a disk
/// with power-loss protection, 2000 as on one that is busy. Nullopt: the disk's own, as at first.
void imitate_flush(std::optional<uint64_t> microseconds);
/// fsync() and fdatasync() of this process that went to the kernel. Any thread.
uint64_t flushes_passed_on();
/// Those that did not.
uint64_t flushes_imitated();

}  // namespace store_bench
