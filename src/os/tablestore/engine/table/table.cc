#include "os/tablestore/engine/table/table.h"

#include <algorithm>
#include <utility>

#include "os/tablestore/engine/table/counter_merge.h"
#include "os/tablestore/engine/table/failed_syncs.h"
#include "os/tablestore/engine/table/file_rows.h"
#include "os/tablestore/engine/table/prefix_blocks.h"
#include "os/tablestore/engine/table/quota_fs.h"
#include "os/tablestore/engine/table/repeated_table_reads.h"
#include "os/tablestore/engine/table/rocksdb_status.h"
#include "os/tablestore/engine/table/space_lack.h"
#include "os/tablestore/engine/table/table_damage.h"
#include "os/tablestore/engine/table/table_iterator.h"
#include "os/tablestore/engine/table/yielding_writer.h"
#include "os/tablestore/engine/thread.h"
#include "rocksdb/cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/listener.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/table_properties_collectors.h"
#include "rocksdb/write_batch.h"
#include "rocksdb/write_buffer_manager.h"

namespace tablestore {

namespace {

constexpr size_t table_block_bytes = 4096;
// Of a family: rows are not taken while there are so many that take none any more.
constexpr int memtables_max = 3;
constexpr size_t arena_bytes_max = 1 << 20;  // that a memtable takes at once
// Of rows that were erased, between two that are there: some milliseconds.
constexpr uint64_t passed_rows_max = 1 << 16;

constexpr int jobs_max = 2;  // a flush and a compaction

// Commits come before the writers of table files.
class PoliteWriters : public rocksdb::EventListener {
 public:
  const char* Name() const override { return "PoliteWriters"; }
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    thread_local bool done = false;
    if (!std::exchange(done, true)) take_short_turns();
  }
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override {
    thread_local bool done = false;
    if (std::exchange(done, true)) return;
    leave_room_for_others();
    take_short_turns();
  }
};

rocksdb::DBOptions db_options(rocksdb::Env* env, unsigned open_files) {
  rocksdb::DBOptions o;
  o.env = env;
  o.atomic_flush = true;
  o.avoid_flush_during_shutdown = true;
  o.max_background_jobs = jobs_max;
  o.max_open_files = int(open_files);
  o.keep_log_file_num = 4;
  o.max_log_file_size = 16 << 20;
  // Through the kernel's page cache: blocks that the table's cache has dropped, and files that have
  // just been written and are read next, stay in memory while nobody else wants it. What is written
  // is sent to the disk in small pieces (bytes_per_sync), because a flush of the log may have to
  // wait for all of it.
  o.use_direct_reads = false;
  // The kernel may read ahead, which it does where reads follow each other, as those of a range or
  // of a listing do.
  o.advise_random_on_open = false;
  o.use_direct_io_for_flush_and_compaction = false;
  o.bytes_per_sync = 256 << 10;
  o.enable_pipelined_write = false;
  o.allow_mmap_reads = false;
  o.track_and_verify_wals_in_manifest = false;
  o.open_with_damaged_files = true;  // TableDamage looks for them
  // Every change of the set of files writes a new MANIFEST, which replaces the old one by a rename.
  // An append would not do: ext4 may journal a longer size before the data is there, and RocksDB
  // refuses to open where a power cut has torn the last record.
  o.max_manifest_file_size = 1;
  o.manifest_preallocation_size = 64 << 10;  // each is small, and the file system may be full
  o.listeners.push_back(std::make_shared<PoliteWriters>());
  o.statistics = rocksdb::CreateDBStatistics();
  o.statistics->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
  return o;
}

uint64_t most_memtable_bytes(const TableOptions& options) {
  return std::max(options.memtable_bytes, options.first_memtable_bytes);
}

rocksdb::ColumnFamilyOptions family_options(Family family, const TableOptions& options,
                                            const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions o;
  // The bound of all families together (memtables_) is reached before that of one.
  o.write_buffer_size = most_memtable_bytes(options);
  o.max_write_buffer_number = memtables_max;
  // Small against that bound, so that a few rows of each family do not reach it.
  o.arena_block_size = std::min<size_t>(arena_bytes_max, options.memtable_bytes / 32);
  o.compression = rocksdb::kLZ4Compression;
  o.level_compaction_dynamic_level_bytes = true;
  o.level0_file_num_compaction_trigger = 4;
  o.max_bytes_for_level_base = 4 * options.memtable_bytes;
  // Looks for what is not there (a new object's name) end at the filter, also in a memtable.
  if (family == Family::object) {
    o.memtable_whole_key_filtering = true;
    o.memtable_prefix_bloom_size_ratio =
        0.02 * double(options.memtable_bytes) / double(o.write_buffer_size);
  }
  o.table_properties_collector_factories.push_back(make_yielding_writer(yield_turn));
  // Ranges of these are read.
  if (family == Family::object || family == Family::omap)
    o.table_properties_collector_factories.push_back(
        rocksdb::NewCompactOnDeletionCollectorFactory(options.compact_on_deletion_window,
                                                      options.compact_on_deletion_trigger));
  if (family == Family::super) o.merge_operator = make_counter_merge();
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  // Indices and filters in pieces as large as blocks of rows. In one piece each is of megabytes for
  // a large file: more than a shard of a small cache holds, and then every lookup reads it anew.
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.metadata_block_size = table_block_bytes;
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_top_level_index_and_filter = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  // A block that cannot be read has no row behind what its index says: see gaps_of().
  table.index_shortening = rocksdb::BlockBasedTableOptions::IndexShorteningMode::kNoShortening;
  if (family == Family::omap)
    table.flush_block_policy_factory = make_prefix_blocks(omap_pool_bytes);
  table.format_version = 5;
  table.block_size = table_block_bytes;
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return o;
}

Status open_database(Disk& disk, const TableOptions& options, bool create,
                     Threads& threads, const std::shared_ptr<rocksdb::Cache>& cache,
                     const std::shared_ptr<rocksdb::WriteBufferManager>& memtables,
                     rocksdb::Env* env,
                     const std::vector<std::shared_ptr<rocksdb::EventListener>>& listeners,
                     std::unique_ptr<rocksdb::DB>* db,
                     std::vector<rocksdb::ColumnFamilyHandle*>* handles) {
  rocksdb::DBOptions base = db_options(env, options.open_files);
  base.create_if_missing = create;
  base.create_missing_column_families = create;
  base.error_if_exists = create;
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (unsigned f = 0; f < families; ++f) {
    rocksdb::Options all(base, family_options(Family(f), options, cache));
    threads.adjust_table(&all, &all);
    if (!options.option_string.empty()) {
      rocksdb::Options parsed;
      const auto s = rocksdb::GetOptionsFromString(all, options.option_string, &parsed);
      if (!s.ok())
        return to_status(s, "tablestore_table_options \"" + options.option_string + "\"");
      all = parsed;
    }
    all.atomic_flush = true;  // what the engine's recovery rests on is not for choice
    all.avoid_flush_during_shutdown = true;
    // More of them at a time meet errors of RocksDB: a flush that waits for an older one that has
    // failed (facebook/rocksdb 11872), files that stay taken (11764), rows merged twice (13935).
    all.max_background_jobs = std::min(all.max_background_jobs, jobs_max);
    all.max_background_flushes = all.max_background_compactions = -1;
    if (!options.auto_compactions) all.disable_auto_compactions = true;
    all.max_bgerror_resume_count = 0;  // as TableDamage::OnErrorRecoveryBegin()
    all.write_buffer_manager = memtables;
    all.listeners.insert(all.listeners.end(), listeners.begin(), listeners.end());
    if (f == 0) base = rocksdb::DBOptions(all);
    descriptors.emplace_back(family_name(Family(f)), rocksdb::ColumnFamilyOptions(all));
  }
  rocksdb::DB* raw = nullptr;
  const auto s = rocksdb::DB::Open(base, disk.table_path("table"), descriptors, handles, &raw);
  db->reset(raw);
  return to_status(s, "open " + disk.table_path("table"));
}

}  // namespace

