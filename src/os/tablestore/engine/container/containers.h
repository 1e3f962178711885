// The container files and what keeps them ready: made on demand, prepared ahead of use, punched or
// removed when idle.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "os/tablestore/engine/container/container_space.h"
#include "os/tablestore/engine/container/growth_policy.h"
#include "os/tablestore/engine/container/last_resort.h"
#include "os/tablestore/engine/container/prepare_pace.h"

namespace tablestore {

// Owns the containers of a store: asks GrowthPolicy what to do, has ContainerSpace do it, and holds
// the locks meanwhile. Thread-safe, but for open() and close().
//
// Two locks put the changes of the set of files one after the other. Neither guards data, and the
// allocator's own mutex is never held over I/O. `background_mutex_` is held by a background step,
// which may keep up to a few MiB of free blocks from everybody, so that a thread that finds no
// space can wait for its end. `growth_mutex_`, taken after it, is held by whoever makes, restores
// or removes a container.
class Containers {
 public:
  Containers(Disk& disk, ContainerOptions options, Counters& counters);
  Containers(const Containers&) = delete;
  Containers& operator=(const Containers&) = delete;

  // mkfs: the directories.
  static Status format(Disk& disk) { return ContainerFiles::format(disk); }
  // mkfs: as many containers as fit into `bytes`, written, for whatever class wants them.
  // `progress` is told how many bytes there are so far.
  static Status provision(Disk& disk, uint64_t container_bytes, uint64_t bytes,
                          const std::function<void(uint64_t)>& progress);
  // Opens all that are there, learns which extents are unwritten. Flushes each file first, so that
  // an extent that reads as written is durably so. Allocator::finish_recovery() comes after it.
  Status open() { return space_.open(); }
  // Files that are too short. They are removed before the first container is made, but for those
  // that are made again.
  std::vector<uint32_t> incomplete() const { return space_.files().incomplete(); }
  bool is_incomplete(uint32_t container) const { return space_.files().is_incomplete(container); }
  // Before Allocator::finish_recovery(): a file of full length in the place of one that is gone or
  // too short, so that what is missing of it reads as other bytes, and can be freed.
  Status make_again(uint32_t container) { return space_.make_again(container); }
  // After Allocator::finish_recovery(): what is owned without space gets it, where there is some.
  void fill_owned() { space_.fill_owned(); }
  // Before anything is acknowledged. Called, in the thread that met it, where a flush fails: the
  // store has to stop at once, as what others have written may be lost with it.
  void on_failed_flush(std::function<void(const Status&)> f) {
    space_.on_failed_flush(std::move(f));
  }
  // Before any other thread is there. What the rest of the store takes, and may yet need: asked by
  // any thread.
  void set_others(std::function<OtherSpace()> others) { space_.set_others(std::move(others)); }
  // Told what the last attempt to grow came to, by the thread that made it.
  void on_growth(GrowthTold told) { space_.on_growth(std::move(told)); }
  // Closes all files. Nothing may be in flight.
  void close() { space_.close(); }

  // Promises space for `bytes` (rounded up to blocks); makes containers as needed. An error:
  // nothing is taken. ENOSPC: there is not so much; another: there is, but growing fails for now.
  Status reserve(uint64_t bytes);
  void unreserve(uint64_t bytes);
  // Of what is free, also where the rest of the store is short of space, and then of what is kept
  // for this. Nothing grows. ENOSPC: there is not so much.
  Status reserve_at_last(uint64_t bytes);
  // Keeps as much as is wanted, or as there is. Containers grow for it, unless space is short.
  void refill_last_resort();
  // For adopt_owned(), which wants all blocks in nobody's hands.
  void release_last_resort() { last_resort_.release(); }
  // Takes from the caller's reservation; makes a container of the fitting class where one can be
  // made, else splits.
  std::vector<Extent> allocate(uint64_t bytes);

  Allocator& allocator() { return allocator_; }
  const ContainerOptions& options() const { return policy_.options(); }
  // The file of a container; asserts that it exists. Valid while the container has a held block.
  File& file(uint32_t container) { return space_.files().file(container); }
  bool exists(uint32_t container) const { return space_.files().exists(container); }
  uint32_t container_blocks() const { return space_.files().blocks(); }
  // Whether these blocks are there, of whatever state.
  bool holds(const Run& run) const {
    return uint64_t(run.block) + run.blocks <= container_blocks() && exists(run.container);
  }
  // For a FileWatch.
  Status visit_files(const std::function<Status(File&)>& visitor) {
    return space_.files().visit_files(visitor);
  }
  // Verified nowhere: the caller checks checksums. EIO where the blocks are not there.
  Status read(const Run& run, std::span<std::byte> out);

