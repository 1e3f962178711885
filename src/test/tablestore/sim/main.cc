// ./run sim: random histories from a seed on, or all short ones.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "test/tablestore/sim/exhaustive.h"
#include "test/tablestore/sim/history.h"
#include "test/tablestore/sim/last_words.h"

namespace {

using tablestore::sim::HistoryOptions;
using tablestore::sim::HistoryResult;
using tablestore::sim::LastWords;

constexpr char usage[] =
    "Usage: tablestore_sim [--seed N] [--minutes M] [--faults LIST] [--steps N] [--soak]\n"
    "       tablestore_sim --exhaustive [--transactions N] [--part I/N] [--minutes M]\n"
    "\n"
    "The store's engine on a simulated disk, crashed and recovered.\n"
    "  --seed N          one history, exactly that one; with --minutes or --soak, from there on\n"
    "  --seeds N         so many histories\n"
    "  --minutes M       histories for so long\n"
    "  --soak            the same without end (or for --minutes), with a report every minute\n"
    "  --faults LIST     of: none, errors, full, damage (default: errors,full)\n"
    "  --replay STEPS    the steps that a failure was minimised to\n"
    "  --no-minimise     a failing history is not made smaller\n"
    "  --wrapped         it began in the log's second lap (with --seed: some do)\n"
    "  --provisioned     it began with containers that mkfs had written (the same)\n"
    "  --trace           tells each step and each I/O\n"
    "  --steps N         of one history (default 120)\n"
    "  --exhaustive      all histories of up to N transactions (default 3), crashed at every I/O\n";

struct Arguments {
  uint64_t seed = 1;
  bool seed_given = false;
  uint64_t seeds = 0;
  double minutes = 0;
  bool soak = false;
  bool exhaustive = false;
  bool minimise = true;
  std::string faults = "errors,full";
  std::string replay;
  HistoryOptions history;
  tablestore::sim::ExhaustiveOptions all;
};

[[noreturn]] void wrong_usage(const std::string& what) {
  std::fprintf(stderr, "tablestore_sim: %s\n%s", what.c_str(), usage);
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    auto value = [&]() -> const char* {
      if (++i == argc) wrong_usage(word + " needs a value");
      return argv[i];
    };
    if (word == "--seed") {
      a.seed = std::strtoull(value(), nullptr, 10);
      a.seed_given = true;
    } else if (word == "--minutes") {
      a.minutes = std::atof(value());
    } else if (word == "--soak") {
      a.soak = true;
    } else if (word == "--faults") {
      a.faults = value();
    } else if (word == "--wrapped") {
      a.history.wrapped = true;
    } else if (word == "--provisioned") {
      a.history.provisioned = true;
    } else if (word == "--seeds") {
      a.seeds = std::strtoull(value(), nullptr, 10);
    } else if (word == "--no-minimise") {
      a.minimise = false;
    } else if (word == "--trace") {
      a.history.trace = true;
    } else if (word == "--replay") {
      a.replay = value();
    } else if (word == "--steps") {
      a.history.steps = unsigned(std::atoi(value()));
    } else if (word == "--exhaustive") {
      a.exhaustive = true;
    } else if (word == "--transactions") {
      a.all.transactions = unsigned(std::atoi(value()));
    } else if (word == "--part") {
      if (std::sscanf(value(), "%u/%u", &a.all.part, &a.all.parts) != 2 || a.all.parts == 0)
        wrong_usage("--part is I/N");
    } else if (word == "--help" || word == "-h") {
      std::fputs(usage, stdout);
      std::exit(0);
    } else {
      wrong_usage("unknown argument " + word);
    }
  }
  a.history.errors = a.faults.find("errors") != std::string::npos;
  a.history.full = a.faults.find("full") != std::string::npos;
  a.history.damage = a.faults.find("damage") != std::string::npos;
  a.all.minutes = a.minutes;
  return a;
}

int run_all_short(const Arguments& a) {
  LastWords::set_untimed("one of all short histories");
  const auto r = run_exhaustive(a.all, [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  });
  std::printf("%s: %llu histories, %llu crash points, %llu cases, %llu recoveries, %.0f s\n",
              r.complete ? "complete" : "out of time", (unsigned long long)r.histories,
              (unsigned long long)r.crash_points, (unsigned long long)r.cases,
              (unsigned long long)r.recoveries, r.seconds);
  if (!r.failure.empty()) std::printf("FAILED %s\n", r.failure.c_str());
  return r.failure.empty() ? 0 : 1;
}

std::string replay_of(const Arguments& a, uint64_t seed) {
  return "./run sim --seed " + std::to_string(seed) + " --steps " +
         std::to_string(a.history.steps) + " --faults " + a.faults;
}