Table::Table(Disk& disk, const TableOptions& options, Threads& threads)
    : threads_(threads),
      read_retries_(options.read_retries),
      delete_range_threshold_(options.delete_range_threshold),
      compact_on_passing_(options.compact_on_passing),
      failed_syncs_(std::make_shared<FailedSyncs>()),
      env_(threads.table_env(
          watch_syncs(take_quota_for_space(repeat_reads(disk.table_fs(), read_retries_)),
                      failed_syncs_))),
      damage_(std::make_shared<TableDamage>(*env_, disk.table_path("table"), options.troubles,
                                            options.reporter)),
      space_lack_(std::make_shared<SpaceLack>()),
      cache_(options.cache ? options.cache : rocksdb::NewLRUCache(options.cache_bytes)),
      memtable_bytes_(options.memtable_bytes),
      // Whose own stall is not used: it would wait for ever for a flush that fails, as on a full
      // file system, where RocksDB's other one returns the error.
      memtables_(std::make_shared<rocksdb::WriteBufferManager>(most_memtable_bytes(options))) {}

Table::~Table() {
  if (!db_) return;
  file_rows_.reset();
  threads_.table_closes();
  rocksdb::CancelAllBackgroundWork(db_.get(), true);
  for (auto* h : handles_) db_->DestroyColumnFamilyHandle(h);
  db_->Close().PermitUncheckedError();
}

