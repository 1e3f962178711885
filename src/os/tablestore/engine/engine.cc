// Puts the rooms together. What happens in them: commit/, recovery.cc, container/, table/, log/.
#include "os/tablestore/engine/engine.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "os/tablestore/engine/commit/checkpointer.h"
#include "os/tablestore/engine/commit/commit_lane.h"
#include "os/tablestore/engine/commit/data_write.h"
#include "os/tablestore/engine/commit/voucher.h"
#include "os/tablestore/engine/container/background.h"
#include "os/tablestore/engine/container/container_files.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/format/label.h"
#include "os/tablestore/engine/io/file_watch.h"
#include "os/tablestore/engine/io/iov_cursor.h"
#include "os/tablestore/engine/own_threads.h"
#include "os/tablestore/engine/recovery.h"
#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/salvage.h"
#include "os/tablestore/engine/space/erasures.h"
#include "os/tablestore/engine/space/passed_compaction.h"
#include "os/tablestore/engine/space/relief.h"
#include "os/tablestore/engine/space/space_account.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "os/tablestore/engine/table/row_overlay.h"
#include "os/tablestore/engine/troubles.h"

namespace tablestore {

namespace {

constexpr uint64_t mib = 1 << 20;
constexpr size_t iov_max = 1024;  // of one write request
constexpr unsigned open_threads = 16;  // most of the time they wait for the disk
constexpr uint64_t scarce_part = 3;    // space is scarce where less than this part is available

void fill_defaults(Reporter* reporter) {
  if (!reporter->log)
    reporter->log = [](Reporter::Level level, const std::string& line) {
      if (level <= Reporter::Level::warning) std::fprintf(stderr, "tablestore: %s\n", line.c_str());
    };
  if (!reporter->fatal)
    reporter->fatal = [](const std::string& line) {
      std::fprintf(stderr, "tablestore: fatal: %s\n", line.c_str());
      std::abort();
    };
}

std::shared_ptr<Threads> threads_of(const EngineOptions& o) {
  return o.threads ? o.threads : std::make_shared<OwnThreads>();
}

// Some hundreds of files at most, and a small store is not all one container.
uint64_t automatic_container_bytes(uint64_t available) {
  return std::clamp<uint64_t>(std::bit_floor(available / 256), 8 * mib, 1024 * mib);
}

// A larger log makes rarer checkpoints, and fewer and larger files of the table; but a restart
// replays up to half of it, and a small disk has better uses.
uint64_t automatic_log_bytes(uint64_t available, uint64_t segment_bytes) {
  const uint64_t wanted = std::min<uint64_t>(available / 16, 512 * mib);
  return std::max<uint64_t>(2, wanted / segment_bytes) * segment_bytes;
}

uint64_t available_for(const EngineOptions& o, const DiskSpace& space) {
  return o.capacity_bytes ? std::min(o.capacity_bytes, space.available_bytes)
                          : space.available_bytes;
}

Status check_geometry(const EngineOptions& o) {
  if (o.store_uuid.size() != 16) return Status(EINVAL, "the store's uuid must be 16 bytes");
  if (o.segment_bytes == 0 || o.segment_bytes % mib || o.log_bytes % o.segment_bytes ||
      (o.log_bytes && o.log_bytes < 2 * o.segment_bytes))
    return Status(EINVAL,
                  "log size must be at least two segments and a multiple of them, a segment a "
                  "multiple of 1 MiB: check tablestore_log_size and tablestore_segment_size");
  if (o.container_bytes % (largest_slot_blocks * block_bytes))
    return Status(EINVAL, "tablestore_container_size must be a multiple of 4 MiB");
  return {};
}

TableOptions table_options(const EngineOptions& o) {
  TableOptions t;
  t.memtable_bytes = o.memtable_bytes;
  t.cache_bytes = o.table_cache_bytes;
  t.cache = o.table_cache;
  t.option_string = o.table_options;
  t.open_files = o.table_open_files;
  t.delete_range_threshold = o.delete_range_threshold;
  t.compact_on_deletion_window = o.compact_on_deletion_window;
  t.compact_on_deletion_trigger = o.compact_on_deletion_trigger;
  t.compact_on_passing = o.compact_on_passing;
  t.read_retries = o.read_retries;
  t.auto_compactions = !o.read_only;
  if (o.troubles) t.troubles = o.troubles;
  if (o.reporter.log) t.reporter = o.reporter;
  return t;
}

ContainerOptions container_options(const EngineOptions& o, const Label& label) {
  ContainerOptions c;
  c.container_bytes = label.container_bytes;
  c.capacity_bytes = o.capacity_bytes;
  c.prepare_bytes_per_second = o.prepare_bytes_per_second;
  c.punch_bytes_per_second = o.punch_bytes_per_second;
  c.prepare_ahead_bytes = o.prepare_ahead_bytes;
  c.stock_bytes = o.stock_bytes;
  c.quiet_steps = o.quiet_steps;
  c.provision_bytes = o.provision_bytes;
  c.last_resort_bytes = std::min(o.last_resort_bytes, label.log_bytes / 4);
  return c;
}

// mkfs's part of provision_bytes: at most what containers may ever take.
Status provision(Disk& disk, const EngineOptions& o, const Label& label) {
  auto space = disk.space();
  if (!space.ok()) return space.status();
  const OtherSpace others{label.log_bytes, table_reserve_bytes({}, label.log_bytes, false)};
  const uint64_t available = GrowthPolicy(container_options(o, label))
                                 .state({}, space->available_bytes, others)
                                 .growable_bytes;
  uint64_t bytes = o.provision_bytes;
  if (o.capacity_bytes) bytes = std::min(bytes, available);
  bytes = bytes / label.container_bytes * label.container_bytes;
  const auto no_space = [&] {
    return Status(ENOSPC, disk.name() + ": " + std::to_string(available / mib) +
                              " MiB available for objects, tablestore_provision_size wants " +
                              std::to_string(bytes / mib) +
                              " MiB of them written: make it smaller, or the file system larger");
  };
  if (bytes > available) return no_space();
  uint64_t told = 0;
  const Status s = Containers::provision(disk, label.container_bytes, bytes, [&](uint64_t made) {
    if (!o.reporter.log || (made - told < 1024 * mib && made < bytes)) return;
    told = made;
    o.reporter.log(Reporter::Level::info, "mkfs: " + std::to_string(made / mib) + " of " +
                                              std::to_string(bytes / mib) +
                                              " MiB of containers are written");
  });
  return s.code() == ENOSPC ? no_space() : s;
}

// What is wrong with the file system itself. A store that is there opens all the same.
Status refuse_unsafe(Disk& disk, const EngineOptions& o) {
  for (const Concern& concern : disk.concerns()) {
    if (concern.refuses_mkfs) return Status(ENOTSUP, concern.line);
    if (o.reporter.log) o.reporter.log(Reporter::Level::warning, concern.line);
  }
  return {};
}

void warn_of_unsafe(Disk& disk, const Reporter& reporter, Troubles& troubles) {
  std::map<std::string, std::string> lines;
  for (const Concern& concern : disk.concerns()) {
    reporter.log(Reporter::Level::warning, concern.line);
    std::string& line = lines[concern.trouble];
    line += (line.empty() ? "" : "; ") + concern.line;
  }
  for (const auto& [trouble, line] : lines) troubles.raise(trouble, line);
}

// Of a store that was expanded or shrunk. 0: as large as the file system.
uint64_t capacity_of(const Label& label) {
  const auto key = label.keys.find("capacity");
  uint64_t bytes = 0;
  if (key == label.keys.end()) return 0;
  const char* const end = key->second.data() + key->second.size();
  const auto parsed = std::from_chars(key->second.data(), end, bytes);
  return parsed.ec == std::errc() && parsed.ptr == end ? bytes : 0;
}

StoreUuid to_uuid(const std::string& bytes) {
  StoreUuid uuid{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), uuid.size()), uuid.begin());
  return uuid;
}

}  // namespace

