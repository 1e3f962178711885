#include "test/tablestore/sim/frame/history.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "test/tablestore/sim/frame/verdict.h"

namespace tablestore::sim {

HistoryResult& HistoryResult::operator+=(const HistoryResult& other) {
  static constexpr uint64_t HistoryResult::* sums[] = {
      &HistoryResult::crashes,     &HistoryResult::ios,         &HistoryResult::transactions,
      &HistoryResult::taken_back,  &HistoryResult::checks,      &HistoryResult::repairs,
      &HistoryResult::died,        &HistoryResult::refused,     &HistoryResult::damaged_reads,
      &HistoryResult::late_writes, &HistoryResult::short_reads, &HistoryResult::no_spaces,
      &HistoryResult::full_logs,   &HistoryResult::checkpoints, &HistoryResult::passed_ranges,
      &HistoryResult::prepared,    &HistoryResult::punched,     &HistoryResult::created,
      &HistoryResult::removed,     &HistoryResult::reclassed,   &HistoryResult::moved};
  for (const auto sum : sums) this->*sum += other.*sum;
  for (unsigned m = 0; m < moments; ++m) crashes_while[m] += other.crashes_while[m];
  return *this;
}

void HistoryResult::count_crash(const Snapshot& at) {
  ++crashes;
  for (unsigned m = 0; m < moments; ++m) crashes_while[m] += at.moments[m];
}

std::vector<Step> Histories::make(uint64_t seed, unsigned count) const {
  const std::span<const unsigned> common = weights(seed);
  Random random(seed);
  unsigned sum = 0;
  for (unsigned w : common) sum += w;
  std::vector<Step> steps;
  while (steps.size() < count) {
    unsigned pick = unsigned(random() % sum), kind = 0;
    while (pick >= common[kind]) pick -= common[kind++];
    steps.push_back({Step::Kind(kind), random()});
  }
  return steps;
}

HistoryResult Histories::run(const std::vector<Step>& steps, const HistoryOptions& options) const {
  std::unique_ptr<HistoryRun> run;
  size_t at = 0;
  std::string failure;
  bool refused = false;
  try {
    run = begin(options);
    for (; at < steps.size() && !run->over(); ++at) {
      if (options.trace) std::printf("%s\n", print({steps[at]}).c_str());
      run->step(steps[at]);
    }
    run->finish();
  } catch (const Failure& f) {
    failure = f.what;
  } catch (const Died& d) {
    failure = std::string(subject) + " died: " + d.why;
  } catch (const Unreadable& u) {
    refused = run && run->lied();
    if (!refused) failure = "a row cannot be read: " + u.what;
  }
  if (!failure.empty() && at < steps.size())
    failure = "step " + std::to_string(at) + " (" + print({steps[at]}) + "): " + failure;
  HistoryResult result = run ? run->result() : HistoryResult();
  result.refused += refused;
  result.failure = failure;
  return result;
}

std::vector<Step> Histories::minimise(std::vector<Step> steps,
                                      const HistoryOptions& options,
                                      std::chrono::seconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (size_t chunk = steps.size() / 2; chunk > 0;) {
    bool smaller = false;
    for (size_t at = 0; at < steps.size();) {
      if (std::chrono::steady_clock::now() > end) return steps;
      std::vector<Step> fewer = steps;
      fewer.erase(fewer.begin() + ptrdiff_t(at),
                  fewer.begin() + ptrdiff_t(std::min(steps.size(), at + chunk)));
      if (!run(fewer, options).failure.empty()) {
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

std::string Histories::print(const std::vector<Step>& steps) const {
  std::string text;
  for (const Step& step : steps)
    text += (text.empty() ? "" : ",") + std::string(names[unsigned(step.kind)]) + ":" +
            std::to_string(step.seed);
  return text;
}

std::optional<std::vector<Step>> Histories::parse(const std::string& text,
                                                  std::string* wrong) const {
  std::vector<Step> steps;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    const size_t colon = word.find(':');
    const auto name = std::ranges::find(names, word.substr(0, colon));
    if (colon == std::string::npos || name == names.end()) {
      *wrong = word;
      return std::nullopt;
    }
    steps.push_back({Step::Kind(name - names.begin()),
                     std::strtoull(word.c_str() + colon + 1, nullptr, 10)});
    at = end + 1;
  }
  return steps;
}

}  // namespace tablestore::sim