void Table::end_background() { rocksdb::CancelAllBackgroundWork(db_.get(), false); }

Status Table::format(Disk& disk, const TableOptions& options, Threads& threads) {
  if (auto s = disk.make_dir("table"); !s.ok()) return s;
  Table table(disk, options, threads);
  if (auto s = open_database(disk, options, true, threads, table.cache_, table.memtables_,
                             table.env_.get(), {table.damage_, table.space_lack_}, &table.db_,
                             &table.handles_);
      !s.ok())
    return s;
  if (auto s = table.failed_syncs_->first(); !s.ok()) return s;
  return disk.sync_dir("table");
}

Result<std::unique_ptr<Table>> Table::open(Disk& disk, const TableOptions& options,
                                           Threads& threads) {
  std::unique_ptr<Table> table(new Table(disk, options, threads));
  // RocksDB would make the directory before it finds that there is nothing in it.
  const std::string current = disk.table_path("table/CURRENT");
  const auto found = table->env_->FileExists(current);
  if (found.IsNotFound()) return Status(ENOENT, current + " is missing: the table is gone");
  if (!found.ok()) return to_status(found, "look for " + current);
  // The MANIFEST is read here, and wrong bytes may have been of the moment.
  for (unsigned tries = 1;; ++tries) {
    const Status s = open_database(disk, options, false, threads, table->cache_,
                                   table->memtables_, table->env_.get(),
                                   {table->damage_, table->space_lack_},
                                   &table->db_, &table->handles_);
    if (s.ok()) break;
    if (s.code() != EIO || tries == read_tries || !table->failed_syncs_->first().ok()) return s;
  }
  table->file_rows_ =
      std::make_unique<FileRows>(*table->db_, table->env_.get(), table->read_retries_);
  table->damage_->opened(*table->db_);
  threads.table_called(*table->db_, table->handles_);
  return table;
}

Status Table::on_failed_sync(std::function<void(const Status&)> f,
                             const std::atomic<bool>* is_ending) {
  return failed_syncs_->tell(std::move(f), is_ending);
}

Status Table::write(std::string* batch) {
  rocksdb::WriteBatch rows(std::move(*batch));
  rocksdb::WriteOptions o;
  o.disableWAL = true;
  const Status s = to_status(db_->Write(o, &rows), "write");
  if (!s.ok()) *batch = rows.Data();
  return s;
}

Result<bool> Table::get(Family family, std::string_view key, std::string* value) {
  rocksdb::PinnableSlice pinned;
  auto read = [&] {
    pinned.Reset();
    return db_->Get(rocksdb::ReadOptions(), handle(family), slice(key), &pinned);
  };
  auto s = read();
  rocksdb::Status error;
  const unsigned retries = read_retries_.max();
  const auto failed = [&s] { return !s.ok() && !s.IsNotFound(); };
  // What is damaged becomes known also where nothing is repeated.
  for (unsigned tried = 0; failed() && (tried < retries || tried == 0); ++tried) {
    error = s;
    if (!damage_->met(*db_, error) || retries == 0) break;
    s = read();
  }
  if (!error.ok() && !failed()) {
    damage_->passed(error);
    read_retries_.helped("table: " + error.ToString());
  }
  if (s.IsNotFound()) return false;
  if (!s.ok()) return to_status(s, std::string("read a row of ") + family_name(family));
  value->assign(pinned.data(), pinned.size());
  return true;
}