  // One bounded step of background work each. Paced by the caller's thread (see Background):
  // `bytes_done` is what it moved. A file system that is too full to grow is no error here; any
  // other error means that the disk fails.
  //
  // Makes a container ahead of use, or writes zeros to at most so many bytes of free blocks; 0:
  // none. The stock comes last, where `is_idle`: where nobody wants the disk. Where it cannot be
  // made, or its space was given back to others, it is left alone for long.
  Result<Worked> prepare_step(PreparePace::Piece* piece, uint64_t most_bytes, bool is_idle = false);
  Result<Worked> prepare_step(uint64_t* bytes_done);
  // What requests have ever taken unprepared, of the classes that are prepared.
  uint64_t first_touch_bytes() const { return policy_.first_touch_bytes(allocator_.usage()); }
  // Removes a container that was idle for long, or punches a run in a quiet one. A step that
  // finds nothing to do is the clock by which quiet_steps counts.
  Result<Worked> shrink_step(uint64_t* bytes_done);

  // The same, however lately a container was in use.
  Result<Worked> punch_step(uint64_t* bytes_done);

  // Gives back a free run, or a free container, where the rest of the store is short of its
  // reserve, or of `at_least`: also what a class keeps for itself, and what was provisioned.
  Result<Worked> relieve_step(uint64_t at_least, uint64_t* bytes_done);
  Result<SpaceState> state() const { return space_.state(); }

  // See Allocator::close_containers().
  void close_containers(unsigned max_live_percent);
  // Removes a closed container in which nothing is left; one that provision_bytes keeps, or a
  // reservation, is opened.
  Result<Worked> remove_emptied(uint64_t* bytes_done);
  // What has failed may succeed: somebody has made space.
  void forget_refusals() { space_.memory().note_space_given_back(); }
  // Where growing has failed: tries whether it can, so that on_growth() tells, and nobody has to
  // want space for that.
  void retry_growth();

  // Free for new data now or by making containers: what statfs shows, before reservations, and
  // without what is kept for the last.
  uint64_t free_bytes();
  // Taken from the file system by container files.
  uint64_t file_bytes() const { return GrowthPolicy::file_bytes(allocator_.usage()); }

 private:
  Claim claim_of(unsigned slot_class) const;

  // With growth_mutex_ held.
  // Grows until the reservation of so many blocks holds. An error: nothing is reserved.
  Status grow_for(uint64_t blocks);
  Result<Grown> grow_for_reservation(unsigned slot_class, const SpaceState& state);
  // For a class that calls for one: of another class, or a new file.
  Result<Grown> obtain_container(unsigned slot_class, Claim claim);
  Result<Grown> create_for_class(unsigned slot_class);
  Status no_space(uint64_t blocks, const SpaceState& state) const;

  // Parts of allocate(), which cannot fail: an error is told to the next prepare_step().
  // Yes where the class has one more container, by this thread or another.
  Grown obtain_for_allocate(unsigned slot_class);
  bool may_obtain(unsigned slot_class, Claim claim);

  // Parts of steps, with background_mutex_ held.
  Result<Worked> shrink(const AllocatorUsage& usage, const QuietRule& rule, uint64_t* bytes_done);
  Result<Worked> remove_idle(const QuietRule& rule, uint64_t* bytes_done);
  Result<Worked> punch_until(uint64_t enough_bytes, GrowthPolicy::PunchSize size,
                             uint64_t containers, uint64_t* bytes_done);

  // Parts of prepare_step(), with background_mutex_ held.
  Result<Worked> make_ahead(const AllocatorUsage& usage);
  Result<Worked> write_ahead(const AllocatorUsage& usage, uint64_t most_bytes,
                             PreparePace::Piece* piece);
  Result<Worked> make_stock(uint64_t most_bytes, PreparePace::Piece* piece);
  std::optional<Run> begin_to_write_stock(const SpaceState& state, uint64_t most_blocks);
  Result<Worked> add_to_stock();

  Disk& disk_;
  const GrowthPolicy policy_;
  ContainerSpace space_;
  Allocator& allocator_;  // of space_
  LastResort last_resort_;
  std::mutex background_mutex_;
  unsigned next_prepared_ = 0;  // the class whose turn it is; guarded by background_mutex_
  unsigned stock_pause_ = 0;    // so many idle steps make none; guarded by background_mutex_
  std::mutex growth_mutex_;
  Status deferred_error_;  // guarded by growth_mutex_: that allocate() met first
};

}  // namespace tablestore
