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
  const SpaceState state =
      policy_.state(allocator_.usage(), space->available_bytes, others_());
  is_short_ = state.short_bytes > 0;
  return state;
}

// --- open

// What has no space, punched or never given any, gets it when it is asked for: how much there may
// be is not known yet.
Status ContainerSpace::open() {
  auto found = files_.open(policy_.options().open_threads);
  if (!found.ok()) return found.status();
  for (ContainerFiles::Found& container : *found) add(std::move(container));
  for (uint32_t container : files_.incomplete()) allocator_.skip_container_id(container);
  return {};
}

void ContainerSpace::add(ContainerFiles::Found found) {
  allocator_.add_container(found.container, found.slot_class, files_.blocks(),
                           std::move(found.unwritten), std::move(found.holes));
}

// Of which class it was does not matter to what refers to its blocks.
Status ContainerSpace::make_again(uint32_t container) {
  if (files_.is_incomplete(container)) {
    auto found = files_.complete(container);
    if (found.ok()) add(found.take());
    return found.status();
  }
  const unsigned slot_class = slot_classes - 1;
  auto unwritten = files_.create(container, slot_class);
  if (!unwritten.ok()) return unwritten.status();
  allocator_.add_container(container, slot_class, files_.blocks(), unwritten.take());
  return {};
}

// What has a row keeps it also where there is no space for it now, and reads as zeros.
void ContainerSpace::fill_owned() {
  for (const Run& run : allocator_.take_owned_without_space()) {
    File& file = files_.file(run.container);
    if (!file.allocate(run.offset_bytes(), run.length_bytes()).ok()) return;
  }
}

// --- to grow

Result<Grown> ContainerSpace::failed(const Status& s) {
  if (files_.flush_failed()) return s;
  tell(s.code() == ENOSPC ? Status() : s);
  return Grown::no_room;
}

void ContainerSpace::tell(const Status& s) {
  {
    std::lock_guard lock(error_mutex_);
    if (s.ok() && growth_error_.ok()) return;
    growth_error_ = s;
  }
  told_(s);
}

Status ContainerSpace::growth_error() const {
  std::lock_guard lock(error_mutex_);
  return growth_error_;
}

Status ContainerSpace::remove_incomplete() {
  const Status s = files_.remove_incomplete();
  if (s.ok()) return s;
  const auto grown = failed(s);
  return grown.ok() ? Status() : grown.status();
}

Result<Grown> ContainerSpace::restore(std::optional<unsigned> slot_class,
                                      const SpaceState& state) {
  const auto run = allocator_.begin_restore(slot_class, policy_.restore_blocks(state));
  if (!run) return Grown::no_room;
  const Status s = files_.file(run->container).allocate(run->offset_bytes(), run->length_bytes());
  if (!s.ok()) {
    allocator_.give_back_punched(*run);
    return failed(s);
  }
  allocator_.give_back(*run);
  tell({});
  return Grown::yes;
}

uint32_t ContainerSpace::take_container_id() {
  const uint32_t container = allocator_.next_container_id();
  allocator_.skip_container_id(container);
  return container;
}

Status ContainerSpace::make(unsigned slot_class) {
  if (Status s = remove_incomplete(); !s.ok()) return s;
  const uint32_t container = take_container_id();
  auto unwritten = files_.create(container, slot_class);
  if (!unwritten.ok()) return unwritten.status();
  allocator_.add_container(container, slot_class, files_.blocks(), unwritten.take());
  memory_.note_file(true);
  memory_.note_container_for(slot_class);
  tell({});
  ++counters_.containers_created;
  return {};
}

Result<Grown> ContainerSpace::create(unsigned slot_class) {
  const Status s = make(slot_class);
  if (s.ok()) return Grown::yes;
  memory_.note_file(false);
  return failed(s);
}

Result<Grown> ContainerSpace::create_unasked(unsigned slot_class) {
  const Status s = make(slot_class);
  if (s.ok()) return Grown::yes;
  if (files_.flush_failed() || !is_lack(s.code())) return failed(s);
  return Grown::no_room;
}

Result<Grown> ContainerSpace::reclass(unsigned slot_class, Allocator::LastFree last) {
  if (memory_.name_refused()) return Grown::no_room;
  const auto old = allocator_.begin_reclass(slot_class, last);
  if (!old) return Grown::no_room;
  const uint32_t container = take_container_id();
  const Status s = files_.rename(old->container, container, slot_class);
  if (!s.ok() && files_.exists(old->container)) {
    memory_.note_name_refused();
    allocator_.give_back(old->all());
    return s.code() == ENOSPC ? Grown::no_room : failed(s);
  }
  // Under which name the file is now is not known: it is there again after a restart.
  if (!s.ok()) {
    memory_.note_name_refused();
    allocator_.lose_reclassed(*old);
    return failed(s);
  }
  allocator_.end_reclass(*old, container, slot_class);
  memory_.note_container_for(slot_class);
  ++counters_.containers_reclassed;
  return Grown::yes;
}

// --- background steps

Result<Worked> ContainerSpace::prepare(const Run& run, PreparePace::Piece* piece) {
  File& file = files_.file(run.container);
  const auto begin = std::chrono::steady_clock::now();
  const Status written = file.write_zeroes(run.offset_bytes(), run.length_bytes());
  piece->write = std::chrono::steady_clock::now() - begin;
  const Status flushed = written.ok() ? files_.flush(file) : Status();
  piece->flush = std::chrono::steady_clock::now() - begin - piece->write;
  if (written.ok() && flushed.ok()) allocator_.mark_written(run);
  allocator_.give_back(run);
  if (is_lack(written.code())) return Worked::nothing_to_do;
  if (!written.ok()) return written;
  if (!flushed.ok()) return flushed;
  piece->bytes = run.length_bytes();
  counters_.prepared_bytes += run.length_bytes();
  return Worked::yes;
}

Result<Worked> ContainerSpace::remove_idle(const QuietRule& rule, uint64_t* bytes_done) {
  const auto idle = allocator_.idle_container(rule);
  return idle ? remove(*idle, bytes_done) : Worked::nothing_to_do;
}

// What was freed in it became durable before the blocks were given back, so that no state that
// recovery can come back to needs the file.
Result<Worked> ContainerSpace::remove(uint32_t container, uint64_t* bytes_done) {
  if (!allocator_.remove_container(container)) return Worked::nothing_to_do;
  if (Status s = files_.remove(container); !s.ok()) {
    const auto gone = failed(s);
    return gone.ok() ? Result<Worked>(Worked::nothing_to_do) : gone.status();
  }
  memory_.note_space_given_back();
  *bytes_done = policy_.options().container_bytes;
  ++counters_.containers_removed;
  return Worked::yes;
}

Result<Worked> ContainerSpace::punch(const QuietRule& rule, GrowthPolicy::PunchSize size,
                                     uint64_t* bytes_done) {
  const auto run = allocator_.begin_punch(rule, size.min_blocks, size.max_blocks);
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
  if (!s.ok()) {
    memory_.note_punch_refused();
    const auto kept = failed(s);
    return kept.ok() ? Result<Worked>(Worked::nothing_to_do) : kept.status();
  }
  memory_.note_space_given_back();
  *bytes_done = run->length_bytes();
  counters_.punched_bytes += run->length_bytes();
  return Worked::yes;
}

}  // namespace tablestore