Result<std::vector<std::optional<std::string>>> Table::get(Family family,
                                                           std::span<const std::string> keys) {
  std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  db_->MultiGet(rocksdb::ReadOptions(), handle(family), keys.size(), slices.data(), values.data(),
                statuses.data());
  std::vector<std::optional<std::string>> rows(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].ok()) {
      rows[i] = values[i].ToString();
    } else if (!statuses[i].IsNotFound()) {
      // By itself: what fails a read of several need not be of this row.
      std::string value;
      auto found = get(family, keys[i], &value);
      if (!found.ok()) return found.status();
      if (*found) rows[i] = std::move(value);
    }
  }
  return rows;
}

Status Table::check_on_disk(Family family, std::string_view key, std::string_view value) {
  return file_rows_->check(handle(family), key, value);
}

std::unique_ptr<RowIterator> Table::iterate(Family family, std::string_view lower,
                                            std::string_view upper, AtDamage at_damage) {
  return std::make_unique<TableIterator>(
      TableIterator::Parts{*db_, *damage_, passed_, compact_on_passing_, read_retries_},
      family, handle(family), lower, upper, at_damage);
}

bool Table::list_erasures(const Row& erase_range, CountedRows* erasures) {
  const rocksdb::Slice lower = slice(erase_range.key), upper = slice(erase_range.value);
  rocksdb::ReadOptions o;
  o.iterate_lower_bound = &lower;
  o.iterate_upper_bound = &upper;
  o.max_skippable_internal_keys = passed_rows_max;
  const uint32_t count_before = erasures->count;
  const size_t bytes_before = erasures->rows.size();
  RowWriter writer(erasures->rows);
  const std::unique_ptr<rocksdb::Iterator> row(db_->NewIterator(o, handle(erase_range.family)));
  for (row->SeekToFirst(); row->Valid() && erasures->count < delete_range_threshold_; row->Next()) {
    writer.erase(erase_range.family, row->key().ToStringView());
    ++erasures->count;
  }
  if (row->status().ok() && erasures->count < delete_range_threshold_) return true;
  erasures->rows.resize(bytes_before);
  erasures->count = count_before;
  return false;
}

Status Table::flush() {
  rocksdb::FlushOptions o;
  o.wait = true;
  o.allow_write_stall = true;
  file_rows_->close_files();
  const Status s = to_status(db_->Flush(o, handles_), "flush");
  threads_.table_called(*db_, handles_);
  if (s.ok() && bound_memtables_.exchange(false)) memtables_->SetBufferSize(memtable_bytes_);
  return s;
}

Status Table::compact(const std::atomic<bool>* canceled) {
  for (auto* h : handles_)
    if (auto s = compact(h, nullptr, nullptr, {}, canceled); !s.ok()) return s;
  return {};
}

Status Table::compact(const PassedRange& range, const std::atomic<bool>* canceled) {
  const rocksdb::Slice first(range.first), last(range.last);
  rocksdb::CompactRangeOptions o;
  o.exclusive_manual_compaction = false;
  o.allow_write_stall = true;  // does not wait for what may not come
  // Erased rows get to the last level where a file is moved there as it is.
  o.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  return compact(handle(range.family), &first, range.last.empty() ? nullptr : &last, o, canceled);
}

Status Table::compact(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice* first,
                      const rocksdb::Slice* last, rocksdb::CompactRangeOptions options,
                      const std::atomic<bool>* canceled) {
  // RocksDB wants to change it, and does not.
  std::atomic<bool> stop{false};
  options.canceled = canceled ? const_cast<std::atomic<bool>*>(canceled) : &stop;
  if (auto s = damage_->begin_compaction(*db_); !s.ok()) return s;
  const auto s = db_->CompactRange(options, family, first, last);
  damage_->end_compaction(*db_);
  threads_.table_called(*db_, handles_);
  if (s.IsIncomplete()) return Status(ECANCELED, "the compaction of the table was interrupted");
  return to_status(s, "compact");
}

Result<std::vector<DamagedTableFile>> Table::find_damage() { return damage_->find_all(*db_); }

