// Which blocks of which container are free: memory only, no I/O.
//
// A container is a fixed-size file of one class of slot. Small requests get small slots and large
// ones large slots, so that what is written together is freed together and stays contiguous; but a
// block is a block: when no slot of the class is free and no container can be made, a request is
// served by splitting free slots of any other class, so that no class strands space from another.
//
// Per block four facts are kept:
//   held       handed out, or being prepared, or freed by a transaction whose free may not be acted
//              on yet
//   owned      according to the log up to the last durable transaction (what a checkpoint
//              saves)
//   unwritten  its first write makes the file system allocate or convert
//   punched    its space was given back to the file system: not free until it is restored
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "os/tablestore/engine/container/block_bitmap.h"
#include "os/tablestore/engine/container/container_state.h"
#include "os/tablestore/engine/format/extent.h"
#include "os/tablestore/engine/status.h"

namespace tablestore {

// Blocks per state and class; a snapshot, for statfs, counters and the policy of background work.
struct AllocatorUsage {
  struct Class {
    uint64_t containers = 0;
    uint64_t blocks = 0;
    uint64_t free_blocks = 0;
    uint64_t unwritten_free_blocks = 0;  // part of free_blocks
    uint64_t punched_blocks = 0;
    // Slots of this class that requests called for lately, also where they were served by
    // splitting; halved whenever the sum over all classes gets to demand_window. 0: the class is
    // not in use.
    uint64_t recent_slots = 0;
  };
  std::array<Class, slot_classes> classes;
  uint64_t blocks = 0;           // in all containers
  uint64_t free_blocks = 0;      // neither held nor punched
  uint64_t punched_blocks = 0;
  uint64_t reserved_blocks = 0;  // of the free ones, promised by reserve()
  uint64_t owned_blocks = 0;
};

// What background work that gives space back must leave alone.
struct QuietRule {
  // Per class: free blocks that stay as they are.
  std::array<uint64_t, slot_classes> spare_blocks{};
  // Only containers of which no block was handed out during the last so many advance_age().
  uint64_t min_age = 0;
};

// Thread-safe: one mutex guards all. Asserts I7: a block is never handed out twice, never released
// while free, never made durable twice. Between construction and finish_recovery() nothing is free.
class Allocator {
 public:
  static constexpr uint64_t demand_window = 1 << 16;

  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // A container with nothing held. `unwritten` as File::unwritten() says, in blocks; `punched`, of
  // these, the ones without space (an empty bitmap: none).
  void add_container(uint32_t container, unsigned slot_class, uint32_t blocks,
                     BlockBitmap unwritten, BlockBitmap punched = BlockBitmap(0));
  // Only when nothing in it is held or durable and reservations hold without it; false
  // otherwise. Reduces what can be reserved.
  bool remove_container(uint32_t container);
  // Above every container that was ever added, loaded or replayed: not reused within a process.
  uint32_t next_container_id() const;
  // Keeps next_container_id() above a container that is not added.
  void skip_container_id(uint32_t container);

  // Promises `blocks` of the blocks that are free now; false where there are not so many.
  // allocate() takes from a promise and cannot fail while one holds.
  bool reserve(uint64_t blocks);
  void unreserve(uint64_t blocks);

  // Takes exactly `blocks` from the caller's reservation, as extents whose sizes add up, none of
  // which crosses a slot. Prefers slots of the fitting classes (100 KiB = 64 + 32 + 4),
  // neighbouring free slots, and prepared ones. `may_split` = false: an empty result, taking
  // nothing, where a slot of the fitting class is not free (the caller then tries to make a
  // container of `wanted_class` and calls again, at last with true).
  std::vector<Extent> allocate(uint64_t blocks, bool may_split, unsigned* wanted_class);
  // False: a piece of this class would be cut below its size, because only smaller runs are free.
  // True may be too hopeful.
  bool may_have_run(unsigned slot_class) const;
  // Held blocks that no row owns are free again, for everybody: what allocate() returned for a
  // transaction that is not submitted after all, what mark_freed() took once it may be reused, and
  // what background work held. They do not go back to a reservation.
  void give_back(const Extent& extent);

  // The commit lane, in log order, when a transaction is durable: [extent] is owned / is owned no
  // more.
  void mark_owned(const Run& run);
  void mark_freed(const Extent& extent);

  // True where a write of `extent` is the first touch of any of its blocks.
  bool is_unwritten(const Extent& extent) const;
  // Held blocks only.
  void mark_written(const Run& run);

  // Recovery: the state of a checkpoint, then mark_owned() and mark_freed() replayed over it in
  // log order. They may name containers that were emptied and removed since.
  void load(uint32_t container, const BlockBitmap& durable);
  // From here on held = durable. EIO where a block is owned in a container that was not added,
  // or where the log contradicts the checkpoint.
  Status finish_recovery();

