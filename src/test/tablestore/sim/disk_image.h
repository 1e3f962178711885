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
// A write that fails leaves any of its sectors, but not in a block in which a later one is durable:
// it is over when it has failed. A flush that fails leaves everything as it was, or
// drops what it covered (drop_flush): reads give what lay there before, and later flushes succeed
// without it. Nobody may rely on a later one: the engine ends. [An error of the device's cache, or
// of the page cache, is told once; then what could not be written counts as clean.]
//
// A flush that lies (pretend_flush) is reported as done and does nothing, for files and for names:
// what it promised is lost in a crash as anything is that is not durable. So a table's file may be
// shorter, hold zeros or be missing, long after the process that synced it was killed. Lost as well
// is what a later flush that does its work promises of blocks that are in place only if that lie is
// believed.
//
// A file system that is not in place (remap_every_write): no block is ever written over, so every
// write is a first touch, which only a flush of its own file makes durable. [btrfs; a container
// whose blocks are shared with a copy.]
//
// Damage: what a block holds is not what was written to it, or cannot be read. It is known, block
// by block, with what should be there (Inode::damaged), until that block is durably written anew.
// So there is a disk on which nothing was damaged (healed), and an oracle can tell what the damage
// may cost.
//  - At rest: a bit flips (rot); a block is again what it was before its last write (revert).
//  - A write that is reported as complete is lost (lose), or lands in other blocks, of the same
//    file or of any other (PendingOp::stray, overwrite).
//  - A bad sector: its block cannot be read (EIO) until it is written anew. It comes at rest
//    (make_unreadable), or of what is being written at a crash (set_bad_sector_chance).
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
  PagePtr get(uint32_t block) const { return block < pages_.size() ? pages_[block] : nullptr; }
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
  bool seems_first_touch = false;  // would need it, had no flush before lied
  bool stray = false;        // lands where nobody wanted it
  bool lost = false;         // a write that holds what lay there before
  bool promised = false;     // not durable, though it would be, had no flush lied
  uint64_t id = 0;           // ascending in the order of submission
  uint64_t offset = 0;
  uint64_t length = 0;
  // Pieces of one write have the same id.
  std::vector<PagePtr> pages = {};  // of a write, one per block
};

// A block that does not hold what was written to it.
struct DamagedBlock {
  PagePtr good;             // what should be there
  bool unreadable = false;
  uint64_t since = 0;       // the last write before: a later one mends it
};

struct Inode {
  bool directory = false;
  bool buffered = false;
  FileView durable;
  FileView current;
  std::vector<PendingOp> pending;
  std::map<uint32_t, DamagedBlock> damaged;  // by block
  Pages previous;           // of durable blocks, what they held before; see remember_previous()
  uint64_t dropped_end = 0; // buffered: what a failed sync has dropped ends here
  FileView promised;        // buffered: what a lying sync has promised
  uint64_t promised_end = 0;  // of what is damaged, if the file ends before

  // Makes a change durable.
  void settle(const PendingOp& op, bool remember_previous);
  // It never becomes durable: what of it was promised is damaged.
  void give_up(const PendingOp& op);
  // Of a buffered file: what is durable now stays so, and what it lacks of the promise is damaged.
  void judge_promise();
  // Whether it would lie in written extents, durably, had no flush lied before `op` was submitted.
  bool seems_written(const PendingOp& op) const;
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
  void lose(InodeId id, uint64_t op);    // a write that the disk loses
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
  void pretend_flush(InodeId id);
  void pretend_sync_dir() { lies_told_ = true; }
  // One that fails, and drops what it would have made durable of data: of `id` only, or of all. 0:
  // of no file, but of a directory.
  enum class Covered { own, all };
  void drop_flush(InodeId id, Covered what);
  // From now on, for ever.
  void remap_every_write() { in_place_ = false; }
  bool in_place() const { return in_place_; }
  // Direct files with writes that a flush of their own would make durable.
  std::vector<InodeId> dirty() const;

  // Buffered files.
  void append(InodeId id, std::span<const std::byte> data);
  void truncate(InodeId id, uint64_t bytes);

  // Damage at rest, of a durable block that is not pending. False where it holds nothing.
  bool rot(InodeId id, uint32_t block, uint64_t bit);
  bool make_unreadable(InodeId id, uint32_t block);
  // Only what remember_previous() has seen written twice; a buffered file's block gets zeros.
  bool revert(InodeId id, uint32_t block);
  void remember_previous() { remembers_previous_ = true; }
  // A write to other files lands in this block, durably, whatever kind of file it is.
  void overwrite(InodeId id, uint32_t block, PagePtr page);
  // Of each block that is being written at a crash, and not known to be whole or absent after it.
  void set_bad_sector_chance(double chance) { bad_sector_chance_ = chance; }
  // False: there is an unreadable block in the range.
  bool readable(InodeId id, uint64_t offset, uint64_t length) const;
  bool is_damaged() const;
  // The same disk without damage.
  DiskImage healed() const;
  // A crash may have lost what a flush had promised.
  bool lost_promises() const { return lost_promises_; }

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
  bool covers(InodeId flushed, InodeId id, const Inode& inode, const PendingOp& op) const;
  void promise(InodeId flushed);  // what is not durable, and seems to be
  // As far as anybody knows who believes every flush.
  bool seems_to_cover(InodeId flushed, InodeId id, const Inode& inode, const PendingOp& op) const;
  // Of a durable block; null where it cannot be damaged now.
  Inode* at_rest(InodeId id, uint32_t block);
  void damage(Inode* inode, uint32_t block, PagePtr page);

  std::map<std::string, InodeId> names_;
  std::map<std::string, InodeId> durable_names_;
  std::vector<NameChange> journal_;
  std::map<InodeId, std::shared_ptr<Inode>> inodes_;
  InodeId next_inode_ = 1;
  uint64_t next_op_ = 1;
  bool in_place_ = true;
  bool remembers_previous_ = false;
  bool lies_told_ = false;
  bool lost_promises_ = false;
  double bad_sector_chance_ = 0;
};

}  // namespace tablestore::sim
