// The engine: atomic, durable updates of {table rows + container extents} on a Disk.
//
//   reserve -> Txn (rows, data, frees) -> submit -> durable() -> applied()
//
// A transaction's data is written at once, by the thread that builds it, to slots that nothing else
// holds; its rows, and the checksums of its data, go into the next log group. When the log write
// and the data writes have completed, one flush makes the group durable (SwimStore, HotStorage'18:
// intent log with transactional checksums, in-file shadow paging). Then the rows are applied to the
// table, an LSM tree without a WAL of its own, which later checkpoints itself.
//
// The design and its invariants I1-I7: doc/dev/tablestore.rst. The bytes:
// doc/dev/tablestore-format.rst.
#pragma once

#include <any>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "os/tablestore/engine/container/allocator_usage.h"
#include "os/tablestore/engine/container/block_bitmap.h"
#include "os/tablestore/engine/container/free_space.h"
#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/format/extent.h"
#include "os/tablestore/engine/io/disk.h"
#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/engine/status.h"

namespace rocksdb {
class Cache;
}  // namespace rocksdb

namespace tablestore {

class Threads;
class Troubles;

// The table's key spaces, each a RocksDB column family. Keys order as unsigned bytes.
enum class Family : uint32_t {
  super = 0,    // the engine's own rows, under "\0"; the store's, under any other first byte
  object = 1,   // onodes and extent-map segments; under "\0", as above, copies of engine rows
  data = 2,     // inline data
  omap = 3,     // keys begin with a pool: no block of the table has rows of two
};
inline constexpr size_t omap_pool_bytes = 8;
inline constexpr unsigned families = 4;

// Where log lines go, and what "fatal" does.
struct Reporter {
  enum class Level { error, warning, info, debug };
  std::function<void(Level, const std::string&)> log;
  // Must not return. Called where a write cannot be made durable, or an invariant is broken.
  std::function<void(const std::string&)> fatal;
};

struct EngineOptions {
  // Fixed at format(), kept in the label; ignored by open().
  std::string store_uuid;                  // 16 bytes
  uint64_t log_bytes = 0;                  // 0 = by what is available
  uint64_t segment_bytes = 32 << 20;
  uint64_t container_bytes = 0;            // 0 = by the size of the file system
  // Space that format() writes ahead in containers, and that a running engine does not give back.
  uint64_t provision_bytes = 0;
  bool compress_log = true;                // its groups may be compressed

