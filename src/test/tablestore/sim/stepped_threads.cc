#include "test/tablestore/sim/stepped_threads.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "os/tablestore/engine/require.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/system_clock.h"

namespace tablestore::sim {

namespace {

// Of those that flush: RocksDB slows writes down when a family has 20 files that want it.
constexpr unsigned calls_without_compaction = 8;

class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
  void Logv(rocksdb::InfoLogLevel, const char*, va_list) override {}
};

// Of background work, in its thread.
thread_local unsigned sleeps = 0;

// After an error RocksDB's background work sleeps for a second; where no time passes, neither does
// that one.
class SleeplessClock : public rocksdb::SystemClockWrapper {
 public:
  using rocksdb::SystemClockWrapper::SystemClockWrapper;
  const char* Name() const override { return "SleeplessClock"; }
  void SleepForMicroseconds(int) override { ++sleeps; }
};

class SleeplessEnv : public rocksdb::EnvWrapper {
 public:
  explicit SleeplessEnv(std::unique_ptr<rocksdb::Env> env) : EnvWrapper(std::move(env)) {
    file_system_ = target()->GetFileSystem();
    system_clock_ = std::make_shared<SleeplessClock>(target()->GetSystemClock());
  }
  const char* Name() const override { return "SleeplessEnv"; }
  void SleepForMicroseconds(int) override {}
};

}  // namespace

// RocksDB's background jobs. Flushes run in their thread, as who asked for one waits for it;
// compactions are queued, and run where and when the simulator says. So are those that RocksDB
// makes of its own accord beside one that somebody waits for: which of the two came first would be
// for the threads to say.
class SteppedThreads::TableJobs : public std::enable_shared_from_this<TableJobs> {
 public:
  using Function = void (*)(void*);
  struct Job {
    Function run;
    void* arg;
    void* tag;
    Function unschedule;
    rocksdb::Env::Priority priority;
  };

  // `pool`: where threads are.
  void schedule(rocksdb::Env* pool, const Job& job) {
    {
      std::lock_guard lock(mutex_);
      pool_ = pool;
      if (ended_ && job.priority != rocksdb::Env::HIGH) {
        if (job.unschedule) job.unschedule(job.arg);  // the table's mutex is held, as it should be
        return;
      }
      if (job.priority != rocksdb::Env::HIGH && !runs_at_once_ &&
          !(runs_what_is_waited_for_ && is_waited_for(job))) {
        queue_.push_back(job);
        return;
      }
    }
    start(job);
  }
  int unschedule(rocksdb::Env* pool, void* tag, rocksdb::Env::Priority priority) {
    std::vector<Job> taken;
    {
      std::lock_guard lock(mutex_);
      for (const Job& job : queue_)
        if (job.tag == tag && job.priority == priority) taken.push_back(job);
      std::erase_if(queue_, [&](const Job& job) {
        return job.tag == tag && job.priority == priority;
      });
    }
    for (const Job& job : taken)
      if (job.unschedule) job.unschedule(job.arg);
    return int(taken.size()) + pool->UnSchedule(tag, priority);
  }
  // The queue's first, in this thread; false where there is none, or it has failed and is to be
  // tried again later: then it is in the queue once more.
  bool run_one() {
    Job job;
    {
      std::lock_guard lock(mutex_);
      if (queue_.empty()) return false;
      job = queue_.front();
      queue_.pop_front();
    }
    const unsigned before = sleeps;
    job.run(job.arg);
    wait();
    return sleeps == before;
  }
  // A table is about to be opened.
  void begin() {
    std::lock_guard lock(mutex_);
    ended_ = false;
  }
  // As if they had never been asked for; nor are any that are asked for until begin(), as by a
  // flush that is still under way.
  void forget() {
    std::deque<Job> jobs;
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      jobs.swap(queue_);
    }
    for (const Job& job : jobs)
      if (job.unschedule) job.unschedule(job.arg);
  }
  // Whether compactions that somebody asks for run in a thread.
  void run_what_is_waited_for(bool yes) {
    std::lock_guard lock(mutex_);
    runs_what_is_waited_for_ = yes;
  }
  bool has_queued() {
    std::lock_guard lock(mutex_);
    return !queue_.empty();
  }
  // Whether all jobs run in threads, also those that are queued by now.
  void run_at_once(bool yes) {
    std::deque<Job> jobs;
    {
      std::lock_guard lock(mutex_);
      runs_at_once_ = yes;
      if (yes) jobs.swap(queue_);
    }
    for (const Job& job : jobs) start(job);
  }
  // For what runs in threads.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  struct Started {
    const std::shared_ptr<TableJobs> all;  // outlives the table while the job ends
    const Job job;
  };
  // RocksDB tags its jobs with the address of the database, plus one where it was asked for them
  // (DBImpl::GetTaskTag).
  static bool is_waited_for(const Job& job) { return reinterpret_cast<uintptr_t>(job.tag) % 2; }
  void start(const Job& job) {
    {
      std::lock_guard lock(mutex_);
      ++running_;
      flushing_ += job.priority == rocksdb::Env::HIGH;
    }
    pool_->Schedule(run_started, new Started{shared_from_this(), job}, job.priority, job.tag,
                    unschedule_started);
  }
  // One at a time does I/O: a compaction begins when the flush that called for it has ended.
  static void run_started(void* arg) {
    const std::unique_ptr<Started> started(static_cast<Started*>(arg));
    TableJobs& all = *started->all;
    if (started->job.priority != rocksdb::Env::HIGH) {
      std::unique_lock lock(all.mutex_);
      all.changed_.wait(lock, [&] { return all.flushing_ == 0; });
    }
    started->job.run(started->job.arg);
    all.ended(started->job);
  }
  static void unschedule_started(void* arg) {
    const std::unique_ptr<Started> started(static_cast<Started*>(arg));
    if (started->job.unschedule) started->job.unschedule(started->job.arg);
    started->all->ended(started->job);
  }
  void ended(const Job& job) {
    std::lock_guard lock(mutex_);
    --running_;
    flushing_ -= job.priority == rocksdb::Env::HIGH;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;
  rocksdb::Env* pool_ = nullptr;
  bool runs_what_is_waited_for_ = false;
  bool runs_at_once_ = false;
  bool ended_ = false;
  unsigned running_ = 0;
  unsigned flushing_ = 0;
};