Status Table::rewrite(const std::vector<DamagedTableFile>& files) {
  rocksdb::CompactRangeOptions also_the_last_level;
  also_the_last_level.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  if (auto s = damage_->begin_rewrite(*db_, files); !s.ok()) return s;
  rocksdb::Status s;
  for (const DamagedTableFile& file : files) {
    const rocksdb::Slice first(file.first), last(file.last);
    if (s.ok()) s = db_->CompactRange(also_the_last_level, handle(file.family), &first, &last);
    threads_.table_called(*db_, handles_);
  }
  damage_->end_compaction(*db_);
  if (!s.ok()) return to_status(s, "write damaged files anew");
  if (const uint64_t left = damage_->files())
    return Status(EIO, "table: " + std::to_string(left) + " damaged files are left as they are");
  return {};
}

void Table::drop_caches() { cache_->EraseUnRefEntries(); }
void Table::resize_cache(uint64_t bytes) { cache_->SetCapacity(bytes); }
bool Table::compaction_lacked_space() { return space_lack_->take(); }
void Table::resume() {
  std::lock_guard lock(resuming_);
  threads_.table_waits(true);
  db_->Resume().PermitUncheckedError();
  threads_.table_waits(false);
}

uint64_t Table::file_bytes() {
  uint64_t sum = 0;
  for (auto* h : handles_) {
    uint64_t bytes = 0;
    if (db_->GetIntProperty(h, rocksdb::DB::Properties::kTotalSstFilesSize, &bytes)) sum += bytes;
  }
  return sum;
}

uint64_t Table::erasures_in_memory() {
  uint64_t rows = 0;
  db_->GetAggregatedIntProperty(rocksdb::DB::Properties::kNumDeletesActiveMemTable, &rows);
  return rows;
}

uint64_t Table::memory_bytes() const { return memtables_->memory_usage(); }
uint64_t Table::cache_bytes() const { return cache_->GetUsage(); }

TableSize Table::size() {
  TableSize size{file_bytes()};
  db_->GetAggregatedIntProperty(rocksdb::DB::Properties::kEstimatePendingCompactionBytes,
                                &size.pending_bytes);
  return size;
}

uint64_t Table::estimate_bytes(Family family, std::string_view begin, std::string_view end) {
  const rocksdb::Range range(slice(begin), slice(end));
  rocksdb::SizeApproximationOptions o;
  o.include_memtables = true;
  uint64_t bytes = 0;
  db_->GetApproximateSizes(o, handle(family), &range, 1, &bytes).PermitUncheckedError();
  return bytes;
}

Table::Work Table::work() const {
  Work work;
  db_->GetAggregatedIntProperty(rocksdb::DB::Properties::kEstimatePendingCompactionBytes,
                                &work.pending_compaction_bytes);
  const auto stats = db_->GetOptions().statistics;
  if (!stats) return work;
  work.flushed_bytes = stats->getTickerCount(rocksdb::FLUSH_WRITE_BYTES);
  work.compacted_bytes = stats->getTickerCount(rocksdb::COMPACT_WRITE_BYTES);
  return work;
}

void Table::add_statistics(std::vector<std::pair<std::string, uint64_t>>* out) {
  out->emplace_back("table_file_bytes", file_bytes());
  out->emplace_back("table_memtable_bytes", memory_bytes());
  out->emplace_back("table_cache_bytes", cache_bytes());
  out->emplace_back("table_read_errors", damage_->read_errors());
  out->emplace_back("table_damaged_files", damage_->files());
  const std::pair<const char*, const std::string*> properties[] = {
      {"table_pending_compaction_bytes",
       &rocksdb::DB::Properties::kEstimatePendingCompactionBytes},
      {"table_keys_estimated", &rocksdb::DB::Properties::kEstimateNumKeys},
  };
  for (const auto& [name, property] : properties) {
    uint64_t value = 0;
    db_->GetAggregatedIntProperty(*property, &value);
    out->emplace_back(name, value);
  }
  const auto stats = db_->GetOptions().statistics;
  if (!stats) return;
  out->emplace_back("table_flushed_bytes", stats->getTickerCount(rocksdb::FLUSH_WRITE_BYTES));
  out->emplace_back("table_cache_filled_bytes",
                    stats->getTickerCount(rocksdb::BLOCK_CACHE_BYTES_WRITE));
  out->emplace_back("table_compacted_bytes", stats->getTickerCount(rocksdb::COMPACT_WRITE_BYTES));
}

}  // namespace tablestore