  // Of a running engine.
  uint64_t capacity_bytes = 0;             // 0 = what the label's key "capacity" says, and where
                                           // it has none, what the file system offers
  uint64_t memtable_bytes = 128 << 20;     // of the table, at most twice that: see EngineMemory
  uint64_t table_cache_bytes = 256 << 20;  // of table blocks
  // Where table blocks are kept; whoever gives it decides on its size. Null: a cache of the
  // engine's own, of table_cache_bytes.
  std::shared_ptr<rocksdb::Cache> table_cache;
  uint64_t replay_bytes = 64 << 20;        // of the log, that recovery keeps in memory
  std::string table_options;               // RocksDB option string, over ours
  unsigned table_open_files = 1000;        // at most, or 20 where that is less
  // Of rows: where a group of transactions erases ranges with fewer than this, they are erased one
  // by one in the table. A deletion of a range costs every read until it is compacted.
  uint64_t delete_range_threshold = 1 << 20;
  // A file of the table that has so many erasures of rows among so many rows in a row is compacted
  // soon: whoever reads a range passes them until then. 0: not for that.
  uint64_t compact_on_deletion_window = 32768;
  uint64_t compact_on_deletion_trigger = 16384;
  // Where one reader has passed so many erased rows, and more of them than there were others, they
  // are compacted soon. 0: not for that.
  uint64_t compact_on_passing = 256;
  // Of containers, kept free for reserve_at_last(); at most a quarter of the log's size.
  uint64_t last_resort_bytes = 0;
  uint64_t prepare_bytes_per_second = 1 << 30;  // at most: see container/prepare_pace.h
  uint64_t punch_bytes_per_second = 100 << 20;
  uint64_t group_bytes_max = 4 << 20;      // one group, but at least one transaction; at
                                           // most a quarter of the log
  uint64_t gather_percent = 90;            // of a group's time: for no longer the next one waits
                                           // for those that were just served; 0: never
  uint64_t quick_flush_us = 200;           // where a flush takes less: see submit_here(); 0: never
  uint64_t vouch_after_ms = 80;            // of idleness: then the last group is vouched for; 0:
                                           // never
  uint64_t end_patience_ms = 10'000;       // how long close(), reserve(), checkpoint(), vouch()
                                           // and wait_*() wait while nothing gets on, as on a
                                           // full file system
  uint64_t small_data_bytes = 256 << 10;   // a transaction with less data is not skipped while its
                                           // data is in flight
  uint64_t capture_chunks_max = 1024;      // of the allocation map, that a checkpoint copies at
                                           // once, 512 bytes each, while the commit lane stands
  uint64_t prepare_ahead_bytes = 64 << 20; // kept written and free, per class in use
  uint64_t stock_bytes = 0;                // kept written and free beside it, of an idle store
  uint64_t quiet_steps = 60;               // of background work, before a container may shrink
  // Of the table. What a caller reads of containers, he repeats himself. What recovery reads, and
  // what has to be read before a file of the table is called damaged, is read read_tries times.
  ReadRetries read_retries;
  // Opens a store that has lost acknowledged transactions, because its log is damaged: with what is
  // left. The log is cut at the damage, and what is lost is said, and raised as LOG_LOSS.
  bool accept_log_loss = false;
  // The disk keeps what is written to itself (io/frozen_disk.h). Nothing is prepared, given back,
  // compacted or vouched for, and close() makes no checkpoint. Also for a store that this program
  // may only read.
  bool read_only = false;
  // Which blocks objects own may be wrong. Nothing is prepared or given back until adopt_owned():
  // an object may be in what counts as free.
  bool for_repair = false;
  // How the engine's own work runs; null: in threads. Where it does not run by itself, the engine
  // is called from one thread only, and calls make the steps that they wait for.
  std::shared_ptr<Threads> threads;
  // Where the engine says what an operator must know of; null: one of its own.
  std::shared_ptr<Troubles> troubles;
  // Called by whoever has the lane after durable() of the last transaction of each group, to pass
  // on at once what those calls have collected.
  std::function<void()> group_durable = [] {};
  Reporter reporter;
};

// One atomic update. Built by one thread, then submitted; after that only the engine touches it
// until applied() has returned. Derive from it to be told.
//
// Order: transactions with the same `sequencer` become durable in the order in which they were
// submitted. Others may overtake one whose data is still in flight, but never a `barrier`:
// everything submitted before a barrier precedes it, and everything submitted after it follows.
// Nor do they overtake those of sequencers that they name in `follows`.
class Txn {
 public:
  Txn();
  virtual ~Txn();
  Txn(const Txn&) = delete;
  Txn& operator=(const Txn&) = delete;

  // Rows. Later calls win over earlier ones.
  void put(Family family, std::string_view key, std::string_view value);
  void erase(Family family, std::string_view key);
  void erase_range(Family family, std::string_view begin, std::string_view end);  // [begin, end)
  // Adds to a row of little-endian int64 counters (missing = zeros; the longer of both lengths).
  // Only Family::super.
  void add(std::string_view key, std::span<const int64_t> deltas);

  // The blocks of `extent` are owned by nothing any more once this transaction is durable. No
  // reader may be reading them, and nobody may start to. Parts of slots can be freed. The sum of
  // all frees and writes of a block alternates.
  void free(const Extent& extent);

  size_t row_bytes() const;       // of its rows so far
  uint64_t data_bytes() const { return data_bytes_; }
  uint64_t lsn() const { return lsn_; }  // 0 until admitted to a group

  const void* sequencer = nullptr;
  std::vector<const void*> follows;
  bool barrier = false;

  // In log order; must be short, must not throw. durable() in the commit lane's thread, or in one
  // that is in commit_here(): it must not call submit(). Then applied(), when the rows are in the
  // table, in the applier's thread.
  virtual void durable() noexcept {}
  virtual void applied() noexcept {}

