// A thread that makes random transactions on its own part of a store.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "os/tablestore/engine/engine.h"
#include "test/tablestore/powercut/journal.h"
#include "test/tablestore/sim/disk_image.h"
#include "test/tablestore/sim/transaction_builder.h"

namespace tablestore::powercut {

// Its transactions have one sequencer and touch nothing of other writers, but for the row of
// counters that all add to; so what a prefix of the log makes follows from how many of each
// writer's transactions are in it. Each transaction counts itself in a row of its own.
//
// Used by one thread; transactions call back from the engine's.
class Writer {
 public:
  // `begin`: what the store holds now.
  Writer(Engine& engine, Journal& journal, unsigned number, uint64_t seed,
         const sim::State& begin);
  // Makes one transaction, when not too many are on their way. False: the journal is full.
  bool write();
  // Reads one of its objects back. Empty: it is as it was written.
  std::string read();

  static std::string count_key(unsigned number) { return "N" + std::to_string(number); }

 private:
  class Reported;
  static std::string prefix(unsigned number) { return "w" + std::to_string(number) + "."; }
  void wait_for_turn();

  Engine& engine_;
  Journal& journal_;
  const unsigned number_;
  sim::Random random_;
  sim::State latest_;  // of its own part, after all that was submitted
  sim::References references_;
  uint64_t count_;
  uint64_t next_content_;
  std::atomic<uint32_t> on_their_way_{0};
  uint32_t depth_ = 1;  // how many may be
};

}  // namespace tablestore::powercut
