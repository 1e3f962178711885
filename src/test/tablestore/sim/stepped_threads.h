// How threads run in a simulator: not at all. Whoever simulates makes one step of one piece of work
// after the other, so that one seed gives one history.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "os/tablestore/engine/status.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore::sim {

// Everything in the one thread that uses the store.
//
// Who waits within a call (Threads::wait) is helped by the pieces of work in the order in which
// they were started, by the first that has something to do. Some are for the simulator alone to
// time: "prepare", "shrink", "relieve" and "vouch" never help, and "checkpoint" does only where
// nothing else can, as when the log is full. Or they help in turn, so that transactions are
// committed while a checkpoint waits for its rows.
class SteppedThreads : public Threads {
 public:
  // Of all in this process, from the next wait on.
  static void help_in_turn(bool yes) { in_turn_ = yes; }

  // Makes a step of that work; false where there was nothing to do.
  bool step(std::string_view name);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Until there is nothing to do.
  void step_all(std::string_view name);
  // What happens where somebody waits and no work can help: to give the store what it waits for, or
  // to end its life with an exception. By default the process ends.
  void when_stalled(std::function<void()> stalled) { stalled_ = std::move(stalled); }
  // Flushes the table, as it does of its own accord when a memtable is full: at any moment but
  // during a step of "apply", which is why a write queue's reap() may call it. Only while it is
  // open. ENOSPC: the file system is full.
  Status flush_table();
  rocksdb::DB* table() const { return table_; }

  // Before the table is opened: it compacts of its own accord, as in an OSD, and with compression;
  // at the end of the call that made a compaction due, or, where they wait, in a step. Where too
  // many wait some are made, because RocksDB would hold up writes for ever.
  void step_compactions();
  // Until the table is about to be closed: then none may wait.
  void let_compactions_wait(bool yes = true) { compactions_wait_ = yes; }
  // Before the table is destroyed: nothing is due any more.
  void forget_compactions();
  // False where there was nothing to do.
  bool step_compaction();
  // Around a call that compacts, and waits for that: this compaction runs in a thread, after those
  // that waited. Those that the table makes of its own accord meanwhile stay steps. What is in
  // memtables has been flushed before: the call would begin with that, and which of the two comes
  // first would be chance.
  void begin_compactions();
  void end_compactions();

  bool run_by_themselves() const override { return false; }
  std::unique_ptr<Worker> start(const std::string& name, Urgency urgency,
                                std::function<void()> run, std::function<bool()> step) override;
  void advance() override;
  // No sleeping, no statistics and log, which are most of what opening a small table takes, and
  // nothing in the background but what a call has asked for.
  std::unique_ptr<rocksdb::Env> table_env(std::shared_ptr<rocksdb::FileSystem> fs) override;
  void adjust_table(rocksdb::DBOptions* db, rocksdb::ColumnFamilyOptions* family) override;
  // It is the end when the table's call has returned, or at the next step.
  void end_within_table(const std::function<void()>& end) override;
  void table_called(rocksdb::DB& db,
                    std::span<rocksdb::ColumnFamilyHandle* const> families) override;
  // What waits to be compacted is forgotten: whoever closes the table would wait for it for ever.
  void table_closes() override;
  void table_waits(bool begins) override;

 private:
  class Stepped;
  enum class Helps { first, last, never };
  static Helps helps(std::string_view name);
  Stepped* find(std::string_view name) const;
  bool step_any(Helps which);
  class TableJobs;
  void end_if_due();

  static inline bool in_turn_ = false;
  std::vector<Stepped*> workers_;  // in the order in which they were started
  size_t next_ = 0;                // of these, where they help in turn
  std::function<void()> stalled_;
  rocksdb::DB* table_ = nullptr;
  std::shared_ptr<TableJobs> table_jobs_;  // null: the table does not compact by itself
  bool compactions_wait_ = false;
  unsigned calls_since_compaction_ = 0;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::mutex mutex_;  // guards what follows it
  std::function<void()> due_end_;
};

}  // namespace tablestore::sim