 private:
  friend class Engine;
  friend class CommitLane;
  friend class Applier;
  struct DataWrite;
  std::string rows_;               // RocksDB write-batch records, without the 12-byte header
  uint32_t row_count_ = 0;
  std::vector<std::unique_ptr<DataWrite>> writes_;
  std::vector<Extent> frees_;
  uint64_t data_bytes_ = 0;
  uint64_t lsn_ = 0;
  std::chrono::steady_clock::time_point queued_at_;
  std::atomic<uint32_t> writes_in_flight_{0};
};

// What an iterator does where rows cannot be read.
enum class AtDamage {
  fail,       // it ends, with EIO
  step_over,  // it goes on behind them. What was erased or overwritten there shows as it was
              // before; get() of such a row is EIO.
};

// Rows of one family between two keys, as of the moment it was made: what had been applied by then.
// Not thread-safe.
class RowIterator {
 public:
  virtual ~RowIterator() = default;
  virtual void seek(std::string_view key) = 0;      // first key >= `key`
  virtual void seek_to_first() = 0;
  virtual bool valid() const = 0;
  virtual void next() = 0;
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  virtual Status status() const = 0;                // after valid() turned false: why
};

// A file of the table of which something cannot be read: rows, or what leads to them.
struct DamagedTableFile {
  struct Gap {
    // What is lost is behind `after` and before `before`: rows that can be read, or, where the
    // index says which is the last that is lost, that one's key and a 0 byte. Empty: the file's
    // first, last.
    std::string after, before;

    // For people: a row at the end of it.
    std::string_view last() const {
      const std::string_view end = before;
      return end.ends_with('\0') ? end.substr(0, end.size() - 1) : end;
    }
  };
  Family family;
  std::string path;
  std::string first, last;      // of its keys
  std::string why;
  std::vector<Gap> gaps;        // empty where all of the file is lost, or no row
  bool no_row_lost = false;     // what cannot be read only helps to find rows

  // Whether what is lost here is lost there too, of the same file.
  bool is_within(const DamagedTableFile& other) const;
};

// Told what a salvage is about to give up, before anything is changed. An error ends the salvage.
using SalvageFound = std::function<Status(const std::vector<DamagedTableFile>&)>;

struct SpaceUsage {
  uint64_t total_bytes = 0;       // what this store takes plus what it could still take
  uint64_t available_bytes = 0;   // for new data or rows: free slots, and what the file system has
                                  // beyond the reserve
  uint64_t data_bytes = 0;        // blocks owned by rows
  uint64_t container_bytes = 0;   // container files
  uint64_t table_bytes = 0;
  uint64_t log_bytes = 0;
  uint64_t reserve_bytes = 0;     // what has to stay available for the table
  uint64_t ballast_bytes = 0;     // 0: it is used
};

// What an engine holds in memory.
struct EngineMemory {
  uint64_t table_cache_bytes = 0;  // blocks of the table
  // Rows that are in no table file yet. Whatever families they are of, they are at most twice
  // EngineOptions::memtable_bytes, and a batch of rows.
  uint64_t memtable_bytes = 0;
  uint64_t bitmap_bytes = 0;       // of the allocation map: grows with the disk, see Allocator
  // Data that is on its way to the disk, and rows that are to the table. Callers bound the data.
  uint64_t in_flight_bytes = 0;

  uint64_t sum() const {
    return table_cache_bytes + memtable_bytes + bitmap_bytes + in_flight_bytes;
  }
};

// How full and how busy its parts are: cheap, for once a second.
struct EngineGauges {
  uint64_t log_used_bytes = 0;              // what a restart would read
  uint64_t log_capacity_bytes = 0;
  bool log_is_pressed = false;              // more than half of it is used: a checkpoint is wanted
  uint64_t table_bytes = 0;                 // its files
  uint64_t table_pending_compaction_bytes = 0;
  uint64_t table_flushed_bytes = 0;         // written since the start, as the next
  uint64_t table_compacted_bytes = 0;
  uint64_t unprepared_free_bytes = 0;       // in containers: free, and never written
};

// Thread-safe unless said. One Engine per directory: open() refuses a directory that is open.
class Engine {
 public:
  // mkfs: makes log/, table/, containers/ and, last, the label. Refuses (EEXIST) a directory that
  // has a label.
  static Status format(Disk& disk, const EngineOptions& options);
  // Recovers: loads the last checkpoint, replays the log's tail, judges what was not durable.
  // Errors: ENOENT (no store here), EBUSY, EINVAL (another uuid, where options.store_uuid is not
  // empty), ENOTSUP (a newer format), EIO (damage; the line names the file). An open that fails
  // changes nothing of the store's state; the table may have begun a new LOG and MANIFEST file.
  static Result<std::unique_ptr<Engine>> open(Disk& disk, EngineOptions options);
  // As a crash would: what was not submitted is lost, nothing else. Call close() first for an
  // orderly end.
  ~Engine();
  // Waits for all that was submitted, vouches for it, and checkpoints. No call may follow but the
  // destructor. An error: it could not on a full or failing disk (ETIMEDOUT, ENOSPC ...); what was
  // acknowledged is in the log all the same.
  Status close();