// Members in the order in which they depend on each other: destroyed from the last to the first.
struct Engine::Impl {
  Impl(Disk& d, EngineOptions o)
      : disk(d),
        options(std::move(o)),
        threads(threads_of(options)),
        troubles(options.troubles ? options.troubles : std::make_shared<Troubles>()) {
    options.troubles = troubles;
  }
  ~Impl() {
    watch.reset();
    background.reset();
    if (relief) relief->stop();
    if (passed_compaction) passed_compaction->cancel();
    if (lane) lane->stop();  // it calls the others, and a checkpoint may wait for it
    voucher.reset();
    checkpointer.reset();
    if (passed_compaction && threads->run_by_themselves()) table->end_background();
    passed_compaction.reset();
  }

  std::chrono::milliseconds end_patience() const {
    return std::chrono::milliseconds(options.end_patience_ms);
  }

  Disk& disk;
  EngineOptions options;
  const std::shared_ptr<Threads> threads;
  const std::shared_ptr<Troubles> troubles;
  Label label;
  Counters counters;
  std::atomic<uint64_t> row_reads{0};  // calls, of one or many
  std::unique_ptr<LogRing> log;
  // Set before fatal() is called, which takes its time: a core of the process, a dump of its log.
  std::atomic<bool> is_ending{false};
  std::unique_ptr<Table> table;
  std::unique_ptr<Containers> containers;
  std::unique_ptr<Ballast> ballast;
  std::unique_ptr<Ballast> last_ballast;  // for opening the store, and nothing else
  std::unique_ptr<SpaceAccount> account;
  std::unique_ptr<Erasures> erasures;
  std::unique_ptr<Relief> relief;
  std::unique_ptr<PassedCompaction> passed_compaction;
  // What nobody knows the owner of is not given back, so that recovery has the ballasts only.
  const std::function<bool()> make_room = [this] {
    return relief ? relief->make_room() : ballast->release() || last_ballast->release();
  };
  std::unique_ptr<WriteQueue> writes;
  InFlightWrites in_flight;
  std::unique_ptr<CommitLane> lane;
  std::unique_ptr<Checkpointer> checkpointer;
  std::unique_ptr<Voucher> voucher;
  std::unique_ptr<Background> background;
  std::unique_ptr<FileWatch> watch;  // of log and containers
  std::atomic<bool> ownership_is_known{true};
  std::atomic<bool> free_is_free{true};  // no object may be in it
  std::atomic<bool> allocation_is_known{true};
  // Of an adopt_owned(): blocks that no row owns any more, until a checkpoint has told.
  std::vector<Run> given_up;