namespace {

template <typename Jobs>
class JobsEnv : public SleeplessEnv {
 public:
  JobsEnv(std::unique_ptr<rocksdb::Env> env, std::shared_ptr<Jobs> jobs)
      : SleeplessEnv(std::move(env)), jobs_(std::move(jobs)) {}
  const char* Name() const override { return "JobsEnv"; }
  void Schedule(void (*run)(void*), void* arg, Priority priority, void* tag,
                void (*unschedule)(void*)) override {
    jobs_->schedule(target(), {run, arg, tag, unschedule, priority});
  }
  int UnSchedule(void* tag, Priority priority) override {
    return jobs_->unschedule(target(), tag, priority);
  }

 private:
  const std::shared_ptr<Jobs> jobs_;
};

bool is_linked(rocksdb::CompressionType type) {
  return std::ranges::count(rocksdb::GetSupportedCompressions(), type) > 0;
}

}  // namespace

// Registered from its beginning to its end.
class SteppedThreads::Stepped : public Worker {
 public:
  Stepped(SteppedThreads& all, const std::string& name, std::function<bool()> step)
      : name(name), helps(SteppedThreads::helps(name)), all_(all), step_(std::move(step)) {
    require(!all_.find(name), "one piece of work of a name");
    all_.workers_.push_back(this);
  }
  ~Stepped() override { std::erase(all_.workers_, this); }

  bool make_step() {
    require(!in_step_, "no step within a step of the same work");
    all_.end_if_due();
    in_step_ = true;
    struct End {
      bool& in_step;
      ~End() { in_step = false; }
    } end{in_step_};
    return step_();
  }
  bool in_step() const { return in_step_; }

  const std::string name;
  const Helps helps;

 private:
  SteppedThreads& all_;
  const std::function<bool()> step_;
  bool in_step_ = false;
};

SteppedThreads::Helps SteppedThreads::helps(std::string_view name) {
  if (name == "prepare" || name == "shrink" || name == "relieve" || name == "vouch" ||
      name == "compact" || name == "compact_passed")
    return Helps::never;
  return name == "checkpoint" ? Helps::last : Helps::first;
}

SteppedThreads::Stepped* SteppedThreads::find(std::string_view name) const {
  const auto found = std::ranges::find(workers_, name, &Stepped::name);
  return found == workers_.end() ? nullptr : *found;
}

bool SteppedThreads::step(std::string_view name) {
  Stepped* const worker = find(name);
  require(worker, "there is work of this name");
  return worker->make_step();
}

void SteppedThreads::step_all(std::string_view name) {
  while (step(name)) {
  }
}

std::unique_ptr<Worker> SteppedThreads::start(const std::string& name, Urgency,
                                              std::function<void()>, std::function<bool()> step) {
  return std::make_unique<Stepped>(*this, name, std::move(step));
}

