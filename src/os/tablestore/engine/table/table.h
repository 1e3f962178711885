// The LSM table: RocksDB without a WAL of its own. The engine's log stands in for it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/io/disk.h"
#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/engine/table/passed_erasures.h"
#include "os/tablestore/engine/table/rows.h"
#include "os/tablestore/engine/threads.h"
#include "os/tablestore/engine/troubles.h"

namespace rocksdb {
class Cache;
class Slice;
class WriteBufferManager;
struct CompactRangeOptions;
}  // namespace rocksdb

namespace tablestore {

class FailedSyncs;
class FileRows;
class SpaceLack;
class TableDamage;

struct TableOptions {
  uint64_t memtable_bytes = 128 << 20;  // of all families together: see Table::memory_bytes()
  uint64_t first_memtable_bytes = 0;    // more than that, until bound_memtables()
  uint64_t cache_bytes = 256 << 20;
  std::string option_string;  // RocksDB DBOptions and ColumnFamilyOptions, over ours
  unsigned open_files = 1000;
  uint64_t delete_range_threshold = 1 << 20;    // of rows: see list_erasures()
  uint64_t compact_on_deletion_window = 32768;  // of rows: as EngineOptions has it
  uint64_t compact_on_deletion_trigger = 16384;
  uint64_t compact_on_passing = 256;
  bool auto_compactions = true;
  ReadRetries read_retries = {};
  std::shared_ptr<rocksdb::Cache> cache;        // of blocks; null: one of its own, of cache_bytes
  std::shared_ptr<Troubles> troubles = std::make_shared<Troubles>();
  Reporter reporter = {[](Reporter::Level, const std::string&) {}, {}};
};

struct TableSize {
  uint64_t file_bytes = 0;     // live table files
  uint64_t pending_bytes = 0;  // that compactions, which are due, have to write
};

// Owns the database below table/. Thread-safe; write() from one thread at a time.
//
// What survives a crash is some state between two write() calls: all families are flushed at the
// same cut (atomic_flush), also when RocksDB flushes of its own accord.
//
// Where a file cannot be read, the reads that need it fail, and all else goes on: table_damage.h.
class Table {
 public:
  static Status format(Disk& disk, const TableOptions& options, Threads& threads);
  static Result<std::unique_ptr<Table>> open(Disk& disk, const TableOptions& options,
                                             Threads& threads);
  ~Table();  // does not flush

  // Before anything is acknowledged. Called where a sync of a file or of a directory of the table
  // fails, in the thread that met it, which is within RocksDB: the store has to stop at once, as
  // what others have written may be lost with it. An error: one has failed already. `is_ending`:
  // see FailedSyncs::tell().
  Status on_failed_sync(std::function<void(const Status&)> f,
                        const std::atomic<bool>* is_ending = nullptr);

  // Writes a batch (RowBatch::take) to the memtables, atomically. Takes the batch; a lack
  // (is_lack()), as ENOSPC: nothing was written, the batch is given back and may be given again,
  // after a resume(), when there is what was lacking.
  Status write(std::string* batch);
  Result<bool> get(Family family, std::string_view key, std::string* value);
  Result<std::vector<std::optional<std::string>>> get(Family family,
                                                      std::span<const std::string> keys);
  // Whether the files hold what get() has just returned: see FileRows.
  Status check_on_disk(Family family, std::string_view key, std::string_view value);
  std::unique_ptr<RowIterator> iterate(Family family, std::string_view lower,
                                       std::string_view upper,
                                       AtDamage at_damage = AtDamage::fail);
  // Adds an erasure of each row of an erase_range. False, and adds nothing, where an erasure of the
  // range is better: there would be delete_range_threshold of them or more; rows cannot be read,
  // and must go all the same; or so much was erased there of late that to pass it takes long.
  bool list_erasures(const Row& erase_range, CountedRows* erasures);
  // All that was written becomes durable. ENOSPC or another lack: may be tried again after a
  // resume().
  Status flush();
  Status compact(const std::atomic<bool>* canceled = nullptr);  // as Engine's
  // The same for the rows of a range, in memory as well, while other compactions go on.
  Status compact(const PassedRange& range, const std::atomic<bool>* canceled);
  // Reads every file. An error: one could not be looked at, for a reason that says nothing of it.
  Result<std::vector<DamagedTableFile>> find_damage();
  // Writes these files anew, as far as they can be read. Older versions of the rows that are left
  // out come to light: whoever calls this has erased them. What a crash leaves is each file whole,
  // or what was made of it: the MANIFEST names one or the other.
  Status rewrite(const std::vector<DamagedTableFile>& files);
  // What runs in the background ends, and nothing is begun there any more. Then only the destructor
  // may follow.
  void end_background();
  // From the next flush() on, which shows that there is space, memtables take no more than
  // memtable_bytes. Once.
  void bound_memtables() { bound_memtables_ = true; }
  void drop_caches();
  void resize_cache(uint64_t bytes);
  // Ranges in which readers had to pass compact_on_passing rows or more, more than they found.
  PassedErasures& passed() { return passed_; }
  // Since the last call. RocksDB begins it anew by itself, and fails, until there is space.
  bool compaction_lacked_space();
  // Tries to leave the state that a lack put the database in. Where a flush had failed, it waits
  // for what runs in the background, and flushes before anything else is begun there.
  void resume();

  uint64_t file_bytes();       // live table files
  TableSize size();
  // Memtables: what takes rows is flushed when it has nearly memtable_bytes, whichever families
  // they are of, and no rows are taken while two older sets are being flushed and a third waits. So
  // this is at most twice memtable_bytes and a batch.
  // Of single rows, that no flush has taken yet.
  uint64_t erasures_in_memory();
  uint64_t memory_bytes() const;
  uint64_t cache_bytes() const;  // blocks in memory
  uint64_t estimate_bytes(Family family, std::string_view begin, std::string_view end);
  // Written since the start, and what is about to be; for once a second.
  struct Work {
    uint64_t pending_compaction_bytes = 0;
    uint64_t flushed_bytes = 0;
    uint64_t compacted_bytes = 0;
  };
  Work work() const;
  void add_statistics(std::vector<std::pair<std::string, uint64_t>>* out);

 private:
  Table(Disk& disk, const TableOptions& options, Threads& threads);
  rocksdb::ColumnFamilyHandle* handle(Family f) const { return handles_[size_t(f)]; }
  Status compact(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice* first,
                 const rocksdb::Slice* last, rocksdb::CompactRangeOptions options,
                 const std::atomic<bool>* canceled);
  Threads& threads_;
  const ReadRetries read_retries_;
  const uint64_t delete_range_threshold_;
  const uint64_t compact_on_passing_;
  PassedErasures passed_;
  const std::shared_ptr<FailedSyncs> failed_syncs_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<TableDamage> damage_;
  const std::shared_ptr<SpaceLack> space_lack_;
  const std::shared_ptr<rocksdb::Cache> cache_;
  const uint64_t memtable_bytes_;
  const std::shared_ptr<rocksdb::WriteBufferManager> memtables_;
  std::atomic<bool> bound_memtables_{false};
  std::mutex resuming_;  // RocksDB sends away at once who comes second
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<FileRows> file_rows_;
};

}  // namespace tablestore
