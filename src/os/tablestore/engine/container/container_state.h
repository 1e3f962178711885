// What is known of the blocks of one container, and the searches in it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "os/tablestore/engine/container/block_bitmap.h"
#include "os/tablestore/engine/format/extent.h"

namespace tablestore {

// Owned by the Allocator and guarded by its mutex.
//
// A block is in one of three states: free; held; punched (no file-system space stands behind it).
// Independent of that, a row owns it or none does (only held ones can be owned), and it is
// unwritten or not (punched ones always are). Every change asserts the state that it leaves.
//
// A power is the size of an aligned run: 2^power blocks. The slots of class c are runs of power c.
class ContainerState {
 public:
  // Nothing held. Where `punched` has 0 blocks, none is.
  ContainerState(uint32_t id, unsigned slot_class, BlockBitmap unwritten, BlockBitmap punched);

  uint32_t id() const { return id_; }
  unsigned slot_class() const { return slot_class_; }
  uint32_t blocks() const { return owned_.blocks(); }

  struct Counts {
    uint32_t free = 0;
    uint32_t unwritten_free = 0;
    uint32_t punched = 0;
    uint32_t owned = 0;
    // No aligned free run within a slot is of a higher power; -1: nothing is free. An upper bound:
    // a search that fails lowers it, a block that becomes free raises it.
    int max_power = -1;
    bool operator==(const Counts&) const = default;
  };
  const Counts& counts() const { return counts_; }
  bool empty() const { return counts_.free + counts_.punched == blocks(); }

  void take(uint32_t first, uint32_t count);               // free -> held
  void give_back(uint32_t first, uint32_t count);          // held, not owned -> free
  void take_punched(uint32_t first, uint32_t count);       // punched -> held
  void give_back_punched(uint32_t first, uint32_t count);  // held, not owned -> punched, unwritten
  void give_back_unwritten(uint32_t first, uint32_t count);  // held, not owned -> free, unwritten
  void mark_written(uint32_t first, uint32_t count);       // held
  bool is_unwritten(uint32_t first, uint32_t count) const;
  bool is_held(uint32_t first, uint32_t count) const;

  // After recovery: on held blocks only. False, and nothing changed, where a block is owned twice,
  // or given up without being owned.
  bool set_owned(uint32_t first, uint32_t count);
  bool clear_owned(uint32_t first, uint32_t count);  // stays held
  // Makes these the owned blocks, and no others. What was owned before stays held, and is added to
  // `given_up`.
  void adopt_owned(const BlockBitmap& owned, std::vector<Run>* given_up);
  void load_owned(const BlockBitmap& owned) { owned_ = owned; }
  void load_owned(uint32_t chunk, const BlockBitmap& owned) { owned_.set_chunk(chunk, owned); }
  // The end of recovery: what is owned is held, and nothing else. Adds owned blocks that have no
  // space to `without_space`: others have cut the file, or made holes of zeros as they copied it.
  void hold_owned(std::vector<Run>* without_space);
  const BlockBitmap& owned() const { return owned_; }
  const BlockBitmap& unwritten() const { return unwritten_; }  // but for the punched ones
  // Of which chunks (a bit each) the owned blocks have changed since a checkpoint took them.
  BlockBitmap& changed() { return changed_; }
  void note_changed(uint32_t first, uint32_t count);
  // What its bitmaps take.
  uint64_t memory_bytes() const;

  // An aligned free run of this power, which is at most slot_class: the first at or after `from`,
  // else the first of all. Lowers counts().max_power where there is none.
  std::optional<uint32_t> find(unsigned power, uint32_t from);
  // The same for a run that was written before; looks no further than `reach` blocks, from `from`,
  // before it, and from the beginning.
  std::optional<uint32_t> find_written(unsigned power, uint32_t from, uint32_t reach) const;
  // A run of at most `max` blocks that are free and unwritten; 0 blocks where there is none.
  Run find_unwritten_run(uint32_t max) const;
  // A run of `min` to `max` free blocks.
  Run find_free_run(uint32_t min, uint32_t max) const;
  // All runs of blocks that are free or punched.
  std::vector<Run> free_runs() const;
  // A run of at most `max` punched blocks.
  Run find_punched_run(uint32_t max) const;

  uint64_t last_taken_age = 0;  // Allocator's age when a block was last handed out
  uint32_t part_cursor = 0;     // where the last part of a slot was taken
  bool closed = false;          // see Allocator::close_containers()

 private:
  using Busy = std::array<const BlockBitmap*, 3>;
  Busy busy() const { return {&owned_, &held_, &punched_}; }  // what is not free
  bool is_any_busy(uint32_t first, uint32_t count) const;
  Run run(uint32_t first, uint32_t end) const { return {id_, first, end - first}; }
  void lower_max_power(int power);
  int longest_power() const;
  void raise_max_power(uint32_t first, uint32_t count);

  uint32_t id_;
  unsigned slot_class_;
  Counts counts_;
  // No block is in two of the first three, nor in the last two: of a store that has been in use for
  // long, hardly anything but `owned_` has chunks that are not alike.
  BlockBitmap owned_;
  BlockBitmap held_;      // by whom no row knows
  BlockBitmap punched_;   // and so unwritten
  BlockBitmap unwritten_;
  BlockBitmap changed_;   // a bit per chunk
};

}  // namespace tablestore
