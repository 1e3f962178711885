// The container files and what keeps them ready: made on demand, prepared ahead of use, punched or
// removed when idle.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/container/container_files.h"
#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

struct ContainerOptions {
  uint64_t container_bytes = 64 << 20;   // size of every container file, from the label; a multiple
                                         // of 4 MiB
  uint64_t capacity_bytes = 0;           // containers never take more in sum; 0 = no cap but the
                                         // file system
  uint64_t headroom_bytes = 0;           // what containers leave available on the file system
                                         // (table, log)
  unsigned largest_prepared_class = 4;   // slots up to 64 KiB are written ahead of use
  uint64_t prepare_ahead_bytes = 64 << 20;       // keep so much prepared and free per class in use
  uint64_t prepare_bytes_per_second = 200 << 20; // 0: nothing is prepared
  uint64_t punch_bytes_per_second = 100 << 20;   // 0: no space is returned
  // A container in which nothing was written during so many idle shrink steps may be removed or
  // punched.
  uint64_t quiet_steps = 60;
  // What is never given back: while containers have no more than this in sum, none is removed or
  // punched.
  uint64_t provision_bytes = 0;
};

// Owns the files and the allocator. Thread-safe, but for open() and close().
//
// Two locks order what changes the set of files; neither guards data, and the allocator's own mutex
// is never held over I/O. `background_mutex_` is held by a background step (which may keep up to a
// few MiB of free blocks from everybody), so that one who finds no space can wait for its end;
// `growth_mutex_`, taken after it, by whoever makes, restores or removes a container.
//
// Which class gets a container. Space is never stranded, because any free block can serve any
// request; what is at stake is only how contiguous data stays. So, while more than an eighth of the
// capacity is not yet in any container, a class gets one of its own when it has lately called for a
// good part of one, or when its slots would have to be made up of smaller ones. Else its requests
// split larger slots of other classes; and in the last eighth they take whatever is free, and a
// container is made only where reserve() finds no free block at all.
//
// Such a container is one of another class that is entirely free, where there is one: it takes no
// more space, and what was written in it stays so. Only the last one of a class that is itself in
// use is left alone while there is another way, or the two would take it from each other for ever.
class Containers {
 public:
  Containers(Disk& disk, ContainerOptions options, Counters& counters);
  Containers(const Containers&) = delete;
  Containers& operator=(const Containers&) = delete;
  ~Containers();

  // mkfs: the directories.
  static Status format(Disk& disk) { return ContainerFiles::format(disk); }
  // mkfs: as many containers as fit into `bytes`, written, for whatever class wants them.
  // `progress` is told how many bytes there are so far.
  static Status provision(Disk& disk, uint64_t container_bytes, uint64_t bytes,
                          const std::function<void(uint64_t)>& progress);
  // Opens all that are there, learns which extents are unwritten. Flushes each file first, so that
  // an extent that reads as written is durably so. Allocator::finish_recovery() comes after it.
  Status open();
  // Closes all files. Nothing may be in flight.
  void close();

  // Promises space for `bytes` (rounded up to blocks); makes containers as needed. ENOSPC: nothing
  // taken.
  Status reserve(uint64_t bytes);
  void unreserve(uint64_t bytes);
  // Takes from the caller's reservation; makes a container of the fitting class where one can be
  // made, else splits.
  std::vector<Extent> allocate(uint64_t bytes);

  Allocator& allocator() { return allocator_; }
  const Allocator& allocator() const { return allocator_; }
  const ContainerOptions& options() const { return options_; }
  // The file of a container; asserts that it exists. Valid while the container has a held block.
  File& file(uint32_t container) { return files_.file(container); }
  bool exists(uint32_t container) const { return files_.exists(container); }
  uint32_t container_blocks() const { return files_.blocks(); }
  // Whether these blocks are there, of whatever state.
  bool holds(const Extent& e) const {
    return uint64_t(e.block) + e.blocks <= container_blocks() && exists(e.container);
  }
  // Verified nowhere: the caller checks checksums. Extents may be parts of slots. EIO where they
  // are not there.
  Status read(const Extent& extent, std::span<std::byte> out);

  // One bounded step of background work each; true where there was something to do. Paced by the
  // caller's thread (see Background): `bytes_done` is what it moved. A file system that is full is
  // no error here; any other error means that the disk fails.
  //
  // Makes a container ahead of use, or writes zeros to at most 1 MiB of free blocks.
  Result<bool> prepare_step(uint64_t* bytes_done);
  // Removes a container that was idle for long, or punches a run in a quiet one. A step that
  // finds nothing to do is the clock by which quiet_steps counts.
  Result<bool> shrink_step(uint64_t* bytes_done);

  // Free for new data now or by making containers: what statfs shows, before reservations.
  uint64_t free_bytes();
  // Taken from the file system by container files.
  uint64_t file_bytes() const;

 private:
  // What containers may still take from the file system.
  Result<uint64_t> growable_bytes();
  // Of that, what turns into free blocks: punched runs restored, and whole containers.
  uint64_t obtainable_bytes(const AllocatorUsage& usage, uint64_t growable) const;
  bool in_use(const AllocatorUsage& usage, unsigned slot_class) const;
  // Whether a class should have one more; whether it may be a new file.
  bool deserves_container(unsigned slot_class);
  Result<bool> may_create();
  bool may_take_last(unsigned slot_class) const { return !allocator_.may_have_run(slot_class); }
  QuietRule quiet_rule(const AllocatorUsage& usage) const;
  // How much may be given back to the file system.
  uint64_t surplus_bytes() const;

  // With growth_mutex_ held. False: the file system has no room after all.
  Status grow_for(uint64_t blocks);
  Result<bool> restore(std::optional<unsigned> slot_class, uint64_t growable);
  Result<bool> create(unsigned slot_class);
  Result<bool> reclass(unsigned slot_class, bool may_be_last);
  // For a class that deserves one: of another class, or a new file.
  Result<bool> obtain_container(unsigned slot_class);
  bool obtain_for_allocate(unsigned slot_class);
  unsigned class_to_grow(uint64_t blocks) const;
  Status no_space(uint64_t bytes, uint64_t growable);

  // Gives space to holes among `unwritten`; returns those that it could not give space to.
  Result<BlockBitmap> fill_holes(File& file, const BlockBitmap& unwritten);

  // Parts of the steps, with background_mutex_ held.
  Result<bool> make_ahead(const AllocatorUsage& usage);
  Result<bool> prepare_run(unsigned slot_class, uint64_t* bytes_done);
  Result<bool> remove_idle_container(const QuietRule& rule, uint64_t* bytes_done);
  Result<bool> punch_run(const Extent& extent, uint64_t* bytes_done);

  Disk& disk_;
  const ContainerOptions options_;
  Counters& counters_;
  Allocator allocator_;
  ContainerFiles files_;
  std::mutex background_mutex_;
  std::mutex growth_mutex_;
  Status deferred_error_;                  // guarded by growth_mutex_: met where nobody could be
                                           // told
  std::atomic<bool> create_failed_{false}; // the last attempt met ENOSPC: allocate() does not try
  std::atomic<bool> reclass_failed_{false}; // the same of a new name
  std::atomic<int> wanted_class_{-1};      // that allocate() lacked last
};

}  // namespace tablestore
