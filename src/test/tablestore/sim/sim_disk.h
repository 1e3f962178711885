// A Disk on a DiskImage: deterministic, with faults, and told to whoever watches.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/tablestore/sim/disk_image.h"

namespace tablestore::sim {

// Probabilities, each of one I/O or call.
struct Faults {
  double read_error = 0;         // EIO, for a moment
  double data_read_error = 0;    // the same, of containers
  double write_error = 0;        // EIO, and any part of it on the disk
  double flush_error = 0;        // EIO, and nothing flushed
  double lost_write = 0;         // reported as complete, never happens
  double misdirected_write = 0;  // lands on another block, of the same file or any other
  double slow = 0;               // no asynchronous write completes now, though one could
  double late = 0;               // an asynchronous write completes long after those around it
  double short_read = 0;         // only a part is read; where the caller wanted all, that is EIO
  double drops = 0;              // of flushes that fail: what they covered is dropped
  double flush_no_space = 0;     // a flush is ENOSPC, and drops what it covered of its file
  double first_touch_error = 0;  // a write to an extent that needs a conversion is ENOSPC or EIO
  double call_error = 0;         // EIO of open, list, statvfs for a moment; of create, unlink
  bool flushes_lie = false;      // all of them, until the crash

  bool damages() const { return lost_write > 0 || misdirected_write > 0; }
};

// In which order asynchronous writes complete. Where the seed does not say it, one completes at
// each reap: whoever waits looks at what he has after each of them.
enum class Completions : uint8_t { by_seed, in_order, newest_first };

// What a disk has refused since the process began, because of its Faults.
struct FaultCounts {
  uint64_t reads = 0;
  uint64_t writes = 0;   // also changes of names, and reads of what the table is adding to itself
  uint64_t flushes = 0;  // EIO: also of the table's files, and of directories
  uint64_t full_flushes = 0;  // ENOSPC
  uint64_t calls = 0;    // that change nothing

  bool on_the_way_to_durability() const { return writes + flushes + full_flushes > 0; }
  bool any() const { return on_the_way_to_durability() || reads + calls > 0; }
};

// Used by the simulator's thread, and, while that one waits for it, by one of RocksDB's: one at a
// time does I/O, so that the order of I/Os is the same in every run. `mutex_` guards all.
class SimDisk : public Disk {
 public:
  SimDisk(DiskImage image, uint64_t capacity_bytes, uint64_t seed);
  ~SimDisk() override;

  // Called before each I/O that changes the disk takes effect, with what it is. Copies of the image
  // made there are what a crash at that moment leaves.
  void watch(std::function<void(const DiskImage&, const char* what)> watcher);
  // Called now and then while somebody waits for writes: what other threads would do meanwhile.
  void meanwhile(std::function<void()> work);
  // Tells every I/O that changes something, in words.
  void watch_calls(std::function<void(const std::string&)> watcher);
  // Returns those before.
  Faults set_faults(const Faults& faults);
  void set_completions(Completions order);
  // The process is over: nothing fails any more and nobody watches, so that it can be taken apart.
  void end_of_process();
  // Space that others take on the file system.
  void set_other_bytes(uint64_t bytes);
  uint64_t other_bytes() const { return other_bytes_; }
  DiskImage image() const;
  // What happens to the disk while nobody writes to it.
  void change(const std::function<void(DiskImage* image)>& work);
  uint64_t ios() const { return ios_; }
  uint64_t no_spaces() const { return no_spaces_; }  // ENOSPC was the answer
  uint64_t late_writes() const { return late_writes_; }
  uint64_t short_reads() const { return short_reads_; }
  // Next to nothing is left; also from within watch().
  bool is_full() const;
  // What no user of a disk may do (concurrent requests for one block; removing the MANIFEST that
  // CURRENT names); empty: none has.
  const std::string& misuse() const { return misuse_; }
  // Blocks that do not hold what was written to them, by inode and block.
  using Damage = std::set<std::pair<DiskImage::InodeId, uint32_t>>;
  Damage damage() const;
  bool is_damaged() const;
  // A file is damaged that the table has made and not taken in.
  bool is_new_table_file_damaged() const;
  const FaultCounts& refused() const { return refused_; }

  const std::string& name() const override { return name_; }
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& dir) override;
  Status make_dir(const std::string& dir) override;
  Status remove(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove_tree(const std::string& dir) override;
  Status sync_dir(const std::string& dir) override;
  Result<bool> flush_all() override;
  Result<DiskSpace> space() override;
  std::unique_ptr<WriteQueue> make_write_queue() override;
  std::shared_ptr<rocksdb::FileSystem> table_fs() override;
  std::string table_path(const std::string& path) const override { return "/" + path; }

 private:
  class SimFile;
  class SimQueue;
  friend class SimTableFs;

  // With mutex_ held.
  void io(const char* what);
  void tell(const char* what, DiskImage::InodeId id, uint64_t offset, uint64_t length);
  bool happens(double probability);
  // What fails for a moment succeeds when it is repeated often enough.
  static constexpr unsigned in_a_row_max = 3;
  bool fails_for_a_moment(double probability, unsigned* in_a_row);
  Status check_space(uint64_t more_blocks);
  // Of `length` bytes to be read of `id`; may be fewer.
  uint64_t readable(DiskImage::InodeId id, uint64_t length);
  void count_refused_read(DiskImage::InodeId id);
  // One change of a direct file.
  Result<uint64_t> submit(DiskImage::InodeId id, PendingOp op);
  Status finish(DiskImage::InodeId id, uint64_t op);
  void misdirect(DiskImage::InodeId id, uint64_t op, const PendingOp& write);
  Status flush(DiskImage::InodeId id);
  // Of calls that change nothing (open, list), and of those that change names: whether this one
  // fails.
  Status call(const std::string& what);
  Status change_of_name(const std::string& what);

  const std::string name_ = "simulated";
  const uint64_t capacity_bytes_;
  mutable std::mutex mutex_;
  DiskImage image_;
  Random random_;
  Faults faults_;
  Completions completions_ = Completions::by_seed;
  FaultCounts refused_;
  bool process_ended_ = false;
  uint64_t other_bytes_ = 0;
  unsigned failed_reads_ = 0;  // one after the other
  unsigned failed_calls_ = 0;  // the same
  // Files that the table has made since it last changed CURRENT: no part of it yet. Who cannot read
  // one back has not written it.
  std::set<DiskImage::InodeId> new_table_files_;
  uint64_t ios_ = 0;
  uint64_t no_spaces_ = 0;
  uint64_t late_writes_ = 0;
  uint64_t short_reads_ = 0;
  std::string misuse_;
  std::function<void(const DiskImage&, const char*)> watcher_;
  std::function<void(const std::string&)> call_watcher_;
  std::function<void()> meanwhile_;
};

std::shared_ptr<rocksdb::FileSystem> make_sim_table_fs(SimDisk& disk);

}  // namespace tablestore::sim