  // Promises that write() finds space for `bytes` (in whole blocks). An error: nothing is taken.
  // ENOSPC: there is not so much. EROFS: see needs_adoption(). Another one: containers cannot grow
  // for now, and it may be tried again. May make a container file. Every write() takes from the
  // promise of its caller; what is left is returned by unreserve().
  Status reserve(uint64_t bytes);
  void unreserve(uint64_t bytes);
  // The same for what has to be written even if nothing is available, and at once. ENOSPC: what is
  // kept for that (last_resort_bytes) is used up, until something is freed.
  Status reserve_at_last(uint64_t bytes);

  // Takes slots for `iov` (whole blocks of aligned memory), starts to write it, and adds that to
  // `txn`. Returns the extents in order, and in `checksums` the crc32c of each block. `keep_alive`
  // owns the memory and is dropped when nobody needs it. The data can be read back at once.
  std::vector<Extent> write(Txn& txn, std::span<const iovec> iov, std::any keep_alive,
                            std::vector<uint32_t>* checksums);

  // Queues; never blocks, however long the queue is. Cannot fail: an error on the way to durability
  // is fatal (Reporter::fatal).
  void submit(std::shared_ptr<Txn> txn);
  // The same, for a thread that can wait for its commit. True: it has to call commit_here() next,
  // and must then hold no lock that durable() takes, nor one that another thread holds while it
  // calls the engine. True only where nothing else is under way and flushes are quick: then waking
  // the lane's thread, and being woken by it, would take a large part of the time of a commit.
  bool submit_here(std::shared_ptr<Txn> txn);
  // Commits what was submitted: durable() has been called when it returns.
  void commit_here();
  // Somebody waits for applied() of what was submitted: it comes without delay.
  void hurry();
  // A transaction that is not submitted after all: waits for its writes and gives its slots back.
  void abandon(Txn& txn);

  // Reads whole blocks and checks nothing: the caller has the checksums. The run must be owned,
  // by a row or by a transaction in flight. EIO.
  Status read(const Run& run, std::span<std::byte> out);

  // One row, as applied. False: there is none. EIO: it is lost, or not all of it is there; another
  // error (EMFILE, ENOMEM) says nothing about the row.
  Result<bool> get(Family family, std::string_view key, std::string* value);
  // The row that get() has just returned, read once more from the table's files, past all caches:
  // EIO where the disk does not have it any more. What is in no file yet is in memory and in the
  // log, and good.
  Status check_on_disk(Family family, std::string_view key, std::string_view value);
  // Several rows of one family; a missing one is nullopt.
  Result<std::vector<std::optional<std::string>>> get(Family family,
                                                      std::span<const std::string> keys);
  // [lower, upper); empty = open end.
  std::unique_ptr<RowIterator> iterate(Family family, std::string_view lower,
                                       std::string_view upper,
                                       AtDamage at_damage = AtDamage::fail);
  // Each row of [lower, upper) as it will be once `txn` is applied, after what has been applied by
  // now: in the order of keys. `visitor` may add rows to `txn`, which are not visited. Not of
  // Family::super.
  Status visit(const Txn& txn, Family family, std::string_view lower, std::string_view upper,
               const std::function<void(std::string_view key, std::string_view value)>& visitor);

  // Returns when everything submitted before is durable and applied.
  void drain();
  // The same, and what was freed can be handed out. False: nothing gets on, as on a full file
  // system, so that some of it may never be.
  bool wait_applied();
  // Returns when everything submitted before is durable, applied or not. False: nothing gets on, as
  // on a full file system, so that some of it may never be.
  bool wait_durable();
  // The same, and what was freed can be handed out, whether or not rows are applied. False: nothing
  // gets on.
  bool wait_released();
  // Returns when everything submitted before is durable and vouched for: rot that comes later costs
  // the blocks that it has hit, and never a transaction. An idle engine does it by itself. False:
  // nothing gets on, so that this may not be so.
  bool vouch();

