// Compacts where readers had to pass many rows that were erased (PassedErasures).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/table/table.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore {

// The work "compact_passed". It begins soon after a reader has told, and rests then, for twenty
// times as long as that has taken, and ten seconds at least: readers may pass what others erase all
// the time. Each range costs a flush of what is in memory.
//
// `mutex_` guards what the table's readers and the destructor tell the work.
class PassedCompaction {
 public:
  // Where `space_is_scarce` nothing is compacted for readers: Erasures looks after that.
  PassedCompaction(Threads& threads, Table& table, Counters& counters,
                   std::function<bool()> space_is_scarce);
  // Interrupts a compaction.
  ~PassedCompaction() { stop(); }
  void start();
  void stop();

  // What was told until now, as far as it can be begun within a second. Where nothing runs by
  // itself it is for the caller to do this, with which the table's own work can be made to run.
  void compact_told();

 private:
  void run();

  Threads& threads_;
  Table& table_;
  Counters& counters_;
  const std::function<bool()> space_is_scarce_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool told_ = false;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<Worker> worker_;
};

}  // namespace tablestore
