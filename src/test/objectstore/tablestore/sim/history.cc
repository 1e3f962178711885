// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/sim/history.h"

#include <algorithm>
#include <cstdlib>

#include "test/objectstore/tablestore/sim/run.h"

namespace tablestore_sim {

namespace {

constexpr const char* step_names[step_kinds] = {
  "transaction", "across", "collections", "commit", "read", "drain", "flush_commit", "tick",
  "drop_caches", "checkpoint", "requested", "prepare", "shrink", "compact", "bulk", "fill_disk",
  "faults", "rot", "crash", "close", "fsck", "repair", "stumble"};

/// How often, by kind, in the order of Step::Kind.
constexpr unsigned common[step_kinds] = {44, 4, 4, 24, 5, 4, 2, 2, 2, 3, 4, 3,
                                         3,  1, 1, 1,  1, 1, 9, 1, 1, 1, 1};
/// The log fills up, and few crashes stop it.
constexpr unsigned filling[step_kinds] = {30, 2, 2,  28, 2, 3, 2, 1, 1, 0, 0, 2,
                                          2,  1, 20, 1,  1, 1, 3, 0, 0, 0, 0};
/// Collections come and go.
constexpr unsigned moving[step_kinds] = {30, 10, 25, 24, 4, 3, 3, 1, 2, 2, 4, 1,
                                         1,  1,  1,  0,  1, 0, 9, 2, 1, 0, 2};

}  // namespace

std::string to_string(const Step& step)
{
  return std::string(step_names[unsigned(step.kind)]) + ":" + std::to_string(step.seed);
}

std::optional<Step> parse_step(const std::string& text)
{
  const size_t colon = text.find(':');
  if (colon == std::string::npos)
    return std::nullopt;
  for (unsigned kind = 0; kind < step_kinds; ++kind) {
    if (text.compare(0, colon, step_names[kind]) == 0)
      return Step{Step::Kind(kind), std::strtoull(text.c_str() + colon + 1, nullptr, 10)};
  }
  return std::nullopt;
}

std::vector<Step> make_history(uint64_t seed, const HistoryOptions& options)
{
  const auto& weights = seed % 4 == 2 ? filling : seed % 4 == 3 ? moving : common;
  Random random(seed);
  unsigned sum = 0;
  for (unsigned w : weights)
    sum += w;
  std::vector<Step> steps;
  while (steps.size() < options.steps) {
    unsigned pick = unsigned(random() % sum), kind = 0;
    while (pick >= weights[kind])
      pick -= weights[kind++];
    steps.push_back({Step::Kind(kind), random()});
  }
  return steps;
}

HistoryResult run_history(const std::vector<Step>& steps, const HistoryOptions& options)
{
  std::optional<Run> run;
  size_t at = 0;
  std::string failure;
  try {
    run.emplace(options);
    for (; at < steps.size() && !run->over(); ++at)
      run->step(steps[at]);
    run->finish();
  } catch (const Failure& f) {
    failure = f.what;
  } catch (const Died& d) {
    failure = "the store died: " + d.why;
  } catch (const Unreadable& u) {
    failure = "a row cannot be read: " + u.what;
  }
  if (!failure.empty() && at < steps.size())
    failure = "step " + std::to_string(at) + " (" + to_string(steps[at]) + "): " + failure;
  HistoryResult result = run ? run->result() : HistoryResult();
  result.failure = failure;
  return result;
}

std::vector<Step> minimise(std::vector<Step> steps, const HistoryOptions& options)
{
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
    if (!smaller || chunk > steps.size())
      chunk /= 2;
  }
  return steps;
}

}  // namespace tablestore_sim
