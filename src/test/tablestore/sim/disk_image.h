// What a simulated disk holds: what is durable, what is not yet, and what a crash may make of it.
//
// The crash model. It is what XFS and ext4 (data=ordered) on a disk with a volatile cache promise,
// and no kinder; where the two differ, the worse one counts, and where a promise is not needed by
// the engine it is not given.
//
// Direct files (log, containers, label), written in place in whole blocks:
//  - A write passes through three states: submitted (any of its sectors may reach the disk, none is
//    seen by a read), complete (reads see it; it lies in the disk's cache), durable.
//  - At a crash, each 512-byte sector of each write that is not durable is kept, dropped (what lay
//    there before stays), or filled with other bytes, whatever happens to its neighbours. Writes of
//    different ranges have no order at all; of the same range, the order of submission.
//  - A flush of a file makes durable every write to it that was complete when the flush was issued,
//    and the file's metadata (size, extents). Of the other files' writes it makes durable those
//    that were complete and went to blocks that were durably *written* extents: these need nothing
//    from the file system, only the disk's cache to be emptied, and it is one disk.
//  - A write to a hole or an unwritten extent (a first touch) needs a journal commit for the
//    conversion, which only a flush of that very file forces. Before it, each block may come back
//    converted or not, independent of the data: a block that was not converted reads as zeros and
//    is unwritten, one that was may hold any mix of sectors, also other bytes.
//  - Sizes, allocation, punched holes and zeros written ahead are such metadata too: lost or kept
//    each by itself until a flush of that file.
//
// Buffered files (the table's), which are only appended to:
//  - What was synced is durable, whole. Of what was appended since, the file may have any length
//    between, and each 4 KiB page of it holds what was written or zeros (delayed allocation; the
//    length is committed after the data's I/O, so stale or torn bytes never show). The part of a
//    page that was synced stays.
//  - A sync of a file is a flush as above to all direct files.
//
// Names:
//  - Create, remove and rename are journalled in one order over the whole file system; a crash
//    keeps some prefix of them. A rename is atomic.
//  - A sync of a directory makes durable every change of a name in it (and so all before). A sync
//    of a buffered file does so for its creation and renaming, as XFS and ext4 do and RocksDB
//    expects; of a direct file it does not: the engine is to sync the directory.
//
// kill -9 of the process is not a crash of the disk: what was complete stays visible, and not
// durable; what was submitted happens or not, each write as a whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore::sim {

using Random = std::mt19937_64;
inline constexpr uint64_t sector_bytes = 512;

using Page = std::array<std::byte, block_bytes>;
using PagePtr = std::shared_ptr<const Page>;  // null: zeros

// One version of one file.
struct FileView {
  enum class Extent : uint8_t { hole, unwritten, written };
  uint64_t size = 0;
  std::vector<Extent> extents;        // one per block
  std::map<uint32_t, PagePtr> pages;  // of written blocks that are not zeros
  uint64_t taken_blocks = 0;          // not holes

  void grow(uint64_t bytes);
  void set_extent(uint32_t block, Extent extent);
  void set_page(uint32_t block, PagePtr page);
  const std::byte* page(uint32_t block) const;  // of zeros where there is none
  bool written(uint64_t offset, uint64_t length) const;
};

// A change of a direct file that is not durable yet.
struct PendingOp {
  enum class Kind : uint8_t { write, zeroes, allocate, punch };
  Kind kind = Kind::write;
  bool complete = false;
  bool first_touch = false;  // needs a flush of its own file
  uint64_t id = 0;           // ascending in the order of submission
  uint64_t offset = 0;
  uint64_t length = 0;
  // Pieces of one write have the same id.
  std::vector<PagePtr> pages = {};  // of a write, one per block
};

struct Inode {
  bool directory = false;
  bool buffered = false;
  FileView durable;
  FileView current;
  std::vector<PendingOp> pending;
};

// What becomes of everything that is not durable.
enum class Fate {
  drop,       // all of it is lost
  keep,       // all of it happened
  last_only,  // of the writes, only the one that was submitted last
  not_last,   // all but that one
  log_only,   // only what went to the log
  data_only,  // only what went to the containers
  torn,       // of every write, its first sectors
  scrambled,  // each sector by itself: kept, dropped or other bytes
  killed,     // the process only; see above
};
inline constexpr std::array fates = {Fate::drop,     Fate::keep,      Fate::last_only,
                                     Fate::not_last, Fate::log_only,  Fate::data_only,
                                     Fate::torn,     Fate::scrambled, Fate::killed};
const char* fate_name(Fate fate);

// A value: a copy costs a few pointers, and shares all files until one of the two changes them.
class DiskImage {
 public:
  using InodeId = uint64_t;

  // Names. 0: there is none.
  InodeId lookup(const std::string& path) const;
  InodeId create(const std::string& path, bool buffered);
  void make_dir(const std::string& path);
  void remove(const std::string& path);
  void rename(const std::string& from, const std::string& to);
  void sync_dir(const std::string& dir);

  const Inode& inode(InodeId id) const { return *inodes_.at(id); }

  // Direct files. submit() returns the number for complete().
  uint64_t submit(InodeId id, PendingOp op);
  void complete(InodeId id, uint64_t op);
  std::pair<uint64_t, uint64_t> range(InodeId id, uint64_t op) const;  // offset and length
  void forget(InodeId id, uint64_t op);  // a write that the disk loses
  void flush(InodeId id);

  // Buffered files.
  void append(InodeId id, std::span<const std::byte> data);
  void truncate(InodeId id, uint64_t bytes);

  // Damage at rest: flips a bit of a durable block; it must not be pending. False where it holds
  // nothing.
  bool rot(InodeId id, uint32_t block, uint64_t bit);

  void crash(Fate fate, Random& random);

  uint64_t taken_bytes() const;
  // Equal for images that came from one and hold the same durable bytes.
  uint64_t fingerprint() const;
  const std::map<std::string, InodeId>& names() const { return names_; }

 private:
  struct NameChange {
    std::string from;  // goes away, where not empty
    std::string to;    // becomes `inode`, where not empty
    InodeId inode;
  };
  Inode& changed(InodeId id);  // for writing: not shared afterwards
  void change_name(NameChange change);
  void commit_names(size_t changes);
  void drop_unnamed();
  void crash_inode(const std::string& path, Inode& inode, Fate fate, uint64_t last, Random& random);
  uint64_t last_write() const;

  std::map<std::string, InodeId> names_;
  std::map<std::string, InodeId> durable_names_;
  std::vector<NameChange> journal_;
  std::map<InodeId, std::shared_ptr<Inode>> inodes_;
  InodeId next_inode_ = 1;
  uint64_t next_op_ = 1;
};

}  // namespace tablestore::sim