  // Containers whose durable bitmap changed since the last call (a removed one: an empty bitmap of
  // 0 blocks).
  struct OwnedState {
    uint32_t container;
    unsigned slot_class;
    BlockBitmap bitmap;
  };
  std::vector<OwnedState> take_dirty();
  std::optional<BlockBitmap> owned_bitmap(uint32_t container) const;
  std::vector<uint32_t> containers() const;

  // Background work holds a run while it works on it, so that nobody else gets it; never one that
  // would break a reservation. Each begin_ is ended by give_back() (the run is free) or
  // end_punch().

  // A run of free unwritten blocks of a class, for the preparer; mark_written() when it is.
  std::optional<Extent> begin_prepare(unsigned slot_class, uint32_t max_blocks);
  // A run of free blocks in a quiet container, for the puncher. Looks at a few containers per call.
  std::optional<Extent> begin_punch(const QuietRule& rule, uint32_t min_blocks,
                                    uint32_t max_blocks);
  // The hole is punched: the blocks are unwritten, and not free until they are restored.
  void end_punch(const Extent& extent);
  // A punched run (of a class, or of any) to give space to again.
  std::optional<Extent> begin_restore(std::optional<unsigned> slot_class, uint32_t max_blocks);
  // A quiet container in which nothing is held or durable, and which its class and the
  // reservations can spare.
  std::optional<uint32_t> idle_container(const QuietRule& rule) const;
  // Takes an entirely free container of another class, the one with the most written blocks, to
  // make it one of `slot_class`: all of it is held until end_reclass(), or give_back() where
  // nothing comes of it. `may_be_last`: also the last such container of a class in use. Never one
  // that reservations need.
  struct Reclassed {
    uint32_t container;
    unsigned slot_class;  // so far
    uint32_t blocks;
    Extent all() const { return {container, 0, blocks}; }
  };
  std::optional<Reclassed> begin_reclass(unsigned slot_class, bool may_be_last);
  bool can_reclass(unsigned slot_class, bool may_be_last) const;
  // From here on it is `container` of `slot_class`, and the one that it was is gone, as if removed.
  void end_reclass(const Reclassed& old, uint32_t container, unsigned slot_class);
  // An error has left nobody knows what: it is gone, and nothing has come of it.
  void lose_reclassed(const Reclassed& old);
  // The clock of QuietRule::min_age.
  void advance_age();

  AllocatorUsage usage() const;

 private:
  struct Class {
    // Containers with something free, by ContainerState::Counts::order.
    std::array<std::set<uint32_t>, slot_classes> by_order;
    std::set<uint32_t> with_unwritten;
    std::set<uint32_t> all_free;  // of which every block is
    uint32_t cursor_container = 0;  // where the last slot was taken, and the block after it
    uint32_t cursor_block = 0;
  };

  // All of these with mutex_ held.
  ContainerState& state(uint32_t container);
  const ContainerState& state(uint32_t container) const;
  // Changes a container, and follows with the sums and indexes.
  template <typename Change>
  void change(ContainerState& container, Change change) {
    const ContainerState::Counts before = container.counts();
    change();
    account(container, before, container.counts());
  }
  void account(const ContainerState& container, const ContainerState::Counts& before,
               const ContainerState::Counts& after);
  void account_new(const ContainerState& container);
  void account_gone(const ContainerState& container);
  uint64_t unreserved_blocks() const { return usage_.free_blocks - usage_.reserved_blocks; }
  void note_demand(unsigned slot_class);
  BlockBitmap take_out(const Reclassed& old);
  // The one that begin_reclass() takes, where there is one.
  std::optional<uint32_t> reclassable(unsigned slot_class, bool may_be_last) const;

  Extent take(ContainerState& container, uint32_t block, uint32_t blocks);
  std::optional<Extent> take_slot(unsigned slot_class);
  std::optional<Extent> take_part(unsigned order);
  void take_pieces(unsigned order, std::vector<Extent>* extents);
  void append(const Extent& extent, std::vector<Extent>* extents) const;
  void give(const Extent& extent);

  // Recovery: one extent of the log, owned from here on or no more.
  void replay(const Run& run, bool owned);

  mutable std::mutex mutex_;
  std::map<uint32_t, std::unique_ptr<ContainerState>> containers_;
  std::array<Class, slot_classes> classes_;
  AllocatorUsage usage_;
  uint64_t demand_ = 0;  // sum of usage_.classes[].recent_slots
  std::set<uint32_t> dirty_;     // durable bitmap changed, or removed
  std::map<uint32_t, unsigned> removed_;  // of these, the removed ones, with their class
  uint32_t next_container_id_ = 0;
  uint32_t punch_cursor_ = 0;
  uint64_t age_ = 0;

  bool recovering_ = true;
  std::map<uint32_t, BlockBitmap> missing_;  // recovering: durable blocks of containers not added
  Status recovery_error_;                    // the first one
};

}  // namespace tablestore
