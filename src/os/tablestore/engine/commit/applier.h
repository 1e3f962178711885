// Puts the rows of durable groups into the table, in log order, beside the commit lane: while one
// group is applied, the next is written and flushed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/table/row_combiner.h"
#include "os/tablestore/engine/table/table.h"

namespace tablestore {

// Threads: the commit lane's calls apply(); one thread, its own or a simulator's, calls step().
// `mutex_` guards the queue. Nothing waits for the lane here, so the lane may wait for it.
//
// No commit waits for it either. So its thread lingers for about a millisecond, until some groups
// are worth a batch of the table, but not where somebody waits.
class Applier {
 public:
  Applier(Table& table, Counters& counters, const Reporter& reporter)
      : table_(table), counters_(counters), reporter_(reporter) {}
  ~Applier() { stop(); }

  void start();  // the thread
  // Instead: no thread. Where it would wait for space on the file system, it calls `wait`.
  void start_stepped(std::function<void()> wait) { stepped_wait_ = std::move(wait); }
  // Ends the thread after what it has in hand; what is queued is dropped, as by a crash.
  void stop();

  // Transactions of one durable group, in log order. Blocks while too much is queued.
  void apply(std::vector<std::shared_ptr<Txn>> group);
  // The engine's own rows, after all groups before. `done` runs when they are in the table.
  void apply(uint32_t count, std::string rows, std::function<void()> done);

  // Somebody waits for applied() of a transaction that is on its way.
  void hurry();

  // Applies what is queued, some MiB of it, as one batch. `wait`: blocks until there is something.
  // False where there was nothing.
  bool step(bool wait);

 private:
  struct Item {
    std::vector<std::shared_ptr<Txn>> group;
    uint32_t count = 0;  // the engine's own rows
    std::string rows;
    std::function<void()> done;
    uint64_t bytes = 0;
  };
  void push(Item item);
  std::vector<Item> take(bool wait);
  void linger(std::unique_lock<std::mutex>& lock);
  void write(std::string batch);

  Table& table_;
  Counters& counters_;
  const Reporter& reporter_;
  RowCombiner combiner_;                // of whoever calls step()
  std::function<void()> stepped_wait_;  // set: there is no thread

  std::mutex mutex_;
  std::condition_variable work_;  // the applier waits
  std::condition_variable room_;  // the lane waits
  std::deque<Item> queue_;
  uint64_t queued_bytes_ = 0;     // what is being applied included
  std::chrono::steady_clock::time_point hurried_until_{};
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tablestore
