// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/history.h"

#include "test/objectstore/tablestore/sim/run.h"

namespace tablestore_sim {

namespace {

constexpr unsigned step_kinds = 29;
/// By kind, in the order of Step::Kind.
constexpr const char* names[step_kinds] = {
  "transaction", "across", "collections", "commit", "read", "drain", "flush_commit", "tick",
  "drop_caches", "checkpoint", "requested", "prepare", "shrink", "compact", "bulk", "fill_disk",
  "faults", "rot", "crash", "close", "fsck", "repair", "stumble", "apply", "scrub", "caches",
  "take_back", "decay", "empty"};
constexpr unsigned common[step_kinds] = {44, 4, 4, 24, 5, 4, 2, 5, 2, 3, 4, 3, 3, 1,
                                         1,  1, 1, 1,  9, 1, 1, 1, 1, 9, 1, 2, 0, 1, 5};
/// The log fills up, and few crashes stop it.
constexpr unsigned filling[step_kinds] = {30, 2, 2,  28, 2, 3, 2, 1, 1, 0, 0, 2,
                                          2,  1, 20, 1,  1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
/// Collections come and go.
constexpr unsigned moving[step_kinds] = {30, 10, 25, 24, 4, 3, 3, 1, 2, 2, 4, 1,
                                         1,  1,  1,  0,  1, 0, 9, 2, 1, 0, 2, 9, 1, 3, 0, 1, 5};
/// The same with transactions that fail and are taken back, which no OSD does.
constexpr unsigned failing[step_kinds] = {30, 10, 25, 24, 4, 3, 3, 3, 2, 2, 4, 1, 1, 1,
                                          1,  0,  1,  0,  4, 2, 1, 0, 9, 6, 1, 2, 9, 0, 2};

std::span<const unsigned> weights(uint64_t seed)
{
  if (seed % 8 == 7)
    return failing;
  return seed % 4 == 2 ? filling : seed % 4 == 3 ? moving : common;
}

void choose_base(uint64_t seed, HistoryOptions* options)
{
  options->wrapped = seed % 2;
  options->remapped = seed % 16 == 9;
}

std::unique_ptr<tablestore::sim::HistoryRun> begin(const HistoryOptions& options)
{
  return std::make_unique<Run>(options);
}

}  // namespace

const tablestore::sim::Histories histories{"the store", names, weights, choose_base, begin};

}  // namespace tablestore_sim
