#include "test/tablestore/sim/history.h"

#include <algorithm>
#include <cstdlib>

#include "test/tablestore/sim/run.h"

namespace tablestore::sim {

namespace {
constexpr const char* step_names[step_kinds] = {
    "transaction", "abandon", "commit", "drain", "checkpoint", "prepare", "shrink",
    "compact", "fill_disk", "faults", "rot", "crash", "close", "bulk", "requested", "huge", "read"};
}  // namespace

HistoryResult& HistoryResult::operator+=(const HistoryResult& other) {
  static constexpr uint64_t HistoryResult::* sums[] = {
      &HistoryResult::crashes,       &HistoryResult::ios,         &HistoryResult::transactions,
      &HistoryResult::died,          &HistoryResult::refused,     &HistoryResult::damaged_reads,
      &HistoryResult::late_writes,   &HistoryResult::short_reads, &HistoryResult::no_spaces,
      &HistoryResult::full_logs,     &HistoryResult::checkpoints, &HistoryResult::prepared,
      &HistoryResult::punched,       &HistoryResult::created,     &HistoryResult::removed,
      &HistoryResult::reclassed};
  for (const auto sum : sums) this->*sum += other.*sum;
  for (unsigned m = 0; m < moments; ++m) crashes_while[m] += other.crashes_while[m];
  return *this;
}

std::string to_string(const Step& step) {
  return std::string(step_names[unsigned(step.kind)]) + ":" + std::to_string(step.seed);
}

std::optional<Step> parse_step(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  for (unsigned kind = 0; kind < step_kinds; ++kind)
    if (text.compare(0, colon, step_names[kind]) == 0)
      return Step{Step::Kind(kind), std::strtoull(text.c_str() + colon + 1, nullptr, 10)};
  return std::nullopt;
}

void choose_base(uint64_t seed, HistoryOptions* options) {
  options->provisioned = seed % 3 == 0;
  options->wrapped = seed % 2 && !options->provisioned;
}

std::vector<Step> make_history(uint64_t seed, const HistoryOptions& options) {
  // How often, by kind, in the order of Step::Kind.
  static constexpr unsigned common[step_kinds] = {45, 2, 25, 4, 3, 3, 3, 1, 2,
                                                  3,  1, 8,  1, 1, 6, 0, 4};
  // The log fills up, and few crashes stop it.
  static constexpr unsigned filling[step_kinds] = {30, 2, 30, 4, 0, 2,  2, 1, 1,
                                                   2,  1, 3,  0, 25, 0, 0, 2};
  // Containers come and go.
  static constexpr unsigned swelling[step_kinds] = {6, 1, 30, 10, 2, 3, 12, 1,  1,
                                                    1, 1, 2,  0,  0, 6, 30, 2};
  const auto& weights = seed % 4 == 2 ? filling : seed % 8 == 3 ? swelling : common;
  Random random(seed);
  unsigned sum = 0;
  for (unsigned w : weights) sum += w;
  std::vector<Step> steps;
  while (steps.size() < options.steps) {
    unsigned pick = unsigned(random() % sum), kind = 0;
    while (pick >= weights[kind]) pick -= weights[kind++];
    steps.push_back({Step::Kind(kind), random()});
  }
  return steps;
}

HistoryResult run_history(const std::vector<Step>& steps, const HistoryOptions& options) {
  Run run(options);
  size_t at = 0;
  try {
    for (; at < steps.size() && !run.over(); ++at) run.step(steps[at]);
    run.finish();
  } catch (const Failure& f) {
    run.result().failure = f.what;
  } catch (const Died& d) {
    run.result().failure = "the engine died: " + d.why;
  } catch (const Unreadable& u) {
    if (!run.lied()) run.result().failure = "a row cannot be read: " + u.what;
    ++run.result().refused;
  }
  if (!run.result().failure.empty() && at < steps.size())
    run.result().failure =
        "step " + std::to_string(at) + " (" + to_string(steps[at]) + "): " + run.result().failure;
  return run.result();
}

std::vector<Step> minimise(std::vector<Step> steps, const HistoryOptions& options) {
  for (size_t chunk = steps.size() / 2; chunk > 0;) {
    bool smaller = false;
    for (size_t at = 0; at < steps.size();) {
      std::vector<Step> fewer = steps;
      fewer.erase(fewer.begin() + ptrdiff_t(at),
                  fewer.begin() + ptrdiff_t(std::min(steps.size(), at + chunk)));
      if (!run_history(fewer, options).failure.empty()) {
        steps = std::move(fewer);
        smaller = true;
      } else {
        at += chunk;
      }
    }
    if (!smaller || chunk > steps.size()) chunk /= 2;
  }
  return steps;
}

}  // namespace tablestore::sim
