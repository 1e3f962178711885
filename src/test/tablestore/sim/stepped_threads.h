// How threads run in a simulator: not at all. Whoever simulates makes one step of one piece of work
// after the other, so that one seed gives one history.
#pragma once

#include <string_view>
#include <vector>

#include "os/tablestore/engine/status.h"
#include "os/tablestore/engine/threads.h"

namespace tablestore::sim {

// Everything in the one thread that uses the store.
//
// Who waits within a call (Threads::wait) is helped by the pieces of work in the order in which
// they were started, by the first that has something to do. Three kinds are for the simulator alone
// to time: "prepare" and "shrink" never help, and "checkpoint" does only where nothing else can, as
// when the log is full.
class SteppedThreads : public Threads {
 public:
  // Makes a step of that work; false where there was nothing to do.
  bool step(std::string_view name);
  // Until there is nothing to do.
  void step_all(std::string_view name);
  // What happens where somebody waits and no work can help: to give the store what it waits for, or
  // to end its life with an exception. By default the process ends.
  void when_stalled(std::function<void()> stalled) { stalled_ = std::move(stalled); }
  // Flushes the table, as it does of its own accord when a memtable is full: at any moment but
  // during a step of "apply", which is why a write queue's reap() may call it. Only while it is
  // open. ENOSPC: the file system is full.
  Status flush_table();

  bool run_by_themselves() const override { return false; }
  std::unique_ptr<Worker> start(const std::string& name, Urgency urgency,
                                std::function<void()> run, std::function<bool()> step) override;
  void advance() override;
  // No sleeping, no statistics, log and compression, which are most of what opening a small table
  // takes, and nothing in the background but what a call has asked for.
  std::unique_ptr<rocksdb::Env> table_env(std::shared_ptr<rocksdb::FileSystem> fs) override;
  void adjust_table(rocksdb::DBOptions* db, rocksdb::ColumnFamilyOptions* family) override;
  void table_called(rocksdb::DB& db,
                    std::span<rocksdb::ColumnFamilyHandle* const> families) override;

 private:
  class Stepped;
  enum class Helps { first, last, never };
  static Helps helps(std::string_view name);
  Stepped* find(std::string_view name) const;
  bool step_any(Helps which);

  std::vector<Stepped*> workers_;  // in the order in which they were started
  std::function<void()> stalled_;
  rocksdb::DB* table_ = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

}  // namespace tablestore::sim
