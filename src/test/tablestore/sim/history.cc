#include "test/tablestore/sim/history.h"

#include "test/tablestore/sim/run.h"

namespace tablestore::sim {

namespace {

constexpr unsigned step_kinds = 17;
// By kind, in the order of Step::Kind.
constexpr const char* names[step_kinds] = {
    "transaction", "abandon", "commit", "drain", "checkpoint", "prepare", "shrink",
    "compact", "fill_disk", "faults", "rot", "crash", "close", "bulk", "requested", "huge", "read"};
constexpr unsigned common[step_kinds] = {45, 2, 25, 4, 3, 3, 3, 1, 2, 3, 1, 8, 1, 1, 6, 0, 4};
// The log fills up, and few crashes stop it.
constexpr unsigned filling[step_kinds] = {30, 2, 30, 4, 0, 2, 2, 1, 1, 2, 1, 3, 0, 25, 0, 0, 2};
// Containers come and go.
constexpr unsigned swelling[step_kinds] = {6, 1, 30, 10, 2, 3, 12, 1, 1, 1, 1, 2, 0, 0, 6, 30, 2};

std::span<const unsigned> weights(uint64_t seed) {
  return seed % 4 == 2 ? filling : seed % 8 == 3 ? swelling : common;
}

void choose_base(uint64_t seed, HistoryOptions* options) {
  options->provisioned = seed % 3 == 0;
  options->wrapped = seed % 2 && !options->provisioned;
  options->remapped = seed % 16 == 9;
}

std::unique_ptr<HistoryRun> begin(const HistoryOptions& options) {
  return std::make_unique<Run>(options);
}

}  // namespace

const Histories histories{"the engine", names, weights, choose_base, begin};

}  // namespace tablestore::sim
