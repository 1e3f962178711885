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
//   owned      a row owns it, according to the log up to the last durable transaction (what a
//              checkpoint saves)
//   unwritten  its first write makes the file system allocate or convert
//   punched    its space was given back to the file system: not free until it is restored
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "os/tablestore/engine/container/allocator_usage.h"
#include "os/tablestore/engine/container/block_bitmap.h"
#include "os/tablestore/engine/container/container_state.h"
#include "os/tablestore/engine/container/free_space.h"
#include "os/tablestore/engine/format/extent.h"
#include "os/tablestore/engine/status.h"

namespace tablestore {

// Thread-safe: one mutex guards all. Asserts I7: a block is never handed out twice, never given
// back while free, never owned twice. Between construction and finish_recovery() nothing is free.
class Allocator {
 public:
  static constexpr uint64_t demand_window = 1 << 16;  // of AllocatorUsage::Class::recent_slots

  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // A container with nothing held. `unwritten` as File::unwritten() says, in blocks; `punched`, of
  // these, the ones without space (an empty bitmap: none).
  void add_container(uint32_t container, unsigned slot_class, uint32_t blocks,
                     BlockBitmap unwritten, BlockBitmap punched = BlockBitmap(0));
  // Only when nothing in it is held and reservations hold without it; false otherwise. Reduces what
  // can be reserved.
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
  // Held blocks that no row owns are free again, for everybody; they do not go back to a
  // reservation. These are: what allocate() returned for a transaction that is not submitted after
  // all; what mark_freed() named, once it may be reused; and what background work held (see below).
  void give_back(const Run& run);

  // Of a durable transaction, in log order, by the commit lane: a row owns the run from here on, or
  // no row owns the extent any more. What was freed stays held until give_back(). After recovery.
  void mark_owned(const Run& run);
  void mark_freed(const Extent& extent);

  // True where a write of `extent` is the first touch of any of its blocks.
  bool is_unwritten(const Extent& extent) const;
  // Held blocks only.
  void mark_written(const Run& run);

  // Recovery: the state of a checkpoint, then what the log says, replayed over it in log order. It
  // may name containers that were emptied and removed since.
  //
  // A chunk (BlockBitmap::chunk_blocks of a container) after all transactions before `as_of`, which
  // are not replayed over it; 0: as of the beginning of what is replayed, as all chunks of which
  // nothing is said, and in which nothing is owned.
  void load(uint32_t container, uint32_t chunk, const BlockBitmap& owned, uint64_t as_of);
  // All chunks of a container, from a row of the old format; load() of one of them comes later.
  void load_whole(uint32_t container, const BlockBitmap& owned);
  // Some of the checkpoint cannot be read. Which blocks of these chunks are owned cannot be told,
  // but for what is replayed: all others count as owned. There may have been more, of containers
  // that were emptied and removed since.
  struct ChunkName {
    uint32_t container;
    uint32_t chunk;
    auto operator<=>(const ChunkName&) const = default;
  };
  void load_unknown(const std::set<ChunkName>& chunks);
  void replay_owned(const Run& run, uint64_t lsn);
  void replay_freed(const Extent& extent, uint64_t lsn);
  // Those with owned blocks that were not added so far; add_container() may still do it.
  std::vector<uint32_t> missing_containers() const;
  // From here on what is owned is held, and all else is free or punched. EIO where a block is owned
  // in a container that was not added, or where the log contradicts the checkpoint.
  Status finish_recovery();
  // What finish_recovery() found owned, and the file system without space: it is to get some, so
  // that it has it when it is free again.
  std::vector<Run> take_owned_without_space();

  // For repair: rows own exactly these blocks; containers that are not there are passed over. What
  // rows do not own stays held: it is returned, and give_back() is for when a checkpoint has told.
  // EBUSY where somebody holds a block that no row owns, or a reservation.
  Result<std::vector<Run>> adopt_owned(const std::map<uint32_t, BlockBitmap>& owned_by_rows);

  // A checkpoint: which blocks are owned, of all chunks in which that has changed, in pieces.
  // begin_capture() and take_changed() are called by who has the commit lane, so that no
  // transaction is half in; between two calls, others commit. They go through the containers by
  // number, once: what changes behind them is for the next checkpoint.
  void begin_capture();
  struct OwnedChunk {
    uint32_t container;
    uint32_t chunk;
    BlockBitmap owned;
  };
  // At most `max`, changed since they were last taken. None: all that had changed at
  // begin_capture() have been taken.
  std::vector<OwnedChunk> take_changed(size_t max);
  // These count as changed again: of a checkpoint that came to nothing.
  void put_back_changed(const std::vector<OwnedChunk>& chunks);
  // The next capture takes all chunks of all containers.
  void mark_all_changed();
  // Rows that nobody needs any more where a recovery starts from that begin_capture() or later, as
  // it replays nothing over them: of a container that was gone by then (0 to `chunks`), and the one
  // row of a container that is in the old format. About `max`; none: these were all.
  struct GoneRows {
    uint32_t container;
    uint32_t chunks;
  };
  std::vector<GoneRows> take_gone(size_t max);

