// How the work beside the callers' own threads is run: by threads in an OSD (own_threads.h), or
// step by step in a simulator, so that one seed gives one history.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
class FileSystem;
struct ColumnFamilyOptions;
struct DBOptions;
}  // namespace rocksdb

namespace tablestore {

// A piece of work that goes on beside others. Its end (the destructor) returns when the work is
// not running any more; whoever owns the work has told it to stop before.
class Worker {
 public:
  virtual ~Worker() = default;
};

// One for all work of an engine and of the store above it; outlives both.
class Threads {
 public:
  virtual ~Threads() = default;

  // False: nothing runs and no time passes unless somebody makes a step. Then nobody may sleep, and
  // who would wait calls advance() until there is nothing to wait for: see wait() below.
  virtual bool run_by_themselves() const = 0;

  enum class Urgency {
    usual,
    waited_for,  // others wait for it: it soon runs once it can (thread.h, wake_up_soon())
  };
  // Begins a piece of work: `run` is called once, in a thread "ts_<name>", and returns when its
  // owner says so. Where nothing runs by itself, `step` is one bounded part of the same, made by
  // whoever steps; true where there was something to do.
  virtual std::unique_ptr<Worker> start(const std::string& name, Urgency urgency,
                                        std::function<void()> run,
                                        std::function<bool()> step) = 0;

  // Makes a step of a piece of work that is not in the midst of one. Where none has anything to do,
  // the world outside moves on: only that can help who waits. Never called where work runs by
  // itself.
  virtual void advance() = 0;

  // Waits on `changed`, with `lock` held at the call and at the return, until `done()`.
  template <typename Lock, typename Condition, typename Done>
  void wait(Lock& lock, Condition& changed, Done done) {
    if (run_by_themselves()) {
      changed.wait(lock, done);
      return;
    }
    while (!done()) {
      lock.unlock();
      advance();
      lock.lock();
    }
  }
  // The same for `duration` at most; whether it is done. Where no time passes, one advance().
  template <typename Lock, typename Condition, typename Duration, typename Done>
  bool wait_for(Lock& lock, Condition& changed, Duration duration, Done done) {
    if (run_by_themselves()) return changed.wait_for(lock, duration, done);
    if (!done()) {
      lock.unlock();
      advance();
      lock.lock();
    }
    return done();
  }

  // A point at which work passes from one thread to another, or may. Nothing happens there, but in
  // a test that holds a thread up just then.
  virtual void hand_over() {}

  // The table's own work: what RocksDB runs on, beside the file system that it is given.
  virtual std::unique_ptr<rocksdb::Env> table_env(std::shared_ptr<rocksdb::FileSystem> fs) = 0;
  virtual void adjust_table(rocksdb::DBOptions* db, rocksdb::ColumnFamilyOptions* family) = 0;
  // The table's disk has failed: `end` ends the process. Called from within RocksDB, in any of its
  // threads, where no exception may pass: who ends a life by one does so later, before anything
  // else is done.
  virtual void end_within_table(const std::function<void()>& end) { end(); }
  // After a call that lets RocksDB work in the background: returns when that may go on by itself,
  // or has ended.
  virtual void table_called(rocksdb::DB& db,
                            std::span<rocksdb::ColumnFamilyHandle* const> families) = 0;
  // Before the table is closed, which waits for all that it does in the background.
  virtual void table_closes() {}
  // The caller is about to wait until none of the table's background work is left, or has done so.
  virtual void table_waits(bool /*begins*/) {}
};

}  // namespace tablestore
