// Puts the rooms together. What happens in them: commit/, recovery.cc, container/, table/, log/.
#include "os/tablestore/engine/engine.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "os/tablestore/engine/commit/checkpointer.h"
#include "os/tablestore/engine/commit/commit_lane.h"
#include "os/tablestore/engine/commit/data_write.h"
#include "os/tablestore/engine/container/background.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/format/label.h"
#include "os/tablestore/engine/io/iov_cursor.h"
#include "os/tablestore/engine/own_threads.h"
#include "os/tablestore/engine/recovery.h"
#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/row_overlay.h"

namespace tablestore {

namespace {

constexpr uint64_t mib = 1 << 20;
constexpr size_t iov_max = 1024;  // of one write request

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

// What stays available on the file system for the table's growth.
uint64_t headroom_bytes(uint64_t total) { return std::min<uint64_t>(1024 * mib, total / 20); }

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
  return {o.memtable_bytes, o.table_cache_bytes, o.table_options};
}

ContainerOptions container_options(const EngineOptions& o, const Label& label,
                                   const DiskSpace& space) {
  ContainerOptions c;
  c.container_bytes = label.container_bytes;
  const uint64_t total = o.capacity_bytes ? std::min(o.capacity_bytes, space.total_bytes)
                                          : space.total_bytes;
  c.headroom_bytes = headroom_bytes(total);
  if (o.capacity_bytes) {
    const uint64_t others = label.log_bytes + c.headroom_bytes;
    // 0 would mean no cap at all
    c.capacity_bytes = std::max(label.container_bytes,
                                o.capacity_bytes > others ? o.capacity_bytes - others : 0);
  }
  c.prepare_bytes_per_second = o.prepare_bytes_per_second;
  c.punch_bytes_per_second = o.punch_bytes_per_second;
  c.prepare_ahead_bytes = o.prepare_ahead_bytes;
  c.quiet_steps = o.quiet_steps;
  c.provision_bytes = o.provision_bytes;
  return c;
}

// mkfs's part of provision_bytes: at most what containers may ever take.
Status provision(Disk& disk, const EngineOptions& o, const Label& label) {
  auto space = disk.space();
  if (!space.ok()) return space.status();
  const ContainerOptions limits = container_options(o, label, *space);
  uint64_t bytes = o.provision_bytes;
  if (limits.capacity_bytes) bytes = std::min(bytes, limits.capacity_bytes);
  bytes = bytes / label.container_bytes * label.container_bytes;
  auto no_space = [&](uint64_t available) {
    return Status(ENOSPC, disk.name() + ": " + std::to_string(available / mib) +
                              " MiB available for objects, tablestore_provision_size wants " +
                              std::to_string(bytes / mib) +
                              " MiB of them written: make it smaller, or the file system larger");
  };
  const uint64_t available =
      space->available_bytes - std::min(space->available_bytes, limits.headroom_bytes);
  if (bytes > available) return no_space(available);
  uint64_t told = 0;
  const Status s = Containers::provision(disk, label.container_bytes, bytes, [&](uint64_t made) {
    if (!o.reporter.log || (made - told < 1024 * mib && made < bytes)) return;
    told = made;
    o.reporter.log(Reporter::Level::info, "mkfs: " + std::to_string(made / mib) + " of " +
                                              std::to_string(bytes / mib) +
                                              " MiB of containers are written");
  });
  return s.code() == ENOSPC ? no_space(available) : s;
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
      : disk(d), options(std::move(o)), threads(threads_of(options)) {}
  ~Impl() {
    background.reset();
    if (lane) lane->stop();  // it calls the checkpointer, and a checkpoint may wait for it
    checkpointer.reset();
  }

  Disk& disk;
  EngineOptions options;
  const std::shared_ptr<Threads> threads;
  Label label;
  Counters counters;
  std::unique_ptr<LogRing> log;
  std::unique_ptr<Table> table;
  std::unique_ptr<Containers> containers;
  std::unique_ptr<WriteQueue> writes;
  InFlightWrites in_flight;
  std::unique_ptr<CommitLane> lane;
  std::unique_ptr<Checkpointer> checkpointer;
  std::unique_ptr<Background> background;

  Status open();
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Status Engine::format(Disk& disk, const EngineOptions& options) {
  if (auto s = check_geometry(options); !s.ok()) return s;
  auto exists = disk.exists("label");
  if (!exists.ok()) return exists.status();
  if (*exists) return Status(EEXIST, disk.name() + " holds a store already");
  auto space = disk.space();
  if (!space.ok()) return space.status();
  const uint64_t available = available_for(options, *space);
  const uint64_t log_bytes = options.log_bytes
                                 ? options.log_bytes
                                 : automatic_log_bytes(available, options.segment_bytes);
  if (space->available_bytes < log_bytes + 64 * mib)
    return Status(ENOSPC, disk.name() + ": " + std::to_string(space->available_bytes / mib) +
                              " MiB available, a store needs its log (tablestore_log_size = " +
                              std::to_string(log_bytes / mib) + " MiB) and 64 MiB more");
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
  }
  if (auto s = Containers::format(disk); !s.ok()) return s;
  Label label;
  label.store_uuid = to_uuid(options.store_uuid);
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
  if (!threads->run_by_themselves()) options.gather_percent = options.quick_flush_us = 0;
  const auto start = std::chrono::steady_clock::now();
  bool label_needs_repair = false;
  auto found = read_label(disk, &label_needs_repair);
  if (!found.ok()) return found.status();
  label = *found;
  if (!options.store_uuid.empty() && to_uuid(options.store_uuid) != label.store_uuid)
    return Status(EINVAL, disk.name() + ": the label belongs to another store than this one; "
                                        "check that the right directory is mounted here");
  if (auto s = check_writable(disk, label); !s.ok()) return s;
  auto space = disk.space();
  if (!space.ok()) return space.status();
  // The log first: its locks say whether anybody else has this store open.
  auto ring = LogRing::open(disk, label.log_bytes, label.segment_bytes);
  if (!ring.ok()) return ring.status();
  log = ring.take();
  containers = std::make_unique<Containers>(disk, container_options(options, label, *space),
                                            counters);
  if (auto s = containers->open(); !s.ok()) return s;
  auto opened = Table::open(disk, table_options(options), *threads);
  if (!opened.ok()) return opened.status();
  table = opened.take();
  auto recovered =
      recover({*log, *table, *containers, counters, options.reporter, label.store_uuid});
  if (!recovered.ok()) return recovered.status();
  // Not before it is certain that the store opens: one that is refused stays as it is.
  if (label_needs_repair) {
    options.reporter.log(Reporter::Level::warning,
                         disk.name() + ": one copy of the label is damaged; writing it anew");
    if (auto s = write_label(disk, label); !s.ok()) return s;
  }
  writes = disk.make_write_queue();
  lane = std::make_unique<CommitLane>(
      CommitParts{*threads, *log, *table, *containers, *writes, in_flight, counters,
                  options.reporter, options.group_durable, label.store_uuid},
      CommitLimits{std::min(options.group_bytes_max, log->capacity_bytes() / 4),
                   options.gather_percent, std::chrono::microseconds(options.quick_flush_us),
                   options.small_data_bytes},
      recovered->head, recovered->tail);
  checkpointer =
      std::make_unique<Checkpointer>(*threads, *lane, *table, counters, options.reporter);
  lane->on_log_pressure([this] { checkpointer->request(); });
  background = std::make_unique<Background>(*containers, *threads, [this](const Status& error) {
    options.reporter.fatal("container files: " + error.what());
  });
  counters.recovery_ns = uint64_t(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  return {};
}

Result<std::unique_ptr<Engine>> Engine::open(Disk& disk, EngineOptions options) {
  auto impl = std::make_unique<Impl>(disk, std::move(options));
  if (auto s = impl->open(); !s.ok()) return s;
  impl->lane->start(impl->threads->run_by_themselves() ? disk.make_write_queue() : nullptr);
  impl->checkpointer->start();
  impl->background->start();
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Status Engine::close() {
  impl_->background.reset();
  drain();
  return checkpoint();
}

Status Engine::reserve(uint64_t bytes) {
  Status s = impl_->containers->reserve(bytes);
  if (s.code() == ENOSPC && impl_->lane->pending_free_bytes() > 0) {
    drain();  // what was freed last can be handed out after one more group
    s = impl_->containers->reserve(bytes);
  }
  return s;
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

Status Engine::read(const Extent& extent, std::span<std::byte> out) {
  ++impl_->counters.reads;
  impl_->counters.read_bytes += out.size();
  if (impl_->in_flight.read(extent, out)) {
    ++impl_->counters.reads_in_flight_hits;
    return {};
  }
  return impl_->containers->read(extent, out);
}

Result<bool> Engine::get(Family family, std::string_view key, std::string* value) {
  return impl_->table->get(family, key, value);
}

Result<std::vector<std::optional<std::string>>> Engine::get(Family family,
                                                            std::span<const std::string> keys) {
  return impl_->table->get(family, keys);
}

std::unique_ptr<RowIterator> Engine::iterate(Family family, std::string_view lower,
                                             std::string_view upper) {
  return impl_->table->iterate(family, lower, upper);
}

Status Engine::visit(
    const Txn& txn, Family family, std::string_view lower, std::string_view upper,
    const std::function<void(std::string_view key, std::string_view value)>& visitor) {
  const RowOverlay overlay(txn.rows_, family, lower, upper);
  return overlay.visit(*iterate(family, lower, upper), visitor);
}

void Engine::drain() { impl_->lane->drain(); }
Status Engine::checkpoint() { return impl_->checkpointer->run_now(); }
Status Engine::compact() { return impl_->table->compact(); }

Status Engine::drop_caches() {
  impl_->table->drop_caches();
  return {};
}

void Engine::resize_table_cache(uint64_t bytes) { impl_->table->resize_cache(bytes); }

SpaceUsage Engine::space() {
  SpaceUsage u;
  u.data_bytes = impl_->containers->allocator().usage().owned_blocks * block_bytes;
  u.container_bytes = impl_->containers->file_bytes();
  u.table_bytes = impl_->table->file_bytes();
  u.log_bytes = impl_->log->capacity_bytes();
  u.available_bytes = impl_->containers->free_bytes() + impl_->lane->pending_free_bytes();
  u.total_bytes = u.data_bytes + u.available_bytes + u.table_bytes + u.log_bytes;
  return u;
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

Status Engine::free_unowned(const std::map<uint32_t, BlockBitmap>& owned_by_rows) {
  auto txn = std::make_shared<Txn>();
  txn->barrier = true;
  for (const auto& [container, owned] : owned_blocks()) {
    const auto rows = owned_by_rows.find(container);
    for (uint32_t b = owned.next_set(0); b < owned.blocks(); b = owned.next_set(b + 1))
      if (rows == owned_by_rows.end() || !rows->second.test(b)) txn->free({container, b, 1});
  }
  submit(std::move(txn));
  drain();
  return {};
}

std::vector<std::pair<std::string, uint64_t>> Engine::statistics() {
  std::vector<std::pair<std::string, uint64_t>> all;
  for (const auto& [name, member] : counter_names)
    all.emplace_back(name, (impl_->counters.*member).load());
  all.emplace_back("write_requests", impl_->lane->write_requests());
  all.emplace_back("log_used_bytes", impl_->lane->log_used_bytes());
  all.emplace_back("log_capacity_bytes", impl_->log->capacity_bytes());
  all.emplace_back("pending_free_bytes", impl_->lane->pending_free_bytes());
  const AllocatorUsage usage = impl_->containers->allocator().usage();
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