  Status open();
  Status open_ballast();
  Status open_table();
  void begin_relief();
  SpaceUsage space();
  Status adopt(const std::map<uint32_t, BlockBitmap>& owned_by_rows);
  Status give_back_given_up();
  std::unique_ptr<FileWatch> make_watch();
  // For a write, which cannot fail: waits until the process has a descriptor for the file.
  HeldFile hold(File& file);
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Status Engine::format(Disk& disk, const EngineOptions& options) {
  if (auto s = check_geometry(options); !s.ok()) return s;
  auto exists = disk.exists("label");
  if (!exists.ok()) return exists.status();
  if (*exists) return Status(EEXIST, disk.name() + " holds a store already");
  if (auto s = refuse_unsafe(disk, options); !s.ok()) return s;
  auto space = disk.space();
  if (!space.ok()) return space.status();
  const uint64_t available = available_for(options, *space);
  const uint64_t log_bytes = options.log_bytes
                                 ? options.log_bytes
                                 : automatic_log_bytes(available, options.segment_bytes);
  if (space->available_bytes < 2 * log_bytes + 64 * mib)
    return Status(ENOSPC, disk.name() + ": " + std::to_string(space->available_bytes / mib) +
                              " MiB available, a store needs its log (tablestore_log_size = " +
                              std::to_string(log_bytes / mib) +
                              " MiB), as much for its table, and 64 MiB more");
  // What an interrupted mkfs left: there is no label, so there is no store.
  for (const char* dir : {"log", "table", "containers"})
    if (auto s = disk.remove_tree(dir); !s.ok()) return s;
  if (auto s = LogRing::format(disk, log_bytes, options.segment_bytes); !s.ok()) return s;
  const auto threads = threads_of(options);
  if (auto s = Table::format(disk, table_options(options), *threads); !s.ok()) return s;
  {
    auto table = Table::open(disk, table_options(options), *threads);
    if (!table.ok()) return table.status();
    if (auto s = format_recovery_rows(**table); !s.ok()) return s;
    if (auto s = (*table)->on_failed_sync({}); !s.ok()) return s;
  }
  if (auto s = Containers::format(disk); !s.ok()) return s;
  Label label;
  label.store_uuid = to_uuid(options.store_uuid);
  label.incompat = incompat_allocation_chunks;
  if (options.compress_log) label.incompat |= incompat_compressed_groups;
  label.made_by = label.opened_by = this_release;
  label.log_bytes = log_bytes;
  label.segment_bytes = options.segment_bytes;
  label.container_bytes =
      options.container_bytes ? options.container_bytes : automatic_container_bytes(available);
  if (auto s = provision(disk, options, label); !s.ok()) return s;
  if (auto s = disk.sync_dir(""); !s.ok()) return s;
  label.created_unix_seconds = uint64_t(std::chrono::duration_cast<std::chrono::seconds>(
                                            std::chrono::system_clock::now().time_since_epoch())
                                            .count());
  return write_label(disk, label);
}

Status Engine::Impl::open() {
  fill_defaults(&options.reporter);
  options.reporter.fatal = [this, fatal = std::move(options.reporter.fatal)](
                               const std::string& line) {
    is_ending = true;
    fatal(line);
  };
  if (!threads->run_by_themselves()) options.gather_percent = options.quick_flush_us = 0;
  const auto start = std::chrono::steady_clock::now();
  bool label_needs_repair = false;
  auto found = read_label(disk, &label_needs_repair);
  if (!found.ok()) return found.status();
  label = *found;
  if (options.capacity_bytes == 0) options.capacity_bytes = capacity_of(label);
  if (!options.store_uuid.empty() && to_uuid(options.store_uuid) != label.store_uuid)
    return Status(EINVAL, disk.name() + ": the label belongs to another store than this one; "
                                        "check that the right directory is mounted here");
  if (!options.read_only)
    if (auto s = check_writable(disk, label); !s.ok()) return s;
  // The log first: its locks say whether anybody else has this store open.
  auto ring = LogRing::open(
      disk, label.log_bytes, label.segment_bytes,
      [this](const std::string& line) { options.reporter.log(Reporter::Level::warning, line); });
  if (!ring.ok()) return ring.status();
  log = ring.take();
  if (auto s = open_ballast(); !s.ok()) return s;
  ContainerOptions of_containers = container_options(options, label);
  of_containers.open_threads = threads->run_by_themselves() ? open_threads : 1;
  // Where a write does not go to its place, what was written there is worth nothing.
  if (std::ranges::any_of(disk.concerns(), [](const Concern& concern) {
        return concern.trouble == not_direct_io;
      }))
    of_containers.stock_bytes = 0;
  containers = std::make_unique<Containers>(disk, of_containers, counters);
  if (auto s = containers->open(); !s.ok()) return s;
  if (auto s = open_table(); !s.ok()) return s;
  options.group_bytes_max = std::min(options.group_bytes_max, log->capacity_bytes() / 4);
  const std::function<Status()> claim_format = [this] {
    if (label.incompat & incompat_allocation_chunks) return Status();
    Label claimed = label;
    claimed.incompat |= incompat_allocation_chunks;
    const Status s = write_label(disk, claimed);
    if (s.ok()) label = claimed;
    return s;
  };
  auto recovered = recover({*log, *table, *containers, counters, options.reporter, *troubles,
                             label.store_uuid, options.group_bytes_max, claim_format, make_room,
                             options.accept_log_loss, options.replay_bytes});
  if (!recovered.ok()) return recovered.status();
  table->bound_memtables();
  // At once, before others take that space: the next start may find not a byte either.
  if (!options.read_only) last_ballast->make();
  ownership_is_known = recovered->ownership_is_known;
  free_is_free = ownership_is_known && !options.for_repair;
  allocation_is_known = recovered->allocation_is_known;
  // Not before it is certain that the store opens: one that is refused stays as it is.
  if (label_needs_repair && options.read_only)
    options.reporter.log(Reporter::Level::warning,
                         disk.name() + ": one copy of the label is damaged; a store that is opened "
                                       "for use writes it anew");
  if (label_needs_repair && !options.read_only) {
    options.reporter.log(Reporter::Level::warning,
                         disk.name() + ": one copy of the label is damaged; writing it anew");
  }
  if (label_needs_repair || label.opened_by != this_release) {
    label.opened_by = this_release;
    if (auto s = write_label(disk, label); !s.ok()) return s;
  }
  writes = disk.make_write_queue();
  lane = std::make_unique<CommitLane>(
      CommitParts{*threads, *log, *table, *containers, *writes, in_flight, counters,
                  options.reporter, options.group_durable, is_ending, make_room,
                  label.store_uuid, bool(label.incompat & incompat_compressed_groups)},
      CommitLimits{.group_bytes_max = options.group_bytes_max,
                   .gather_percent = options.gather_percent,
                   .quick_flush = std::chrono::microseconds(options.quick_flush_us),
                   .small_data_bytes = options.small_data_bytes,
                   .capture_chunks_max = options.capture_chunks_max},
      recovered->head, recovered->tail, recovered->saved_bytes);
  checkpointer =
      std::make_unique<Checkpointer>(*threads, *lane, *table, counters, options.reporter,
                                     make_room);
  lane->on_log_pressure([this] { checkpointer->request(); });
  voucher = std::make_unique<Voucher>(*threads, *lane,
                                      std::chrono::milliseconds(options.vouch_after_ms));
  lane->on_unvouched([this] { voucher->request(); });
  containers->on_failed_flush([this](const Status& error) {
    options.reporter.fatal("cannot flush container files: " + error.what() +
                           why_it_stops(error.code()));
  });
  if (auto s = table->on_failed_sync([this](const Status& error) {
        is_ending = true;
        threads->end_within_table([this, error] {
          options.reporter.fatal("cannot flush: " + error.what() + why_it_stops(error.code()));
        });
      }, &is_ending);
      !s.ok())
    return s;
  background = std::make_unique<Background>(
      *containers, *threads,
      [this](const Status& error) { options.reporter.fatal("container files: " + error.what()); },
      [this]() -> std::optional<uint64_t> {
        if (!lane->is_at_rest()) return std::nullopt;
        return counters.transactions + counters.reads + row_reads;
      });
  begin_relief();
  containers->fill_owned();
  watch = make_watch();
  warn_of_unsafe(disk, options.reporter, *troubles);
  counters.recovery_ns = uint64_t(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  // Before anything is acknowledged. It takes the leases, so that nobody had to wait until now.
  return threads->run_by_themselves() ? watch->look() : Status();
}

// To open the table takes some space, and so does a checkpoint that is due.
Status Engine::Impl::open_ballast() {
  const uint64_t bytes = ballast_bytes(label.log_bytes);
  ballast = std::make_unique<Ballast>(disk, "ballast", bytes, bytes);
  last_ballast = std::make_unique<Ballast>(
      disk, "ballast-to-open", last_ballast_bytes(label.log_bytes), last_ballast_least_bytes);
  for (Ballast* each : {ballast.get(), last_ballast.get()})
    if (auto s = each->open(); !s.ok()) return s;
  const auto space = read_repeatedly([this] { return disk.space(); });
  if (!space.ok()) return space.status();
  if (space->available_bytes < ballast->bytes() && ballast->release())
    options.reporter.log(Reporter::Level::warning,
                         disk.name() + ": only " + std::to_string(space->available_bytes / mib) +
                             " MiB are available, the ballast is used to open the store");
  return {};
}

// Where there is no space for what is replayed, all of it stays in memory until there is.
Status Engine::Impl::open_table() {
  TableOptions of_table = table_options(options);
  const auto space = read_repeatedly([this] { return disk.space(); });
  if (!space.ok()) return space.status();
  if (space->available_bytes < 2 * label.log_bytes)
    of_table.first_memtable_bytes = 4 * label.log_bytes;
  for (;;) {
    auto opened = Table::open(disk, of_table, *threads);
    if (!opened.ok() && is_lack_of_space(opened.status().code()) && make_room()) continue;
    if (!opened.ok()) return opened.status();
    table = opened.take();
    return {};
  }
}

SpaceUsage Engine::Impl::space() {
  SpaceUsage u;
  u.data_bytes = containers->allocator().usage().owned_blocks * block_bytes;
  u.container_bytes = containers->file_bytes();
  u.table_bytes = table->file_bytes();
  u.log_bytes = log->capacity_bytes();
  u.reserve_bytes = account->others().reserve_bytes;
  u.ballast_bytes = ballast->held_bytes();
  u.available_bytes = containers->free_bytes() + lane->pending_free_bytes();
  u.total_bytes = u.data_bytes + u.available_bytes + u.table_bytes + u.log_bytes;
  return u;
}

void Engine::Impl::begin_relief() {
  account = std::make_unique<SpaceAccount>(*table, *ballast, *last_ballast, label.log_bytes,
                                           threads->run_by_themselves());
  containers->set_others([this] { return account->others(); });
  const auto space_is_scarce = [this] {
    const SpaceUsage usage = space();
    return usage.available_bytes < usage.total_bytes / scarce_part;
  };
  erasures = std::make_unique<Erasures>(
      *table, counters, space_is_scarce, [this] { checkpointer->request_in_any_case(); });
  passed_compaction =
      std::make_unique<PassedCompaction>(*threads, *table, counters, space_is_scarce);
  relief = std::make_unique<Relief>(Relief::Parts{
      disk, *threads, *containers, *ballast, *last_ballast, *troubles, free_is_free,
      [this] { return table->compaction_lacked_space(); }, [this] { erasures->look(); },
      [this](const std::string& line) { options.reporter.log(Reporter::Level::error, line); },
      [this](const Status& error) {
        options.reporter.fatal("container files: " + error.what());
      }});
  containers->on_growth([this](const Status& s) { relief->growth_told(s); });
}

std::unique_ptr<FileWatch> Engine::Impl::make_watch() {
  auto visit_files = [this](const std::function<Status(File&)>& visitor) {
    if (auto s = log->visit_files(visitor); !s.ok()) return s;
    return containers->visit_files(visitor);
  };
  return std::make_unique<FileWatch>(FileWatch::Parts{
      visit_files, *threads, *troubles,
      [this](const std::string& line) {
        options.reporter.log(Reporter::Level::warning, disk.name() + ": " + line);
      },
      [this](const Status& error) {
        options.reporter.fatal("files of the store: " + error.what());
      }});
}

HeldFile Engine::Impl::hold(File& file) {
  for (unsigned tries = 0;; ++tries) {
    const Status s = file.hold();
    if (s.ok()) return HeldFile(file);
    if (!is_lack(s.code())) {
      options.reporter.fatal("cannot write data: " + s.what());
      std::abort();  // fatal() must not return
    }
    if (tries % 100 == 0)
      options.reporter.log(Reporter::Level::error,
                           "writes wait until there is what the process lacks: " + s.what());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Result<std::unique_ptr<Engine>> Engine::open(Disk& disk, EngineOptions options) {
  auto impl = std::make_unique<Impl>(disk, std::move(options));
  if (auto s = impl->open(); !s.ok()) return s;
  impl->lane->start(impl->threads->run_by_themselves() ? disk.make_write_queue() : nullptr);
  impl->checkpointer->start();
  if (impl->options.read_only) return std::unique_ptr<Engine>(new Engine(std::move(impl)));
  impl->voucher->start();
  if (impl->free_is_free) {
    impl->containers->refill_last_resort();  // before the table is given it
    impl->background->start();
    impl->relief->start();
    impl->passed_compaction->start();
  }
  impl->watch->start();
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Status Engine::close() {
  if (impl_->options.read_only) return {};
  impl_->background.reset();
  impl_->relief->stop();
  impl_->passed_compaction->cancel();
  if (!impl_->lane->drain(impl_->end_patience()))
    return Status(ETIMEDOUT, impl_->disk.name() +
                                 ": closing without a checkpoint, because nothing gets on: is the "
                                 "file system full? Nothing acknowledged is lost, the next start "
                                 "goes on from the log");
  vouch();
  return impl_->checkpointer->run_now(impl_->end_patience());
}

Status Engine::reserve(uint64_t bytes) {
  if (needs_adoption())
    return Status(EROFS, impl_->disk.name() + ": which blocks objects own is not known since a "
                                              "part of the log was lost; run "
                                              "ceph-objectstore-tool --op repair");
  if (bytes == 0) return {};
  Status s = impl_->containers->reserve(bytes);
  if (s.code() == ENOSPC && impl_->lane->pending_free_bytes() > 0) {
    impl_->lane->wait_released(impl_->end_patience());
    s = impl_->containers->reserve(bytes);
  }
  return s;
}

Status Engine::reserve_at_last(uint64_t bytes) {
  if (needs_adoption()) return reserve(bytes);  // says why not
  return impl_->containers->reserve_at_last(bytes);
}

void Engine::unreserve(uint64_t bytes) { impl_->containers->unreserve(bytes); }

namespace {

bool continues(const Run& a, const Extent& b) {
  return a.container == b.container && a.end() == b.block;
}

}  // namespace

std::vector<Extent> Engine::write(Txn& txn, std::span<const iovec> iov, std::any keep_alive,
                                  std::vector<uint32_t>* checksums) {
  const size_t first_checksum = checksums->size();
  crc32c_blocks(iov, checksums);
  const std::span<const uint32_t> crcs = std::span(*checksums).subspan(first_checksum);
  const std::vector<Extent> extents = impl_->containers->allocate(crcs.size() * block_bytes);
  const auto owner = std::make_shared<const std::any>(std::move(keep_alive));
  IovCutter cutter(iov);
  const size_t first_write = txn.writes_.size();
  size_t block = 0;
  for (const Extent& e : extents) {
    std::vector<iovec> piece;
    cutter.cut(e.length_bytes(), &piece);
    Txn::DataWrite* last =
        txn.writes_.size() > first_write ? txn.writes_.back().get() : nullptr;
    if (!last || !continues(last->run, e) || last->op.iov.size() + piece.size() > iov_max) {
      txn.writes_.push_back(std::make_unique<Txn::DataWrite>());
      last = txn.writes_.back().get();
      last->run = {e.container, e.block, 0};
      last->op.file = &impl_->containers->file(e.container);
      last->held = impl_->hold(*last->op.file);
      last->op.offset = e.offset_bytes();
      last->keep_alive = owner;
      last->txn = &txn;
    }
    last->run.blocks += e.blocks;
    last->slots.push_back(e);
    last->op.iov.insert(last->op.iov.end(), piece.begin(), piece.end());
    last->first_touch |= impl_->containers->allocator().is_unwritten(e);
    block += e.blocks;
  }
  require(block == crcs.size(), "as much space as data");
  for (size_t i = first_write, at = 0; i < txn.writes_.size(); ++i) {
    Txn::DataWrite& w = *txn.writes_[i];
    w.checksum = crc32c_of_blocks(crcs.subspan(at, w.run.blocks));
    at += w.run.blocks;
  }
  txn.data_bytes_ += crcs.size() * block_bytes;
  impl_->lane->start_writes(txn, first_write);
  return extents;
}

void Engine::submit(std::shared_ptr<Txn> txn) { impl_->lane->submit(std::move(txn)); }
bool Engine::submit_here(std::shared_ptr<Txn> txn) {
  return impl_->lane->submit_here(std::move(txn));
}
void Engine::commit_here() { impl_->lane->commit_here(); }
void Engine::hurry() { impl_->lane->hurry(); }
void Engine::abandon(Txn& txn) { impl_->lane->abandon(txn); }

Status Engine::read(const Run& run, std::span<std::byte> out) {
  ++impl_->counters.reads;
  impl_->counters.read_bytes += out.size();
  if (impl_->in_flight.read(run, out)) {
    ++impl_->counters.reads_in_flight_hits;
    return {};
  }
  return impl_->containers->read(run, out);
}

Result<bool> Engine::get(Family family, std::string_view key, std::string* value) {
  ++impl_->row_reads;
  return impl_->table->get(family, key, value);
}

Status Engine::check_on_disk(Family family, std::string_view key, std::string_view value) {
  return impl_->table->check_on_disk(family, key, value);
}

Result<std::vector<std::optional<std::string>>> Engine::get(Family family,
                                                            std::span<const std::string> keys) {
  ++impl_->row_reads;
  return impl_->table->get(family, keys);
}

std::unique_ptr<RowIterator> Engine::iterate(Family family, std::string_view lower,
                                             std::string_view upper, AtDamage at_damage) {
  ++impl_->row_reads;
  return impl_->table->iterate(family, lower, upper, at_damage);
}

Status Engine::visit(
    const Txn& txn, Family family, std::string_view lower, std::string_view upper,
    const std::function<void(std::string_view key, std::string_view value)>& visitor) {
  const RowOverlay overlay(txn.rows_, family, lower, upper);
  return overlay.visit(*iterate(family, lower, upper), visitor);
}

void Engine::drain() { impl_->lane->drain(); }
bool Engine::wait_applied() { return impl_->lane->drain(impl_->end_patience()); }
bool Engine::wait_durable() { return impl_->lane->wait_durable(impl_->end_patience()); }
bool Engine::wait_released() { return impl_->lane->wait_released(impl_->end_patience()); }
bool Engine::vouch() { return impl_->lane->vouch(impl_->end_patience()); }
Status Engine::checkpoint() { return impl_->checkpointer->run_now(impl_->end_patience()); }
Status Engine::compact(const std::atomic<bool>* canceled) {
  return impl_->table->compact(canceled);
}

Status Engine::drop_caches() {
  impl_->table->drop_caches();
  return {};
}

void Engine::resize_table_cache(uint64_t bytes) { impl_->table->resize_cache(bytes); }

std::set<uint32_t> Engine::close_containers(unsigned max_live_percent) {
  if (!knows_owners()) return {};
  impl_->containers->close_containers(max_live_percent);
  return closed_containers();
}

std::set<uint32_t> Engine::closed_containers() const {
  return impl_->containers->allocator().closed();
}

uint64_t Engine::closed_live_bytes() const {
  return impl_->containers->allocator().closed_live_blocks() * block_bytes;
}

unsigned Engine::remove_emptied_containers() {
  unsigned count = 0;
  for (uint64_t bytes = 0;; ++count) {
    const auto removed = impl_->containers->remove_emptied(&bytes);
    if (!removed.ok())
      impl_->options.reporter.fatal("container files: " + removed.status().what());
    if (!removed.ok() || nothing_to_do(removed)) return count;
  }
}

void Engine::open_containers() { impl_->containers->allocator().open_all(); }

SpaceUsage Engine::space() { return impl_->space(); }

EngineMemory Engine::memory() const {
  return {.table_cache_bytes = impl_->table->cache_bytes(),
          .memtable_bytes = impl_->table->memory_bytes(),
          .bitmap_bytes = impl_->containers->allocator().bitmap_bytes(),
          .in_flight_bytes = impl_->in_flight.bytes() + impl_->lane->applier_bytes()};
}

uint64_t Engine::estimate_row_bytes(Family family, std::string_view begin, std::string_view end) {
  return impl_->table->estimate_bytes(family, begin, end);
}

const Counters& Engine::counters() const { return impl_->counters; }

std::string Engine::store_uuid() const {
  return std::string(impl_->label.store_uuid.begin(), impl_->label.store_uuid.end());
}

std::map<uint32_t, BlockBitmap> Engine::owned_blocks() {
  std::map<uint32_t, BlockBitmap> owned;
  for (uint32_t container : impl_->containers->allocator().containers())
    if (auto bitmap = impl_->containers->allocator().owned_bitmap(container))
      owned.emplace(container, std::move(*bitmap));
  return owned;
}

std::vector<ContainerUsage> Engine::containers() const {
  std::vector<ContainerUsage> all = impl_->containers->allocator().usage_by_container();
  // Any of them may be renamed or removed at this moment.
  for (ContainerUsage& each : all)
    each.path = ContainerFiles::path_of(each.container, each.slot_class);
  return all;
}

Result<uint64_t> Engine::give_back() {
  uint64_t bytes = 0;
  const auto worked = impl_->containers->relieve_step(UINT64_MAX, &bytes);
  if (!worked.ok()) return worked.status();
  return bytes;
}

bool Engine::needs_adoption() const { return !impl_->ownership_is_known; }
bool Engine::knows_owners() const {
  return impl_->ownership_is_known && impl_->allocation_is_known;
}

Status Engine::adopt_owned(const std::map<uint32_t, BlockBitmap>& owned_by_rows) {
  impl_->background->stop();
  impl_->relief->stop();
  impl_->containers->release_last_resort();
  drain();
  Status s = impl_->adopt(owned_by_rows);
  if (s.ok() && !knows_owners()) {
    auto txn = std::make_shared<Txn>();
    txn->erase(Family::super, engine_rows::ownership_unknown());
    txn->erase(engine_rows::of_copies, engine_rows::ownership_unknown());
    txn->erase(Family::super, engine_rows::trouble(allocation_unknown));
    submit(std::move(txn));
    drain();
    impl_->ownership_is_known = impl_->allocation_is_known = true;
    impl_->troubles->clear(allocation_unknown);
  }
  if (impl_->free_is_free && !needs_adoption()) {
    impl_->background->start();
    impl_->relief->start();
  }
  return s;
}

// By a checkpoint, not by transactions: there may be more blocks than the log has room for, and
// recovery would judge blocks that get an owner by data that nobody has the checksums of.
Status Engine::Impl::adopt(const std::map<uint32_t, BlockBitmap>& owned_by_rows) {
  if (!given_up.empty())  // by an earlier call
    if (auto s = give_back_given_up(); !s.ok()) return s;
  auto no_longer_owned = containers->allocator().adopt_owned(owned_by_rows);
  if (!no_longer_owned.ok()) return no_longer_owned.status();
  given_up = no_longer_owned.take();
  free_is_free = true;  // what is given up counts as owned still
  return give_back_given_up();
}

// Not before a checkpoint: a recovery might still find that they have an owner, in a file that is
// gone. Where it fails they stay held, and the next one, or close(), makes durable what was
// adopted.
Status Engine::Impl::give_back_given_up() {
  if (auto s = checkpointer->run_now(); !s.ok()) return s;
  for (const Run& run : given_up) containers->allocator().give_back(run);
  given_up.clear();
  return {};
}

bool Engine::settle_log_loss() {
  auto txn = std::make_shared<Txn>();
  txn->erase(Family::super, engine_rows::trouble(log_loss));
  submit(std::move(txn));
  if (!wait_durable()) return false;
  impl_->troubles->clear(log_loss);
  return true;
}

Result<std::vector<DamagedTableFile>> Engine::find_table_damage() {
  return impl_->table->find_damage();
}

Result<std::vector<DamagedTableFile>> Engine::salvage_table(
    const std::function<void(Family family, std::string_view key)>& lost,
    const SalvageFound& found) {
  drain();
  return salvage({*impl_->table, impl_->containers->allocator(),
                  [this] { return impl_->checkpointer->run_now(); },
                  [this](std::shared_ptr<Txn> txn) {
                    submit(std::move(txn));
                    drain();
                  },
                  found},
                 lost);
}

FreeSpace Engine::free_space() const { return impl_->containers->allocator().free_space(); }

void Engine::visit_free_runs(
    const std::function<void(unsigned slot_class, const Run& run)>& visitor) const {
  impl_->containers->allocator().visit_free_runs(visitor);
}

Result<uint64_t> Engine::punch() {
  uint64_t sum = 0;
  for (;;) {
    uint64_t bytes = 0;
    const auto worked = impl_->containers->punch_step(&bytes);
    if (!worked.ok()) return worked.status();
    if (*worked != Worked::yes) return sum;
    sum += bytes;
  }
}

EngineGauges Engine::gauges() {
  EngineGauges g;
  g.log_used_bytes = impl_->lane->log_used_bytes();
  g.log_capacity_bytes = impl_->log->capacity_bytes();
  g.log_is_pressed = impl_->lane->is_log_pressed();
  g.table_bytes = impl_->table->file_bytes();
  const Table::Work work = impl_->table->work();
  g.table_pending_compaction_bytes = work.pending_compaction_bytes;
  g.table_flushed_bytes = work.flushed_bytes;
  g.table_compacted_bytes = work.compacted_bytes;
  for (const auto& c : impl_->containers->allocator().usage().classes)
    g.unprepared_free_bytes += c.unwritten_free_blocks * block_bytes;
  return g;
}

std::vector<std::pair<std::string, uint64_t>> Engine::statistics() {
  std::vector<std::pair<std::string, uint64_t>> all;
  for (const auto& [name, member] : counter_names)
    all.emplace_back(name, (impl_->counters.*member).load());
  all.emplace_back("write_requests", impl_->lane->write_requests());
  all.emplace_back("log_used_bytes", impl_->lane->log_used_bytes());
  all.emplace_back("log_capacity_bytes", impl_->log->capacity_bytes());
  all.emplace_back("pending_free_bytes", impl_->lane->pending_free_bytes());
  const EngineMemory held = memory();
  all.emplace_back("bitmap_bytes", held.bitmap_bytes);
  all.emplace_back("in_flight_bytes", held.in_flight_bytes);
  const SpaceUsage usage_now = space();
  all.emplace_back("table_reserve_bytes", usage_now.reserve_bytes);
  all.emplace_back("ballast_bytes", usage_now.ballast_bytes);
  const Allocator& allocator = impl_->containers->allocator();
  all.emplace_back("containers_at_most_25_percent_live", allocator.count_nearly_empty(25));
  all.emplace_back("containers_at_most_50_percent_live", allocator.count_nearly_empty(50));
  const AllocatorUsage usage = allocator.usage();
  all.emplace_back("containers", usage.containers());
  for (size_t c = 0; c < usage.classes.size(); ++c) {
    const auto& k = usage.classes[c];
    if (k.containers == 0) continue;
    const std::string prefix = "class_" + std::to_string(slot_blocks(unsigned(c)) * 4) + "K_";
    all.emplace_back(prefix + "containers", k.containers);
    all.emplace_back(prefix + "bytes", k.blocks * block_bytes);
    all.emplace_back(prefix + "free_bytes", k.free_blocks * block_bytes);
    all.emplace_back(prefix + "unwritten_free_bytes", k.unwritten_free_blocks * block_bytes);
    all.emplace_back(prefix + "punched_bytes", k.punched_blocks * block_bytes);
  }
  impl_->table->add_statistics(&all);
  return all;
}

}  // namespace tablestore
