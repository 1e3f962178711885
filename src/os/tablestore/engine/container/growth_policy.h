// When containers grow, for which class, and when they give space back: rules about numbers,
// without I/O and without locks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "os/tablestore/engine/container/allocator_usage.h"
#include "os/tablestore/engine/container/container_options.h"

namespace tablestore {

// What else of the store takes space, and what has to stay available for it.
struct OtherSpace {
  uint64_t taken_bytes = 0;    // counts for ContainerOptions::capacity_bytes
  uint64_t reserve_bytes = 0;
};

// The space of containers at one moment.
struct SpaceState {
  AllocatorUsage usage;
  uint64_t growable_bytes = 0;  // what container files may still take from the file system
  // What the rest of the store lacks of its reserve: nobody else may have so much of what is free.
  uint64_t short_bytes = 0;
};

// How strongly a class calls for one more container.
enum class Claim {
  none,      // it called for few slots lately, and larger slots can be split for it
  ordinary,  // it called for many: one that another class can spare, or else a new file
  pressing,  // its slots would be made up of smaller pieces: also another class's last one
};

// For whom a new container file may be made.
enum class NewFile { for_nobody, for_reservations, for_any_class };

// A value.
//
// Which class gets a container. Space is never stranded, because any free block can serve any
// request; what is at stake is only how contiguous data stays. So, while more than an eighth of the
// capacity is not yet in any container, a class gets one of its own when it has lately called for a
// good part of one, or when its slots would have to be made up of smaller ones. Else its requests
// split larger slots of other classes. In the last eighth they take whatever is free, and a
// container is made only where a reservation finds no free block at all.
//
// Such a container is one of another class that is entirely free, where there is one: it takes no
// more space, and what was written in it stays so. The last one of a class that is itself in use
// is left alone while there is another way, or the two would take it from each other for ever.
class GrowthPolicy {
 public:
  explicit GrowthPolicy(const ContainerOptions& options) : options_(options) {}
  const ContainerOptions& options() const { return options_; }

  // --- how much there is

  // Taken from the file system by container files.
  static uint64_t file_bytes(const AllocatorUsage& usage);
  // Where so much is available on the file system.
  SpaceState state(const AllocatorUsage& usage, uint64_t available_bytes,
                   const OtherSpace& others) const;
  // Free for new data now or by growing, before reservations.
  uint64_t free_bytes(const SpaceState& state) const;
  // What growing can add to the free blocks.
  uint64_t obtainable_blocks(const SpaceState& state) const {
    return obtainable_bytes(state) / block_bytes;
  }
  // Whether a reservation of so many blocks can be met by growing. Nothing is made in vain.
  bool can_promise(const SpaceState& state, uint64_t blocks) const;

  // --- how to grow

  // The class for which a reservation makes space. `lacked`: the one that allocate() lacked last.
  static unsigned class_for_reservation(std::optional<unsigned> lacked, uint64_t blocks);
  // `run_is_free`: there is a free run as long as a slot of the class, in whatever slot.
  Claim claim(const AllocatorUsage& usage, unsigned slot_class, bool run_is_free) const;
  NewFile new_file(const SpaceState& state) const;
  // At most so many blocks of a punched run get their space back at once.
  static uint32_t restore_blocks(const SpaceState& state);

  // --- what to do ahead of use

  // A class in use has so little free that it gets space before a request has to wait for it.
  bool runs_low(const AllocatorUsage& usage, unsigned slot_class) const;
  // Free blocks of a class that were written before.
  static uint64_t prepared_blocks(const AllocatorUsage& usage, unsigned slot_class);
  // How many to prepare at once, of what a class in use is to have more; 0 also where it lacks so
  // few that a flush for them would be too much.
  uint64_t blocks_to_prepare(const AllocatorUsage& usage, unsigned slot_class) const;
  // What requests have ever taken unprepared, of the classes that are prepared.
  uint64_t first_touch_bytes(const AllocatorUsage& usage) const;
  // The stock: entirely free containers, written while nobody wants the disk, for whichever class
  // needs them next. How much there is to be of it, in whole containers; none where others are
  // short of space.
  uint64_t stock_blocks(const SpaceState& state) const;
  bool stock_lacks_container(const SpaceState& state) const;
  // How many to write at once, of what is there of it.
  uint64_t stock_blocks_to_write(const SpaceState& state) const;
  // The same of what a class in use has free itself, where there is to be a stock.
  uint64_t own_blocks_to_write(const SpaceState& state, unsigned slot_class) const;

  // --- what to give back

  QuietRule quiet_rule(const SpaceState& state) const;
  bool may_remove_container(const AllocatorUsage& usage) const;
  struct PunchSize {
    uint32_t min_blocks, max_blocks;
  };
  // Of a run to punch; none where nothing may be.
  std::optional<PunchSize> punch_size(const AllocatorUsage& usage) const;
  // Where others are short of so much, everything that is free may go, however young, small or
  // written: the runs to look for, one size after the other.
  static std::array<PunchSize, 3> relief_sizes(uint64_t short_bytes);
  // A whole container goes at once only where that is not more than is lacking.
  bool relieves_with_container(uint64_t short_bytes) const;

 private:
  uint64_t container_blocks() const { return options_.container_bytes / block_bytes; }
  // Of what is growable, what turns into free blocks: punched runs restored, and whole containers.
  uint64_t obtainable_bytes(const SpaceState& state) const;
  uint64_t piece_blocks() const;
  // What a class in use does not let go: its last entirely free container.
  uint64_t kept_blocks(const AllocatorUsage& usage, unsigned slot_class) const;
  // Of entirely free containers, what is no stock: that, and what only they have for reservations.
  uint64_t other_whole_blocks(const AllocatorUsage& usage) const;
  // What provision_bytes lets go.
  uint64_t surplus_bytes(const AllocatorUsage& usage) const;

  ContainerOptions options_;
};

}  // namespace tablestore
