#include "test/tablestore/sim/stepped_threads.h"

#include <algorithm>
#include <cerrno>

#include "os/tablestore/engine/require.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/system_clock.h"

namespace tablestore::sim {

namespace {

class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
  void Logv(rocksdb::InfoLogLevel, const char*, va_list) override {}
};

// After an error RocksDB's background work sleeps for a second; where no time passes, neither does
// that one.
class SleeplessClock : public rocksdb::SystemClockWrapper {
 public:
  using rocksdb::SystemClockWrapper::SystemClockWrapper;
  const char* Name() const override { return "SleeplessClock"; }
  void SleepForMicroseconds(int) override {}
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
  if (name == "prepare" || name == "shrink") return Helps::never;
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
  for (size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i]->helps == which && !workers_[i]->in_step() && workers_[i]->make_step())
      return true;
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
  return std::make_unique<SleeplessEnv>(rocksdb::NewCompositeEnv(fs));
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
  family->disable_auto_compactions = true;
  family->arena_block_size = 32 << 10;
  family->compression = rocksdb::kNoCompression;
}

void SteppedThreads::table_called(rocksdb::DB& db,
                                  std::span<rocksdb::ColumnFamilyHandle* const> families) {
  table_ = &db;
  families_.assign(families.begin(), families.end());
  // Pausing waits for what runs.
  if (db.PauseBackgroundWork().ok()) db.ContinueBackgroundWork().PermitUncheckedError();
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
