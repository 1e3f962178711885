// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// ./run sim --store: random histories from a seed on, or all short ones.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include <unistd.h>

#include "common/ceph_argparse.h"
#include "common/ceph_context.h"
#include "global/global_context.h"
#include "global/global_init.h"
#include "test/objectstore/tablestore/sim/exhaustive.h"
#include "test/objectstore/tablestore/sim/history.h"
#include "test/tablestore/sim/last_words.h"

using namespace tablestore_sim;
using tablestore::sim::LastWords;

namespace {

constexpr char usage[] =
  "Usage: ceph_tablestore_sim [--seed N] [--seeds N] [--minutes M] [--faults LIST] [--soak]\n"
  "       ceph_tablestore_sim --exhaustive [--transactions N] [--part I/N] [--minutes M]\n"
  "\n"
  "TableStore, with Ceph's own transactions, on a simulated disk, crashed and recovered.\n"
  "  --seed N          one history, exactly that one; with the others, from there on\n"
  "  --seeds N         so many histories\n"
  "  --minutes M       histories for so long\n"
  "  --soak            the same without end (or for --minutes), with a report every minute\n"
  "  --faults LIST     of: none, errors, full, damage (default: errors,full)\n"
  "  --replay STEPS    the steps that a failure was minimised to\n"
  "  --no-minimise     a failing history is not made smaller\n"
  "  --wrapped         it began in the log's second lap (with --seed: the odd ones do)\n"
  "  --twice           runs each history twice, and compares them to the last I/O\n"
  "  --trace           tells each step and each I/O\n"
  "  --log LEVEL       what the store says, on standard error\n"
  "  --steps N         of one history (default 100)\n"
  "  --exhaustive      all histories of up to N transactions (default 2), crashed at every I/O\n";

struct Arguments {
  uint64_t seed = 1;
  bool seed_given = false;
  uint64_t seeds = 0;
  double minutes = 0;
  bool soak = false;
  bool exhaustive = false;
  bool minimise = true;
  bool twice = false;
  std::string faults = "errors,full";
  std::string replay;
  std::string log_level;
  HistoryOptions history;
  ExhaustiveOptions all;
};

[[noreturn]] void wrong_usage(const std::string& what)
{
  std::fprintf(stderr, "ceph_tablestore_sim: %s\n%s", what.c_str(), usage);
  std::exit(2);
}

bool parse_flag(const std::string& word, Arguments* a)
{
  const std::map<std::string, bool*> flags = {
    {"--soak", &a->soak},
    {"--wrapped", &a->history.wrapped},
    {"--twice", &a->twice},
    {"--trace", &a->history.trace},
    {"--exhaustive", &a->exhaustive},
  };
  if (const auto p = flags.find(word); p != flags.end()) {
    *p->second = true;
    return true;
  }
  if (word == "--no-minimise") {
    a->minimise = false;
    return true;
  }
  if (word == "--help" || word == "-h") {
    std::fputs(usage, stdout);
    std::exit(0);
  }
  return false;
}

Arguments parse(int argc, char** argv)
{
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (parse_flag(word, &a))
      continue;
    if (++i == argc)
      wrong_usage(word + " is unknown, or needs a value");
    const char* value = argv[i];
    if (word == "--seed") {
      a.seed = std::strtoull(value, nullptr, 10);
      a.seed_given = true;
    } else if (word == "--seeds") {
      a.seeds = std::strtoull(value, nullptr, 10);
    } else if (word == "--minutes") {
      a.minutes = std::atof(value);
    } else if (word == "--faults") {
      a.faults = value;
    } else if (word == "--replay") {
      a.replay = value;
    } else if (word == "--log") {
      a.log_level = value;
    } else if (word == "--steps") {
      a.history.steps = unsigned(std::atoi(value));
    } else if (word == "--transactions") {
      a.all.transactions = unsigned(std::atoi(value));
    } else if (word == "--part") {
      if (std::sscanf(value, "%u/%u", &a.all.part, &a.all.parts) != 2 || a.all.parts == 0)
        wrong_usage("--part is I/N");
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

std::string replay_of(const Arguments& a, uint64_t seed)
{
  return "./run sim --store --seed " + std::to_string(seed) + " --steps " +
      std::to_string(a.history.steps) + " --faults " + a.faults;
}

int run_all_short(const Arguments& a)
{
  LastWords::set_untimed("one of all short histories");
  const auto r = run_exhaustive(a.all, [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  });
  if (!r.failure.empty())
    std::printf("FAILED %s\n", r.failure.c_str());
  std::printf("%s: %llu histories, %llu crash points, %llu cases, %llu recoveries, %.0f s\n",
              !r.failure.empty() ? "failed" : r.complete ? "complete" : "out of time",
              (unsigned long long)r.histories, (unsigned long long)r.crash_points,
              (unsigned long long)r.cases, (unsigned long long)r.recoveries, r.seconds);
  return r.failure.empty() ? 0 : 1;
}

void report_failure(const Arguments& a, uint64_t seed, const std::string& failure)
{
  LastWords::set_untimed("making the history smaller");
  std::printf("FAILED seed %llu: %s\n", (unsigned long long)seed, failure.c_str());
  std::printf("replay: %s\n", replay_of(a, seed).c_str());
  std::fflush(stdout);
  if (!a.minimise)
    return;
  const auto smaller = minimise(make_history(seed, a.history), a.history);
  std::string list;
  for (const auto& step : smaller)
    list += (list.empty() ? "" : ",") + to_string(step);
  std::printf("minimised to %zu steps: ./run sim --store --trace%s --faults %s --replay %s\n",
              smaller.size(), a.history.wrapped ? " --wrapped" : "", a.faults.c_str(),
              list.c_str());
  std::printf("which fails with: %s\n", run_history(smaller, a.history).failure.c_str());
}

/// The steps of --replay, as report_failure() prints them.
int replay(const Arguments& a)
{
  std::vector<Step> steps;
  for (size_t at = 0; at < a.replay.size();) {
    const size_t end = std::min(a.replay.find(',', at), a.replay.size());
    const auto step = parse_step(a.replay.substr(at, end - at));
    if (!step)
      wrong_usage("no such step: " + a.replay.substr(at, end - at));
    steps.push_back(*step);
    at = end + 1;
  }
  const auto r = run_history(steps, a.history);
  std::printf("%s\n", r.failure.empty() ? "clean" : ("FAILED " + r.failure).c_str());
  return r.failure.empty() ? 0 : 1;
}

HistoryResult run_seed(const Arguments& a, uint64_t seed)
{
  LastWords::set(replay_of(a, seed));
  const auto steps = make_history(seed, a.history);
  HistoryResult r = run_history(steps, a.history);
  if (a.twice && r.failure.empty()) {
    const HistoryResult again = run_history(steps, a.history);
    if (again.trace_hash != r.trace_hash || again.crashes != r.crashes || again.ios != r.ios)
      r.failure = "the same history went another way the second time";
  }
  return r;
}

class Sums {
 public:
  explicit Sums(uint64_t first_seed) : first_seed(first_seed), start(Clock::now()) {}

  void add(const HistoryResult& r)
  {
    ++histories;
    sum.crashes += r.crashes, sum.in_recovery += r.in_recovery, sum.ios += r.ios;
    sum.died += r.died, sum.refused += r.refused, sum.damaged_reads += r.damaged_reads;
    sum.transactions += r.transactions, sum.taken_back += r.taken_back;
    sum.checks += r.checks, sum.repairs += r.repairs, sum.no_spaces += r.no_spaces;
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
  static double cpu_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }
  void report() const
  {
    auto u = [](uint64_t n) { return (unsigned long long)n; };
    std::printf("%llu histories (seeds %llu to %llu), %llu transactions, %llu taken back, "
                "%llu crash-recoveries (%llu while recovering), %llu fsck and statfs, "
                "%llu repairs, %llu I/Os, %llu deaths by a failing disk, %llu stores refused, "
                "%llu reads that said -EIO, %llu I/Os on a full disk; %.0f s, %.0f of them CPU, "
                "%.0f crashes per second of CPU\n",
                u(histories), u(first_seed), u(first_seed + histories - 1), u(sum.transactions),
                u(sum.taken_back), u(sum.crashes), u(sum.in_recovery), u(sum.checks),
                u(sum.repairs), u(sum.ios), u(sum.died), u(sum.refused), u(sum.damaged_reads),
                u(sum.no_spaces), seconds(), cpu_seconds(), double(sum.crashes) / cpu_seconds());
    std::fflush(stdout);
  }
  uint64_t histories = 0;

 private:
  using Clock = std::chrono::steady_clock;
  const uint64_t first_seed;
  const Clock::time_point start;
  HistoryResult sum;
};

int run_random(Arguments a)
{
  Sums sums(a.seed);
  double reported = 0;
  for (uint64_t seed = a.seed;; ++seed) {
    a.history.wrapped = seed % 2;
    const auto r = run_seed(a, seed);
    sums.add(r);
    if (!r.failure.empty()) {
      sums.report();
      report_failure(a, seed, r.failure);
      return 1;
    }
    const bool endless = a.soak && a.minutes == 0;
    if (a.seeds > 0 ? sums.histories == a.seeds
                    : !endless && sums.seconds() >= a.minutes * 60)
      break;
    if (a.soak && sums.seconds() - reported > 60) {
      sums.report();
      reported = sums.seconds();
    }
  }
  sums.report();
  return 0;
}

/// A store that refuses a transaction takes it back, rather than end the process.
std::map<std::string, std::string> settings(const Arguments& a)
{
  const std::string level = a.log_level.empty() ? "0/0" : a.log_level + "/" + a.log_level;
  return {
    {"debug_tablestore", level},
    {"objectstore_debug_throw_on_failed_txc", "true"},
    {"tablestore_cache_size", "640M"},   // the table's part of it as in machine.cc
    {"tablestore_reserve_size", "1M"},
    {"log_to_stderr", a.log_level.empty() ? "false" : "true"},
    {"err_to_stderr", a.log_level.empty() ? "false" : "true"},
    {"log_file", "/dev/null"},
  };
}

}  // namespace

int main(int argc, char** argv)
{
  Arguments a = parse(argc, argv);
  if (!a.seed_given && a.minutes == 0 && !a.soak && !a.exhaustive && !a.seeds)
    a.minutes = 1;
  std::vector<const char*> nothing;
  const auto defaults = settings(a);
  auto cct = global_init(&defaults, nothing, CEPH_ENTITY_TYPE_CLIENT, CODE_ENVIRONMENT_UTILITY,
                         CINIT_FLAG_NO_DEFAULT_CONFIG_FILE);
  common_init_finish(g_ceph_context);
  LastWords::install();

  std::string directory =
      (std::filesystem::temp_directory_path() / "ceph_tablestore_sim.XXXXXX").string();
  if (!::mkdtemp(directory.data())) {
    std::perror("ceph_tablestore_sim: no temporary directory");
    return 2;
  }
  set_directory(directory);
  const int status = !a.replay.empty() ? replay(a) : a.exhaustive ? run_all_short(a)
                                                                  : run_random(a);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return status;
}
