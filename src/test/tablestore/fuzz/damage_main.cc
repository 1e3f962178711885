// Damages whole stores at random, one seed after the other, and says what came of it: the same as
// the target fuzz_store, without a fuzzer's search.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "test/tablestore/fuzz/store_damage.h"

namespace tablestore::fuzz {
namespace {

uint64_t seed_now = 0;

// require() and the sanitizers end the process; the seed is what is needed to repeat it.
extern "C" void say_seed(int signal) {
  char line[80];
  const int length = std::snprintf(line, sizeof(line), "replay: --seed %llu --seeds 1\n",
                                   static_cast<unsigned long long>(seed_now));
  if (::write(STDERR_FILENO, line, size_t(length)) < 0) std::_Exit(2);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string run(uint64_t seed) {
  sim::Random random(seed);
  const DamagedStore& store = store_to_damage(unsigned(random()));
  std::vector<Edit> edits(1 + random() % 3);
  for (Edit& edit : edits)
    edit = {uint8_t(random()), uint8_t(random()), uint32_t(random()), uint32_t(random())};
  sim::DiskImage image;
  const Damage done = damage(store, edits, &image);
  return check_damaged(store, done, std::move(image));
}

// What came of it without names and numbers.
std::string kind_of(std::string outcome) {
  std::string kind;
  for (char c : outcome.substr(0, 90))
    if (c < '0' || c > '9') kind += c;
  return kind;
}

int main(int argc, char** argv) {
  uint64_t seeds = 1000;
  double minutes = 0;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--seed" && i + 1 < argc)
      seed_now = std::strtoull(argv[++i], nullptr, 0);
    else if (option == "--seeds" && i + 1 < argc)
      seeds = std::strtoull(argv[++i], nullptr, 0);
    else if (option == "--minutes" && i + 1 < argc)
      minutes = std::strtod(argv[++i], nullptr);
    else if (option == "--verbose")
      verbose = true;
    else
      return std::fprintf(stderr, "usage: %s [--seed N] [--seeds N | --minutes M] [--verbose]\n",
                          argv[0]), 2;
  }
  std::signal(SIGABRT, say_seed);
  std::map<std::string, uint64_t> outcomes;
  const auto began = std::chrono::steady_clock::now();
  auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  uint64_t done = 0;
  for (; minutes > 0 ? spent() < minutes * 60 : done < seeds; ++done, ++seed_now) {
    const std::string outcome = run(seed_now);
    if (verbose) std::printf("%llu %s\n", static_cast<unsigned long long>(seed_now),
                             outcome.c_str());
    ++outcomes[verbose ? kind_of(outcome) : outcome.substr(0, outcome.find(':'))];
  }
  for (const auto& [outcome, count] : outcomes)
    std::printf("%8llu %s\n", static_cast<unsigned long long>(count), outcome.c_str());
  std::printf("%llu damaged stores, %.0f/s\n", static_cast<unsigned long long>(done),
              double(done) / spent());
  return 0;
}

}  // namespace
}  // namespace tablestore::fuzz

int main(int argc, char** argv) { return tablestore::fuzz::main(argc, argv); }
