#include "test/tablestore/sim/frame/program.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "test/tablestore/sim/frame/last_words.h"

namespace tablestore::sim {

namespace {

constexpr auto minimise_limit = std::chrono::minutes(10);

[[noreturn]] void wrong_usage(const Simulator& simulator, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n%s", simulator.program, what.c_str(), simulator.usage);
  std::exit(2);
}

class Program {
 public:
  Program(const Simulator& simulator, Arguments a)
      : simulator_(simulator), histories_(simulator.histories), a_(std::move(a)) {}

  int run() {
    if (!a_.replay.empty()) return replay();
    return a_.exhaustive ? run_all_short() : run_random();
  }

 private:
  int run_all_short();
  int replay();
  int run_random();
  HistoryResult run_seed(uint64_t seed);
  void report_failure(uint64_t seed, const std::string& failure);
  std::string flags() const;
  std::string replay_of(uint64_t seed) const;
  std::string replay_of_case(const std::string& name) const;

  const Simulator& simulator_;
  const Histories& histories_;
  Arguments a_;
};

int Program::run_all_short() {
  if (a_.all.transactions == 0)
    a_.all.transactions = a_.all.damage ? 1 : simulator_.short_transactions;
  a_.all.trace = a_.history.trace;
  a_.all.begins = [this](const std::string& name) { LastWords::set(replay_of_case(name)); };
  const auto r = simulator_.run_exhaustive(a_.all, [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  });
  auto u = [](uint64_t n) { return (unsigned long long)n; };
  if (!r.failure.empty())
    std::printf("FAILED %s\nreplay: %s\n", r.failure.c_str(),
                replay_of_case(r.failed_case).c_str());
  std::printf("%s: %llu histories, %llu crash points, %llu cases, %llu recoveries, %.0f s\n",
              !r.failure.empty() ? "failed" : r.complete ? "complete" : "out of time",
              u(r.histories), u(r.crash_points), u(r.cases), u(r.recoveries), r.seconds);
  if (a_.all.damage)
    std::printf("  %llu damaged disks: %llu refused, %llu of them opened when the loss was "
                "accepted, %llu without their last transactions, %llu reads that failed or gave "
                "other bytes, %llu repairs\n",
                u(r.damaged), u(r.refused), u(r.accepted), u(r.shortened), u(r.damaged_reads),
                u(r.repairs));
  return r.failure.empty() ? 0 : 1;
}

// Of one case, or of all whose names begin so.
std::string Program::replay_of_case(const std::string& name) const {
  const auto more = std::ranges::count(name, '+');
  return std::string(simulator_.command) + " --exhaustive --transactions " +
         std::to_string(more + 1) + (a_.all.damage ? " --damage" : "") + " --only " + name;
}

// What no seed says.
std::string Program::flags() const {
  return std::string(a_.history.in_turn ? " --in-turn" : "") +
         (a_.history.nearly_full ? " --nearly-full" : "");
}

std::string Program::replay_of(uint64_t seed) const {
  return std::string(simulator_.command) + " --seed " + std::to_string(seed) + " --steps " +
         std::to_string(a_.history.steps) + flags() + " --faults " + a_.faults;
}

void Program::report_failure(uint64_t seed, const std::string& failure) {
  LastWords::set_untimed("making the history smaller");
  std::printf("FAILED seed %llu: %s\n", (unsigned long long)seed, failure.c_str());
  std::printf("replay: %s\n", replay_of(seed).c_str());
  std::fflush(stdout);
  if (!a_.minimise) return;
  const auto steps = histories_.make(seed, a_.history.steps);
  const auto smaller = histories_.minimise(steps, a_.history, minimise_limit);
  std::printf("minimised to %zu steps: %s --trace%s%s%s%s --faults %s --replay %s\n",
              smaller.size(), simulator_.command, a_.history.wrapped ? " --wrapped" : "",
              a_.history.provisioned ? " --provisioned" : "",
              a_.history.remapped ? " --remapped" : "",
              flags().c_str(), a_.faults.c_str(), histories_.print(smaller).c_str());
  std::printf("which fails with: %s\n", histories_.run(smaller, a_.history).failure.c_str());
}

// The steps of --replay, as report_failure() prints them.
int Program::replay() {
  std::string wrong;
  const auto steps = histories_.parse(a_.replay, &wrong);
  if (!steps) wrong_usage(simulator_, "no such step: " + wrong);
  const auto r = histories_.run(*steps, a_.history);
  std::printf("%s\n", r.failure.empty() ? "clean" : ("FAILED " + r.failure).c_str());
  return r.failure.empty() ? 0 : 1;
}

HistoryResult Program::run_seed(uint64_t seed) {
  histories_.choose_base(seed, &a_.history);
  LastWords::set(replay_of(seed));
  const auto steps = histories_.make(seed, a_.history.steps);
  HistoryResult r = histories_.run(steps, a_.history);
  if (a_.twice && r.failure.empty()) {
    const HistoryResult again = histories_.run(steps, a_.history);
    if (again.trace_hash != r.trace_hash || again.crashes != r.crashes || again.ios != r.ios)
      r.failure = "the same history went another way the second time";
  }
  return r;
}

int Program::run_random() {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  Totals totals;
  totals.first_seed = a_.seed;
  auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  auto report = [&] {
    totals.seconds = seconds();
    simulator_.report(totals);
    std::fflush(stdout);
  };
  double reported = 0;
  for (uint64_t seed = a_.seed;; ++seed) {
    const HistoryResult r = run_seed(seed);
    ++totals.histories;
    totals.sum += r;
    if (!r.failure.empty()) {
      report();
      report_failure(seed, r.failure);
      return 1;
    }
    const bool endless = a_.soak && a_.minutes == 0;
    if (a_.seeds > 0 ? totals.histories == a_.seeds : !endless && seconds() >= a_.minutes * 60)
      break;
    if (a_.soak && seconds() - reported > 60) {
      report();
      reported = seconds();
    }
  }
  report();
  return 0;
}

}  // namespace

void parse(int argc, char** argv, const Simulator& simulator, Arguments* a) {
  std::map<std::string, bool*> flags = {
      {"--soak", &a->soak},
      {"--exhaustive", &a->exhaustive},
      {"--damage", &a->all.damage},
      {"--wrapped", &a->history.wrapped},
      {"--trace", &a->history.trace},
  };
  flags.insert(simulator.own_flags.begin(), simulator.own_flags.end());
  std::map<std::string, std::string*> texts = {
      {"--faults", &a->faults}, {"--replay", &a->replay}, {"--only", &a->all.only}};
  texts.insert(simulator.own_values.begin(), simulator.own_values.end());
  const std::map<std::string, std::function<void(const char*)>> numbers = {
      {"--seed", [a](const char* v) {
         a->seed = std::strtoull(v, nullptr, 10);
         a->seed_given = true;
       }},
      {"--seeds", [a](const char* v) { a->seeds = std::strtoull(v, nullptr, 10); }},
      {"--minutes", [a](const char* v) { a->minutes = a->all.minutes = std::atof(v); }},
      {"--steps", [a](const char* v) { a->history.steps = unsigned(std::atoi(v)); }},
      {"--transactions", [a](const char* v) { a->all.transactions = unsigned(std::atoi(v)); }},
      {"--part", [&](const char* v) {
         if (std::sscanf(v, "%u/%u", &a->all.part, &a->all.parts) != 2 || a->all.parts == 0)
           wrong_usage(simulator, "--part is I/N");
       }},
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    auto value = [&] {
      if (++i == argc) wrong_usage(simulator, word + " needs a value");
      return argv[i];
    };
    if (const auto flag = flags.find(word); flag != flags.end()) {
      *flag->second = true;
    } else if (const auto text = texts.find(word); text != texts.end()) {
      *text->second = value();
    } else if (const auto number = numbers.find(word); number != numbers.end()) {
      number->second(value());
    } else if (word == "--no-minimise") {
      a->minimise = false;
    } else if (word == "--help" || word == "-h") {
      std::fputs(simulator.usage, stdout);
      std::exit(0);
    } else {
      wrong_usage(simulator, "unknown argument " + word);
    }
  }
  a->history.errors = a->faults.find("errors") != std::string::npos;
  a->history.full = a->faults.find("full") != std::string::npos;
  a->history.damage = a->faults.find("damage") != std::string::npos;
  if (!a->seed_given && a->minutes == 0 && !a->soak && !a->exhaustive && !a->seeds)
    a->minutes = 1;
}

int run(const Simulator& simulator, Arguments a) {
  LastWords::install();
  return Program(simulator, std::move(a)).run();
}

}  // namespace tablestore::sim