  std::optional<BlockBitmap> owned_bitmap(uint32_t container) const;
  std::vector<uint32_t> containers() const;
  std::vector<ContainerUsage> usage_by_container() const;

  // Background work holds a run while it works on it, so that nobody else gets it; never one that
  // would break a reservation. How each hold ends:
  //
  //   begin_prepare, begin_prepare_whole   mark_written() once it is, and always give_back()
  //   begin_punch     give_back_punched(), also where punching failed; give_back_unwritten() where
  //                   it has its space all the same
  //   begin_restore   give_back() when it has its space, else give_back_punched()
  //   begin_reclass   end_reclass(); give_back(all()) where nothing has changed; lose_reclassed()
  //                   where nobody knows what has

  // A run of free unwritten blocks of a class.
  std::optional<Run> begin_prepare(unsigned slot_class, uint64_t max_blocks);
  // The same in an entirely free container of any class, the one that lacks least.
  std::optional<Run> begin_prepare_whole(uint64_t max_blocks);
  // A run of free blocks in a quiet container. Looks at so many containers per call.
  static constexpr size_t punch_candidates = 64;
  std::optional<Run> begin_punch(const QuietRule& rule, uint32_t min_blocks,
                                    uint32_t max_blocks);
  // A punched run, of a class or of any.
  std::optional<Run> begin_restore(std::optional<unsigned> slot_class, uint32_t max_blocks);
  // Held blocks are free, and their next write is a first touch.
  void give_back_unwritten(const Run& run);
  // Held blocks have no space any more: they are unwritten, and not free until they are restored.
  void give_back_punched(const Run& run);

  // All of an entirely free container of another class, the one with the most written blocks, to
  // make it one of `slot_class`.
  struct Reclassed {
    uint32_t container;
    uint32_t blocks;
    Run all() const { return {container, 0, blocks}; }
  };
  // What happens to the last entirely free container of a class that is in use itself.
  enum class LastFree { keep, take };
  std::optional<Reclassed> begin_reclass(unsigned slot_class, LastFree last);
  bool can_reclass(unsigned slot_class, LastFree last) const;
  // From here on it is `container` of `slot_class`, and the one that it was is gone, as if removed.
  void end_reclass(const Reclassed& old, uint32_t container, unsigned slot_class);
  // It is gone, and nothing has come of it.
  void lose_reclassed(const Reclassed& old);

  // A quiet container in which nothing is held, and which its class and the reservations can
  // spare; no closed one; for remove_container(). Looks at a few containers per call, the newest
  // first.
  std::optional<uint32_t> idle_container(const QuietRule& rule);
  // The clock of QuietRule::min_age.
  void advance_age();

  // Closes containers that are to be emptied: nothing is handed out from one, prepared or restored
  // in it, as long as there is anything in others. It is a preference, no rule: all counts as free
  // as before, and who finds nothing elsewhere opens one again. Forgotten at a restart.
  //
  // Of those with at most `max_live_percent` of their blocks owned the ones with the fewest: as
  // many as others have free blocks for, with `growable_blocks` that these can get, and none where
  // no container would be the fewer for it. All that were closed before are opened.
  void close_containers(unsigned max_live_percent, uint64_t growable_blocks);
  // How many have some, but at most so much of their blocks owned.
  uint64_t count_nearly_empty(unsigned max_live_percent) const;
  std::set<uint32_t> closed() const;
  // Owned ones, in closed containers.
  uint64_t closed_live_blocks() const;
  // A closed one in which nothing is held; for remove_container().
  std::optional<uint32_t> emptied() const;
  // One that is closed; it may be gone.
  void open_container(uint32_t container);
  // False where none was closed.
  bool open_all();

  AllocatorUsage usage() const;
  // What the bitmaps of all containers take. Looks at all of them: for who asks, not for each
  // transaction.
  uint64_t bitmap_bytes() const;
  // Each run of blocks that are free or punched, by container and block (free_space.cc, as the
  // next). They look at all bitmaps: for who asks.
  void visit_free_runs(
      const std::function<void(unsigned slot_class, const Run& run)>& visitor) const;
  FreeSpace free_space() const;

