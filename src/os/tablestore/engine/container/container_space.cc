#include "os/tablestore/engine/container/container_space.h"

#include <utility>

#include "os/tablestore/engine/io/repeated_read.h"

namespace tablestore {

ContainerSpace::ContainerSpace(Disk& disk, const GrowthPolicy& policy, Counters& counters)
    : disk_(disk),
      policy_(policy),
      counters_(counters),
      files_(disk, policy.options().container_bytes) {}

Result<SpaceState> ContainerSpace::state() const {
  const auto space = read_repeatedly([this] { return disk_.space(); });
  if (!space.ok()) return space.status();
  SpaceState state{allocator_.usage()};
  state.growable_bytes = policy_.growable_bytes(state.usage, space->available_bytes);
  return state;
}

// --- open

Status ContainerSpace::open() {
  auto found = files_.open(policy_.options().open_threads);
  if (!found.ok()) return found.status();
  for (ContainerFiles::Found& container : *found)
    if (auto s = add(std::move(container)); !s.ok()) return s;
  for (uint32_t container : files_.incomplete()) allocator_.skip_container_id(container);
  return {};
}

Status ContainerSpace::add(ContainerFiles::Found found) {
  auto holes = fill_holes(files_.file(found.container), found.unwritten);
  if (!holes.ok()) return holes.status();
  allocator_.add_container(found.container, found.slot_class, files_.blocks(),
                           std::move(found.unwritten), holes.take());
  return {};
}

// Which unwritten ranges are holes (punched, or never given space) is not remembered: space is
// given to all, piece by piece as far as the headroom stays. One that has its space costs nothing.
Result<BlockBitmap> ContainerSpace::fill_holes(File& file, const BlockBitmap& unwritten) {
  BlockBitmap holes(unwritten.blocks());
  for (uint32_t at = unwritten.next_set(0); at < unwritten.blocks();) {
    const uint32_t end = unwritten.next_clear(at);
    const auto filled = fill_hole(file, at, end - at);
    if (!filled.ok()) return filled.status();
    if (!*filled) holes.set(at, end - at);
    at = unwritten.next_set(*filled ? at + *filled : end);
  }
  return holes;
}

Result<uint32_t> ContainerSpace::fill_hole(File& file, uint32_t block, uint32_t blocks) {
  const auto space = read_repeatedly([this] { return disk_.space(); });
  if (!space.ok()) return space.status();
  const uint32_t piece = policy_.fill_blocks(blocks, space->available_bytes);
  if (!piece) return uint32_t(0);
  const Status s = file.allocate(uint64_t(block) * block_bytes, uint64_t(piece) * block_bytes);
  if (s.code() == ENOSPC) return uint32_t(0);
  if (!s.ok()) return s;
  return piece;
}

// Of which class it was does not matter to what refers to its blocks.
Status ContainerSpace::make_again(uint32_t container) {
  if (files_.is_incomplete(container)) {
    auto found = files_.complete(container);
    return found.ok() ? add(found.take()) : found.status();
  }
  const unsigned slot_class = slot_classes - 1;
  auto unwritten = files_.create(container, slot_class);
  if (!unwritten.ok()) return unwritten.status();
  allocator_.add_container(container, slot_class, files_.blocks(), unwritten.take());
  return {};
}

// --- to grow

Result<Grown> ContainerSpace::restore(std::optional<unsigned> slot_class,
                                      const SpaceState& state) {
  const auto run = allocator_.begin_restore(slot_class, policy_.restore_blocks(state));
  if (!run) return Grown::no_room;
  const Status s = files_.file(run->container).allocate(run->offset_bytes(), run->length_bytes());
  if (!s.ok()) {
    allocator_.give_back_punched(*run);
    if (s.code() == ENOSPC) return Grown::no_room;
    return s;
  }
  allocator_.give_back(*run);
  return Grown::yes;
}

uint32_t ContainerSpace::take_container_id() {
  const uint32_t container = allocator_.next_container_id();
  allocator_.skip_container_id(container);
  return container;
}

Result<Grown> ContainerSpace::create(unsigned slot_class) {
  const uint32_t container = take_container_id();
  auto unwritten = files_.create(container, slot_class);
  memory_.note_file(unwritten.ok());
  if (!unwritten.ok()) {
    if (is_lack(unwritten.status().code())) return Grown::no_room;
    return unwritten.status();
  }
  allocator_.add_container(container, slot_class, files_.blocks(), unwritten.take());
  memory_.note_container_for(slot_class);
  ++counters_.containers_created;
  return Grown::yes;
}

Result<Grown> ContainerSpace::reclass(unsigned slot_class, Allocator::LastFree last) {
  if (memory_.name_refused()) return Grown::no_room;
  const auto old = allocator_.begin_reclass(slot_class, last);
  if (!old) return Grown::no_room;
  const uint32_t container = take_container_id();
  const Status s = files_.rename(old->container, container, slot_class);
  if (s.code() == ENOSPC) {
    memory_.note_name_refused();
    allocator_.give_back(old->all());
    return Grown::no_room;
  }
  if (!s.ok()) {
    allocator_.lose_reclassed(*old);
    return s;
  }
  allocator_.end_reclass(*old, container, slot_class);
  memory_.note_container_for(slot_class);
  ++counters_.containers_reclassed;
  return Grown::yes;
}

// --- background steps

Result<Worked> ContainerSpace::prepare(unsigned slot_class, uint64_t* bytes_done) {
  const auto run = allocator_.begin_prepare(slot_class, GrowthPolicy::prepare_blocks);
  if (!run) return Worked::nothing_to_do;
  File& file = files_.file(run->container);
  const Status written = file.write_zeroes(run->offset_bytes(), run->length_bytes());
  const Status flushed = written.ok() ? files_.flush(file) : Status();
  if (written.ok() && flushed.ok()) allocator_.mark_written(*run);
  allocator_.give_back(*run);
  if (written.code() == ENOSPC) return Worked::nothing_to_do;
  if (!written.ok()) return written;
  if (!flushed.ok()) return flushed;
  *bytes_done = run->length_bytes();
  counters_.prepared_bytes += run->length_bytes();
  return Worked::yes;
}

// What was freed in it became durable before the blocks were given back, so that no state that
// recovery can come back to needs the file.
Result<Worked> ContainerSpace::remove_idle(const QuietRule& rule, uint64_t* bytes_done) {
  if (!policy_.may_remove_container(allocator_.usage())) return Worked::nothing_to_do;
  const auto idle = allocator_.idle_container(rule);
  if (!idle || !allocator_.remove_container(*idle)) return Worked::nothing_to_do;
  if (Status s = files_.remove(*idle); !s.ok()) return s;
  memory_.note_space_given_back();
  *bytes_done = policy_.options().container_bytes;
  ++counters_.containers_removed;
  return Worked::yes;
}

Result<Worked> ContainerSpace::punch(const QuietRule& rule, uint64_t* bytes_done) {
  const auto size = policy_.punch_size(allocator_.usage());
  if (!size || !memory_.may_punch()) return Worked::nothing_to_do;
  const auto run = allocator_.begin_punch(rule, size->min_blocks, size->max_blocks);
  if (!run) return Worked::nothing_to_do;
  File& file = files_.file(run->container);
  const Status s = file.punch(run->offset_bytes(), run->length_bytes());
  if (s.code() == ENOSPC) {  // a hole may need an extent more
    memory_.note_punch_refused();
    if (file.allocate(run->offset_bytes(), run->length_bytes()).ok())
      allocator_.give_back_unwritten(*run);
    else
      allocator_.give_back_punched(*run);
    return Worked::nothing_to_do;
  }
  // Also after an error: what the range is now is not known, so it needs space and a first touch.
  allocator_.give_back_punched(*run);
  if (!s.ok()) return s;
  memory_.note_space_given_back();
  *bytes_done = run->length_bytes();
  counters_.punched_bytes += run->length_bytes();
  return Worked::yes;
}

}  // namespace tablestore
