// What a simulated disk holds: what is durable, what is not yet, and what a crash may make of it.
//
// The crash model: one disk with a volatile cache, which obeys flushes and writes sectors of 512
// bytes, below XFS or ext4 with data=ordered, mounted with barriers, as both are by default. What
// they promise is kept, and nothing more: where they differ the worse one counts, and a promise
// that the engine can do without is not given. In brackets: what it stands for.
//
// Direct files (log, containers, label), written in place in whole blocks:
//  - A write passes through three states: submitted (any of its sectors may reach the disk, no read
//    may be sent to its blocks, nor another write: they would have no order), complete (reads see
//    it; it lies in the disk's cache), durable.
//  - At a crash, each sector of each write that is not durable is kept, dropped (what lay there
//    before stays) or filled with other bytes, whatever happens to its neighbours. Writes have no
//    order at all but those of one block, which happen in the order of submission, each in part.
//    [A cache writes back what it likes. Other bytes are worse than disks do: checksums must tell.]
//  - A flush of a file makes durable every write to it that was complete when the flush was issued,
//    and that file's metadata (size, extents). Of the other files' writes it makes durable those
//    that were complete and went to blocks that were durably *written* extents: these need nothing
//    from the file system, only the disk's cache to be emptied, and it is one disk. [XFS: a flush
//    is a log write with a preflush, or, where there is nothing to log, a flush of the device;
//    ext4: a journal commit with a barrier, or a flush of the device.]
//  - A write to a hole or an unwritten extent (a first touch) needs a journal commit for the
//    conversion, which only a flush of that very file forces. Before it, each block may come back
//    converted or not, whatever its neighbours do: a block that was not converted reads as zeros
//    and is unwritten, one that was may hold any mix of sectors, also other bytes. [Both convert
//    after the data is complete, so that what was there before never shows; here it may.]
//  - Sizes, allocation, punched holes and zeros written ahead are such metadata too: lost or kept,
//    each by itself, in no order with names or with each other, until a flush of that file. Of one
//    allocation or punch any blocks may survive, but a size only as far as there is space: both
//    file systems do these in several transactions, and ext4 moves the size with each. [Their
//    journals keep one order; here there is none.]
//
// Buffered files (the table's), which are only appended to:
//  - What was synced is durable, whole. Of what was appended since, the file may have any length
//    between, and each sector of it holds what was written or zeros. [Blocks that are new are
//    converted after their data; but ext4 commits a size that lies in an old block without waiting
//    for the data, and that page is torn as any write is. With data=writeback other bytes could
//    show.] The part of a sector that was synced stays: a disk that cannot rewrite a sector
//    without losing it is no ground for a journal either.
//  - A sync of a file is a flush as above to all direct files.
//
// Names:
//  - Create, remove and rename are journalled in one order over the whole file system; a crash
//    keeps some prefix of them. A rename is atomic. [jbd2's one running transaction; XFS's CIL.]
//  - A sync of a directory makes durable every change of a name in it (and so all before). A sync
//    of a file does nothing for its name. [Both do more than that.]
//
// kill -9 of the process is not a crash of the disk: what was complete stays visible, and not
// durable; what was submitted happens, or not, or as far as the kernel had been asked for it.
//
// A write that fails leaves any of its sectors; a flush that fails leaves everything as it was, and
// nobody may rely on a later one: the engine ends.
#pragma once

#include <algorithm>
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

// The pages of a file by block; none: zeros. Copied at each change of a file after a snapshot.
class Pages {
 public:
  bool contains(uint32_t block) const { return block < pages_.size() && pages_[block]; }
  const Page* find(uint32_t block) const {
    return block < pages_.size() ? pages_[block].get() : nullptr;
  }
  void set(uint32_t block, PagePtr page) {
    if (block >= pages_.size()) {
      if (!page) return;
      pages_.resize(block + 1);
    }
    pages_[block] = std::move(page);
  }
  void cut(uint32_t blocks) {
    if (blocks < pages_.size()) pages_.resize(blocks);
  }
  bool operator==(const Pages& other) const {
    for (size_t b = 0; b < std::max(pages_.size(), other.pages_.size()); ++b)
      if (find(uint32_t(b)) != other.find(uint32_t(b))) return false;
    return true;
  }
  // f(block, page) of those that are not zeros.
  template <typename F>
  void each(F f) const {
    for (size_t b = 0; b < pages_.size(); ++b)
      if (pages_[b]) f(uint32_t(b), *pages_[b]);
  }

 private:
  std::vector<PagePtr> pages_;
};

// One version of one file.
struct FileView {
  enum class Extent : uint8_t { hole, unwritten, written };
  uint64_t size = 0;
  std::vector<Extent> extents;        // one per block
  Pages pages;                        // of written blocks that are not zeros
  uint64_t taken_blocks = 0;          // not holes

  void grow(uint64_t bytes);
  void apply(const struct PendingOp& op);  // of a direct file, whole
  void set_extent(uint32_t block, Extent extent);
  void set_page(uint32_t block, PagePtr page);
  const std::byte* page(uint32_t block) const;  // of zeros where there is none
  bool written(uint64_t offset, uint64_t length) const;
  bool has_hole(uint64_t offset, uint64_t length) const;  // or ends before
};

// A change of a direct file that is not durable yet.
struct PendingOp {
  enum class Kind : uint8_t { write, zeroes, allocate, punch };
  Kind kind = Kind::write;
  bool complete = false;
  bool failed = false;       // an error was reported, and this is never complete
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
  void fail(InodeId id, uint64_t op);    // reported as failed
  void forget(InodeId id, uint64_t op);  // a write that the disk loses
  // Whether something was submitted for a part of the range that is neither complete nor failed.
  bool in_flight(InodeId id, uint64_t offset, uint64_t length) const;

  // What is not durable yet, by what it is: a crash now is a crash while that is being done.
  struct Unsettled {
    bool zeroes = false, allocation = false, punch = false;  // of containers
    bool new_container = false, removed_container = false, renamed_container = false;
    bool log_wrap = false;  // a write to the log's first block, which has been written before
  };
  Unsettled unsettled() const;
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
  // Also those that only a crash can bring back.
  std::vector<std::pair<std::string, InodeId>> all_names() const;

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