 private:
  struct Class {
    // Containers with something free, by ContainerState::Counts::max_power.
    std::array<std::set<uint32_t>, slot_classes> by_max_power;
    std::set<uint32_t> with_unwritten;
    std::set<uint32_t> with_punched;
    // Of which every block is free, by how many of them are unwritten.
    std::set<std::pair<uint32_t, uint32_t>> all_free;
    uint32_t cursor_container = 0;  // where the last slot was taken
    uint32_t cursor_block = 0;      // the block after it
  };

  // All of these with mutex_ held.
  ContainerState& state(uint32_t container);
  const ContainerState& state(uint32_t container) const;
  // Changes a container, and brings sums and indexes up to date.
  template <typename Change>
  void change(ContainerState& container, Change change) {
    const ContainerState::Counts before = container.counts();
    change();
    account(container, before, container.counts());
  }
  void account(const ContainerState& container, const ContainerState::Counts& before,
               const ContainerState::Counts& after);
  // The sums of its class and of all; and where its blocks are looked for, unless it is closed.
  void add_to_sums(const ContainerState& container, const ContainerState::Counts& before,
                   const ContainerState::Counts& after);
  void index(const ContainerState& container, const ContainerState::Counts& before,
             const ContainerState::Counts& after);
  void set_closed(ContainerState& container, bool closed);
  // Of the closed ones with something free, the one that would be the last to be empty.
  bool open_fullest();
  Run hold_unwritten(uint32_t container, uint64_t max_blocks);
  // Every block of it is free, and the rule keeps what there is of such.
  bool keeps_whole(const QuietRule& rule, const ContainerState& container) const;
  void account_new(const ContainerState& container);
  void account_gone(ContainerState& container);
  uint64_t unreserved_blocks() const { return usage_.free_blocks - usage_.reserved_blocks; }
  void note_demand(unsigned slot_class);
  // Removes a container that changes its class; returns which of its blocks are unwritten.
  BlockBitmap take_out(const Reclassed& old);
  // The one that begin_reclass() takes, where there is one.
  std::optional<uint32_t> reclassable(unsigned slot_class, LastFree last) const;

  Extent take(ContainerState& container, uint32_t block, uint32_t blocks);
  std::optional<Extent> take_slot(unsigned slot_class);
  std::optional<Extent> take_part(unsigned power);
  void take_pieces(unsigned power, std::vector<Extent>* extents);
  void append(const Extent& extent, std::vector<Extent>* extents) const;
  void give_back_locked(const Run& run);

  void note_changed(ContainerState& container, const Run& run);

  // Parts of the recovery.
  void replay(const Run& run, bool owned, uint64_t lsn);
  // Within one chunk. False: it contradicts what precedes.
  bool replay_in_chunk(const Run& run, bool owned);
  void load_failed(uint32_t container, const std::string& why);

  mutable std::mutex mutex_;
  std::map<uint32_t, std::unique_ptr<ContainerState>> containers_;
  std::array<Class, slot_classes> classes_;
  AllocatorUsage usage_;
  uint64_t demand_ = 0;  // sum of usage_.classes[].recent_slots
  std::set<uint32_t> changed_;   // containers that have changed chunks, also gone ones
  ChunkName next_captured_{0, 0};
  uint64_t captures_ = 0;        // begun
  // Containers of which rows go with a capture.
  struct Gone {
    uint32_t blocks;             // 0: it is there, and has a row of the old format
    BlockBitmap changed;         // chunks, as ContainerState::changed()
    uint64_t captures;           // begun before
  };
  std::map<uint32_t, Gone> gone_;
  uint32_t next_container_id_ = 0;
  uint32_t punch_cursor_ = 0;
  std::set<uint32_t> empty_;     // containers in which nothing is held
  std::set<uint32_t> closed_;
  uint32_t idle_cursor_ = UINT32_MAX;
  uint64_t age_ = 0;

  bool recovering_ = true;
  std::map<uint32_t, BlockBitmap> missing_;  // recovering: owned blocks of containers not added
  std::map<ChunkName, uint64_t> as_of_;      // recovering: see load(); only what is not 0
  std::vector<Run> owned_without_space_;
  std::set<ChunkName> unknown_;              // recovering: see load_unknown()
  bool checkpoint_is_whole_ = true;          // the same
  Status recovery_error_;                    // the first one
};

}  // namespace tablestore
