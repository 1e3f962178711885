// A store's processes, one after the other.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "test/tablestore/powercut/campaign.h"
#include "test/tablestore/powercut/child.h"
#include "test/tablestore/powercut/journal.h"

namespace tablestore::powercut {

// A store is not what it has to be, or a process has not ended as it should.
struct Failure {
  std::string what;
};

// What a store can be judged by at some moment.
struct Evidence {
  std::shared_ptr<Journal> journal;  // of the last life that had begun
  std::array<uint64_t, LifeReport::sequences> acknowledged = {};
  bool opening = false;              // the life after that one had not
};

// Where a process finds its store.
struct Place {
  std::string dir;
  // The words that make a program see that directory, before the program; none: it is there.
  std::vector<std::string> inside;
};

// Starts and ends the processes on one store. Everything throws Failure.
//
// What lives is the engine alone, in this program; or a whole ObjectStore, in a program of Ceph
// that knows "make", "live" and "judge" (src/test/objectstore/tablestore/power_life.cc).
class Lineage {
 public:
  Lineage(const CampaignOptions& options, uint64_t seed, Tally* tally);

  void make(const Place& place);
  // A life, which is judged by the evidence, and goes on writing.
  void start(const Place& place);
  // Its store is open.
  void wait_until_begun();
  // It has not ended by itself, in which case it failed.
  void check_alive();
  void pause() { child_->signal(SIGSTOP); }
  void go_on() { child_->signal(SIGCONT); }
  // The process dies, the machine lives on.
  void kill();
  // The machine dies too: what the next life finds is the store as it was when this was known.
  void lose_power(const Evidence& evidence);
  void end_in_order();
  // A process that only opens a store and judges it.
  void judge(const Place& place, const Evidence& evidence);

  // As of now; from any thread while a life runs.
  Evidence evidence() const;
  // By which the next life will be judged.
  const Evidence& last_evidence() const { return evidence_; }
  // Waits until everything that its journal has now is durable, so that the order is known.
  void wait_until_durable();

 private:
  std::unique_ptr<Child> run(const char* what, const Place& place, const Evidence& evidence,
                             const Journal& journal);
  void run_to_end(const char* what, const Place& place, const Evidence& evidence);
  void end(int signal, int expected_status);
  void set_evidence(Evidence evidence);

  const CampaignOptions& options_;
  const uint64_t seed_;
  Tally* const tally_;
  uint64_t lives_ = 0;
  Evidence evidence_;                 // of the lives before
  std::shared_ptr<Journal> journal_;  // of this one
  std::unique_ptr<Child> child_;
};

}  // namespace tablestore::powercut
