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
#include <vector>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/table/row_combiner.h"
#include "os/tablestore/engine/table/table.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

// Threads: whoever has taken the commit lane queues groups, and a checkpoint its rows; the work
// "apply" writes what is queued. `mutex_` guards the queue. The work waits for nothing but space on
// the file system, and for what it reads of the table where a range is erased, so whoever has the
// lane may wait for it.
//
// No commit waits for the rows to be applied. So the work lingers for about a millisecond, until
// some groups are worth a batch of the table, but not where somebody waits for applied().
class Applier {
 public:
  // `make_room`: see CommitParts.
  Applier(Threads& threads, Table& table, Counters& counters, const Reporter& reporter,
          const std::function<bool()>& make_room)
      : threads_(threads),
        table_(table),
        counters_(counters),
        reporter_(reporter),
        make_room_(make_room),
        combiner_([&table](const Row& range, CountedRows* erasures) {
          return table.list_erasures(range, erasures);
        }) {}
  ~Applier() { stop(); }

  void start();
  // Ends the work after what it has in hand; what is queued is dropped, as by a crash.
  void stop();

  // Transactions of one durable group, in log order. Blocks while too much is queued; later where
  // the table lacks space, which the next group may free.
  void queue(std::vector<std::shared_ptr<Txn>> group);
  // The engine's own rows, after all groups that were queued before. `done` runs when they are in
  // the table.
  void queue(uint32_t count, std::string rows, std::function<void()> done);

  // The next queue() does not block.
  bool has_room() const;
  uint64_t queued_bytes() const;  // of rows, and of what is being applied

  // Somebody waits for applied() of a transaction that is on its way.
  void hurry();

 private:
  struct Item {
    std::vector<std::shared_ptr<Txn>> group;
    uint32_t count = 0;  // the engine's own rows
    std::string rows;
    std::function<void()> done;
    uint64_t bytes = 0;
  };
  void push(Item item);
  void run();
  bool wait_for_rows();
  // Some MiB of what is queued, as one batch. False where there was nothing.
  bool step();
  std::vector<Item> take();
  void write(std::string batch);

  Threads& threads_;
  Table& table_;
  Counters& counters_;
  const Reporter& reporter_;
  const std::function<bool()>& make_room_;
  RowCombiner combiner_;          // step()'s

  mutable std::mutex mutex_;
  std::condition_variable work_;  // the work waits
  std::condition_variable room_;  // the lane waits, or a checkpoint
  std::deque<Item> queue_;
  uint64_t queued_bytes_ = 0;     // what is being applied included
  std::chrono::steady_clock::time_point hurried_until_{};
  bool lacks_space_ = false;      // the table, for what is being applied
  bool stopping_ = false;
  std::unique_ptr<Worker> worker_;
};

}  // namespace tablestore