  // Flushes the table and recycles the log before it. ESHUTDOWN: nothing gets on, as on a full file
  // system.
  Status checkpoint();
  // Compacts the whole table. EIO where a file of it is known to be damaged.
  // `canceled`: ends it soon where it turns true, with ECANCELED; what was compacted stays so.
  Status compact(const std::atomic<bool>* canceled = nullptr);
  Status drop_caches();
  void resize_table_cache(uint64_t bytes);

  // --- to empty containers: whoever knows what lies in them moves it, by transactions
  //
  // Closes those with at most `max_live_percent` of their blocks owned, the emptiest first, as far
  // as there is room elsewhere and the store has fewer containers for it: nothing new is written
  // there, as long as there is anything free elsewhere. What was submitted before may still get
  // there, until drain(). Nothing of it outlives the engine. None where it is not known who owns
  // which blocks.
  std::set<uint32_t> close_containers(unsigned max_live_percent);
  // Those that are closed still, and not empty: others had no other space.
  std::set<uint32_t> closed_containers() const;
  uint64_t closed_live_bytes() const;
  // Removes those that are empty, after one more group than the one that freed the last block; what
  // provision_bytes keeps is only opened. Returns how many there were.
  unsigned remove_emptied_containers();
  void open_containers();

  SpaceUsage space();
  // Goes through all containers, some at a time: for once a second.
  EngineMemory memory() const;
  uint64_t estimate_row_bytes(Family family, std::string_view begin, std::string_view end);
  const Counters& counters() const;
  EngineGauges gauges();
  // Names and values of everything worth a look: counters, slots per class, the table's own
  // statistics.
  std::vector<std::pair<std::string, uint64_t>> statistics();
  std::string store_uuid() const;

  // --- for operators and tools. These look at the bitmaps of all containers, one at a time.
  FreeSpace free_space() const;
  // By container and block. What was given back to the file system is free, too.
  void visit_free_runs(
      const std::function<void(unsigned slot_class, const Run& run)>& visitor) const;
  // By number.
  std::vector<ContainerUsage> containers() const;
  // Gives back to the file system what background work would, without waiting until containers have
  // been quiet for long. How many bytes. An error: what the file system said.
  Result<uint64_t> punch();
  // Gives some of what is free, also what was provisioned, back to the file system, in whole files
  // where they are empty. So many bytes; 0: nothing is left. It is taken again when it is needed.
  Result<uint64_t> give_back();

  // For fsck: which blocks are owned according to the log, by container. Exact after drain() while
  // nobody submits.
  std::map<uint32_t, BlockBitmap> owned_blocks();
  // Which blocks rows own is not known, since a loss was accepted where the table is ahead of the
  // log. Until adopt_owned() has succeeded, reserve() refuses (EROFS), nothing is prepared or
  // given back to the file system, and the store opens only with accept_log_loss.
  bool needs_adoption() const;
  // False also where some rows of the allocation map cannot be read: all blocks of those containers
  // count as owned, and the store can be used. ALLOCATION_UNKNOWN says so until adopt_owned().
  bool knows_owners() const;
  // For repair: what rows own is owned from now on, and nothing else; durably so. Containers that
  // do not exist are passed over. Nobody may use the store meanwhile, nor hold a reservation
  // (EBUSY).
  Status adopt_owned(const std::map<uint32_t, BlockBitmap>& owned_by_rows);

  // The loss of a part of the log, which was accepted, is raised as LOG_LOSS in every life of the
  // store, until somebody says with this that it has been dealt with. Durable when it returns.
  // False: nothing gets on, so that it may not be.
  bool settle_log_loss();

  // For fsck: reads all of the table. An error (EMFILE, ENOMEM): some of it could not be looked at,
  // for a reason that says nothing about it.
  Result<std::vector<DamagedTableFile>> find_table_damage();
  // For fsck --repair: erases the rows of which nobody knows any more what they are, tells `lost`
  // their keys, and writes the damaged files anew without what cannot be read. Returns what they
  // were: a row that was nowhere else is in no other list. Nobody may use the store meanwhile. May
  // be cut off at any point and called again; keys that were told before are then not told again.
  // `found` is not called where there is no damage; what it has submitted it has to wait for.
  Result<std::vector<DamagedTableFile>> salvage_table(
      const std::function<void(Family family, std::string_view key)>& lost,
      const SalvageFound& found = {});

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tablestore
