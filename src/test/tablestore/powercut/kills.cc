#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "test/tablestore/powercut/campaign.h"
#include "test/tablestore/powercut/lineage.h"

namespace tablestore::powercut {

namespace {

// One store and its lives.
void run_store(Lineage& store, const Place& place, Random& random) {
  store.make(place);
  for (uint64_t lives = 4 + random() % 12; lives > 0; --lives) {
    store.start(place);
    if (random() % 3 == 0) {  // while it is being opened, most likely
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    } else {
      store.wait_until_begun();
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 400'000));
    }
    if (random() % 10 == 0)
      store.end_in_order();
    else
      store.kill();
  }
  store.judge(place, store.last_evidence());
}

}  // namespace

std::string run_kills(const CampaignOptions& options, Tally* tally) {
  for (uint64_t seed = options.seed;; ++seed) {
    Random random(seed);
    const std::string dir = options.dir + "/store";
    std::filesystem::remove_all(dir);
    std::filesystem::create_directory(dir);
    ++tally->stores;
    try {
      Lineage store(options, random(), tally);
      run_store(store, {dir, {}}, random);
    } catch (const Failure& f) {
      return "seed " + std::to_string(seed) + ": " + f.what;
    }
    if (options.enough(*tally)) return {};
    options.progress(*tally);
  }
}

}  // namespace tablestore::powercut