bool SteppedThreads::step_any(Helps which) {
  const size_t from = in_turn_ ? next_ : 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const size_t at = (from + i) % workers_.size();
    if (workers_[at]->helps != which || workers_[at]->in_step()) continue;
    next_ = at + 1;
    if (workers_[at]->make_step()) return true;
  }
  return false;
}

void SteppedThreads::advance() {
  // What applies rows waits for nobody, only for space on the file system; all others might wait
  // for it.
  const Stepped* apply = find("apply");
  const bool only_world_helps = apply && apply->in_step();
  if (!only_world_helps && (step_any(Helps::first) || step_any(Helps::last))) return;
  require(bool(stalled_), "somebody can help who waits");
  stalled_();
}

std::unique_ptr<rocksdb::Env> SteppedThreads::table_env(std::shared_ptr<rocksdb::FileSystem> fs) {
  auto env = rocksdb::NewCompositeEnv(fs);
  if (table_jobs_) {
    table_jobs_->begin();
    return std::make_unique<JobsEnv<TableJobs>>(std::move(env), table_jobs_);
  }
  return std::make_unique<SleeplessEnv>(std::move(env));
}

void SteppedThreads::adjust_table(rocksdb::DBOptions* db, rocksdb::ColumnFamilyOptions* family) {
  db->info_log = std::make_shared<NoLog>();
  db->max_file_opening_threads = 1;
  db->skip_stats_update_on_db_open = true;
  db->skip_checking_sst_file_sizes_on_db_open = true;
  db->stats_dump_period_sec = 0;
  db->stats_persist_period_sec = 0;
  db->listeners.clear();
  db->statistics = nullptr;
  family->arena_block_size = 32 << 10;
  family->disable_auto_compactions = !table_jobs_;
  // A write that waits for a compaction waits for a step that nobody takes.
  family->level0_slowdown_writes_trigger = family->level0_stop_writes_trigger = 10'000;
  if (!table_jobs_ || !is_linked(family->compression))
    family->compression = rocksdb::kNoCompression;
}

void SteppedThreads::table_called(rocksdb::DB& db,
                                  std::span<rocksdb::ColumnFamilyHandle* const> families) {
  table_ = &db;
  families_.assign(families.begin(), families.end());
  if (table_jobs_) {
    table_jobs_->wait();
    end_if_due();
    if (!compactions_wait_ || ++calls_since_compaction_ > calls_without_compaction)
      while (step_compaction()) {
      }
    return;
  }
  // Pausing waits for what runs.
  if (db.PauseBackgroundWork().ok()) db.ContinueBackgroundWork().PermitUncheckedError();
  end_if_due();
}

void SteppedThreads::end_within_table(const std::function<void()>& end) {
  std::lock_guard lock(mutex_);
  due_end_ = end;
}

void SteppedThreads::end_if_due() {
  std::function<void()> end;
  {
    std::lock_guard lock(mutex_);
    end.swap(due_end_);
  }
  if (end) end();
}

void SteppedThreads::step_compactions() { table_jobs_ = std::make_shared<TableJobs>(); }

bool SteppedThreads::step_compaction() {
  calls_since_compaction_ = 0;
  const bool done = table_jobs_ && table_jobs_->run_one();
  end_if_due();
  return done;
}

void SteppedThreads::forget_compactions() {
  if (table_jobs_) table_jobs_->forget();
  std::lock_guard lock(mutex_);
  due_end_ = nullptr;
}

void SteppedThreads::table_closes() {
  if (table_jobs_) table_jobs_->forget();
}

// What is queued would be waited for, for ever: it runs before that, in this thread, as always.
// What has failed then, and is queued once more, runs beside who waits.
void SteppedThreads::table_waits(bool begins) {
  if (!table_jobs_) return;
  while (begins && table_jobs_->run_one()) {
  }
  table_jobs_->run_at_once(begins && table_jobs_->has_queued());
  if (!begins) table_jobs_->wait();
}

void SteppedThreads::begin_compactions() {
  if (!table_jobs_) return;
  while (step_compaction()) {
  }
  table_jobs_->run_what_is_waited_for(true);
}

void SteppedThreads::end_compactions() {
  if (!table_jobs_) return;
  table_jobs_->wait();
  table_jobs_->run_what_is_waited_for(false);
}

Status SteppedThreads::flush_table() {
  rocksdb::FlushOptions o;
  o.allow_write_stall = true;
  const rocksdb::Status s = table_->Flush(o, families_);
  table_called(*table_, std::vector(families_));
  if (s.ok()) return {};
  return Status(s.IsNoSpace() ? ENOSPC : EIO, "table: flush: " + s.ToString());
}

}  // namespace tablestore::sim
