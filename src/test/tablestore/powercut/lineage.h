// A store's processes, one after the other.
#pragma once

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
  uint64_t acknowledged = 0;
  bool opening = false;              // the life after that one had not
};

// Starts and ends the processes on one store. Everything throws Failure.
class Lineage {
 public:
  // The store is in `dir`; logs of its processes go to `scratch`.
  Lineage(std::string dir, std::string scratch, uint64_t seed, Tally* tally);

  void make();
  // A life, which is judged by the evidence, and goes on writing.
  void start();
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
  // A process that only opens the store and judges it.
  void judge_now() { judge(dir_, evidence_); }
  // The same of another directory with a copy of the store.
  void judge(const std::string& dir, const Evidence& evidence);

  // As of now; from any thread while a life runs.
  Evidence evidence() const;
  // Waits until everything that its journal has now is durable, so that the order is known.
  void wait_until_durable();

 private:
  void end(int signal, int expected_status);
  void set_evidence(Evidence evidence);
  std::vector<std::string> arguments(const char* what, const std::string& dir) const;

  std::string dir_;
  const std::string scratch_;
  const uint64_t seed_;
  Tally* const tally_;
  uint64_t lives_ = 0;
  Evidence evidence_;                 // of the lives before
  std::shared_ptr<Journal> journal_;  // of this one
  std::unique_ptr<Child> child_;
};

}  // namespace tablestore::powercut
