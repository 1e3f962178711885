// A block device with a volatile cache, from which the power can be cut at any moment, also without
// anybody noticing.
//
// The crash model, of a disk below a file system:
//  - A write is complete when it has been answered; reads see it from when it came.
//  - A flush makes durable every write that was complete when the flush came, at the latest when
//    the flush is answered. Nothing else does.
//  - When the power goes, of all other writes each sector is kept or lost for itself, in any
//    combination: writes are lost, torn, and overtake each other. Of several writes to one sector,
//    any may be the one that is found. A sector is never torn, and never holds other bytes: no file
//    system survives that in its own metadata. (XFS does not even survive a torn block of metadata,
//    of which it trusts the first sector to tell whether to replay it. ext4 replays always, and
//    does not survive a torn superblock.)
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace tablestore::powercut {

using Random = std::mt19937_64;

// What a disk holds. Copies share their pages until one of them writes, so that a copy is cheap.
// Not thread-safe, but copies may be used by different threads.
class Image {
 public:
  static constexpr uint64_t page_bytes = 4096;

  explicit Image(uint64_t bytes) : pages_(bytes / page_bytes) {}
  uint64_t size_bytes() const { return pages_.size() * page_bytes; }
  // Within the size.
  void read(uint64_t offset, std::span<std::byte> out) const;
  void write(uint64_t offset, std::span<const std::byte> data);
  void zero(uint64_t offset, uint64_t length);
  // Writes a sparse file.
  bool save(const char* path) const;

 private:
  using Page = std::array<std::byte, page_bytes>;
  Page& page_to_change(uint64_t number);

  std::vector<std::shared_ptr<Page>> pages_;  // null: zeros
};

// What becomes of the writes that no flush has covered.
enum class Fate : uint8_t {
  none,     // all are lost
  all,      // none is: the disk has written its whole cache
  writes,   // each is kept or lost as a whole
  sectors,  // each sector is kept or lost
  newest,   // the later ones are kept: they have overtaken the earlier ones
  oldest,   // the earlier ones are kept
  mixed,    // each write one of these for itself
};
inline constexpr unsigned fates = 7;
const char* fate_name(Fate fate);

struct CutDiskOptions {
  // The unit that is never torn: 512, or 4096 for a disk with sectors of that size inside.
  uint64_t sector_bytes = 512;
  // The first sector is larger: there is ext4's superblock, which ext4 writes in place, with a
  // checksum, and without a journal.
  uint64_t first_sector_bytes = 4096;
  // Some answers come late, by so much at most: more is in flight when the power goes.
  unsigned slow_write_us = 0;
  unsigned slow_flush_us = 0;
  uint64_t seed = 1;
};

struct CutDiskCounts {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t flushes = 0;
  uint64_t written_bytes = 0;
};

// Thread-safe; `mutex_` guards everything.
class CutDisk {
 public:
  CutDisk(Image image, CutDiskOptions options);

  uint64_t size_bytes() const { return size_bytes_; }

  // For whoever serves the disk. Return when the request is to be answered.
  void read(uint64_t offset, std::span<std::byte> out);
  void write(uint64_t offset, std::span<const std::byte> data);
  void zero(uint64_t offset, uint64_t length);
  void flush();

  // Before the write or flush that comes after so many others, `cut` runs once, while the disk
  // stands still: it can call cut(), and must not wait for anybody who needs this disk.
  void cut_after(uint64_t requests, std::function<void(CutDisk&)> cut);
  void cancel();
  // Only within `cut`, or when the disk is not in use.
  Image cut(Fate fate, Random& random) const;
  uint64_t unflushed_writes() const { return pending_.size(); }

  CutDiskCounts counts() const;

 private:
  struct Write {
    uint64_t id;
    uint64_t offset;
    uint64_t length;
    std::vector<std::byte> data;  // empty: zeros
    bool complete = false;
  };
  static void apply(const Write& write, uint64_t at, uint64_t length, Image* image);
  // The ends of the sectors, or parts of them, that a write covers.
  std::vector<uint64_t> sector_ends(const Write& write) const;
  void keep_part(const Write& write, Fate fate, Random& random, Image* image) const;
  void add(std::unique_lock<std::mutex>& lock, Write write);
  void before_change();
  void be_slow(std::unique_lock<std::mutex>& lock, unsigned most_us);

  const CutDiskOptions options_;
  const uint64_t size_bytes_;
  mutable std::mutex mutex_;
  Image now_;      // as reads see it
  Image durable_;  // as of the last flush
  std::list<Write> pending_;  // by id: that is what now_ has beyond durable_
  uint64_t next_id_ = 0;
  CutDiskCounts counts_;
  uint64_t changes_left_ = 0;  // until cut_; 0: none is due
  std::function<void(CutDisk&)> cut_;
  Random random_;
};

}  // namespace tablestore::powercut