void report_failure(const Arguments& a, uint64_t seed, const std::string& failure) {
  LastWords::set_untimed("making the history smaller");
  std::printf("FAILED seed %llu: %s\n", (unsigned long long)seed, failure.c_str());
  std::printf("replay: %s\n", replay_of(a, seed).c_str());
  std::fflush(stdout);
  if (!a.minimise) return;
  const auto smaller = minimise(make_history(seed, a.history), a.history);
  std::string list;
  for (const auto& step : smaller) list += (list.empty() ? "" : ",") + to_string(step);
  std::printf("minimised to %zu steps: ./run sim --trace%s --faults %s --replay %s\n",
              smaller.size(),
              a.history.wrapped       ? " --wrapped"
              : a.history.provisioned ? " --provisioned"
                                      : "",
              a.faults.c_str(), list.c_str());
  std::printf("which fails with: %s\n", run_history(smaller, a.history).failure.c_str());
}

// The steps of --replay, as report_failure() prints them.
int replay(const Arguments& a) {
  std::vector<tablestore::sim::Step> steps;
  for (size_t at = 0; at < a.replay.size();) {
    const size_t end = std::min(a.replay.find(',', at), a.replay.size());
    const auto step = tablestore::sim::parse_step(a.replay.substr(at, end - at));
    if (!step) wrong_usage("no such step: " + a.replay.substr(at, end - at));
    steps.push_back(*step);
    at = end + 1;
  }
  const auto r = run_history(steps, a.history);
  std::printf("%s\n", r.failure.empty() ? "clean" : ("FAILED " + r.failure).c_str());
  return r.failure.empty() ? 0 : 1;
}

void report(const Arguments& a, const HistoryResult& sum, uint64_t histories, double seconds) {
  const std::pair<const char*, uint64_t> counts[] = {
      {"transactions", sum.transactions},
      {"I/Os", sum.ios},
      {"late writes", sum.late_writes},
      {"short reads", sum.short_reads},
      {"deaths by a failing disk", sum.died},
      {"damaged stores refused", sum.refused},
      {"damaged blocks found", sum.damaged_reads},
      {"checkpoints", sum.checkpoints},
      {"full logs", sum.full_logs},
      {"I/Os on a full disk", sum.no_spaces},
      {"MiB prepared", sum.prepared >> 20},
      {"MiB punched", sum.punched >> 20},
      {"containers made", sum.created},
      {"containers removed", sum.removed},
      {"containers given to another class", sum.reclassed},
  };
  std::printf("seeds %llu to %llu: %llu histories, %llu crashes and recoveries (%.0f/s, %.0f s)\n",
              (unsigned long long)a.seed, (unsigned long long)(a.seed + histories - 1),
              (unsigned long long)histories, (unsigned long long)sum.crashes,
              double(sum.crashes) / seconds, seconds);
  for (const auto& [name, count] : counts)
    std::printf("%s%llu %s", name == counts[0].first ? "  " : ", ", (unsigned long long)count,
                name);
  std::printf("\n  crashes while");
  for (unsigned m = 0; m < tablestore::sim::moments; ++m)
    std::printf("%s %s %llu", m ? "," : ":", moment_name(tablestore::sim::Moment(m)),
                (unsigned long long)sum.crashes_while[m]);
  std::printf("\n");
  std::fflush(stdout);
}

int run_random(Arguments a) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  HistoryResult sum;
  uint64_t histories = 0;
  double reported = 0;
  for (uint64_t seed = a.seed;; ++seed) {
    choose_base(seed, &a.history);
    LastWords::set(replay_of(a, seed));
    const auto r = run_history(make_history(seed, a.history), a.history);
    ++histories;
    sum += r;
    if (!r.failure.empty()) {
      report(a, sum, histories, seconds());
      report_failure(a, seed, r.failure);
      return 1;
    }
    const bool endless = a.soak && a.minutes == 0;
    if (a.seeds > 0 ? histories == a.seeds : !endless && seconds() >= a.minutes * 60) break;
    if (a.soak && seconds() - reported > 60)
      report(a, sum, histories, seconds()), reported = seconds();
  }
  report(a, sum, histories, seconds());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // What one life has had, the next one wants.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  Arguments a = parse(argc, argv);
  LastWords::install();
  if (!a.seed_given && a.minutes == 0 && !a.soak && !a.exhaustive && !a.seeds)
    a.minutes = 1;
  if (!a.replay.empty()) return replay(a);
  return a.exhaustive ? run_all_short(a) : run_random(a);
}
