#include "os/tablestore/engine/container/containers.h"

#include <algorithm>
#include <bit>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

constexpr uint64_t mebibyte_blocks = (1 << 20) / block_bytes;
constexpr uint32_t prepare_run_blocks = mebibyte_blocks;
constexpr uint32_t punch_min_blocks = mebibyte_blocks;
constexpr uint32_t punch_max_blocks = 16 * mebibyte_blocks;
constexpr uint64_t restore_max_bytes = 64 << 20;

// A class has shown that it needs containers when it lately called for so many slots, for so many
// blocks, or for this part of a container.
constexpr uint64_t deserving_slots = 1024;
constexpr uint64_t deserving_blocks = 16 * mebibyte_blocks;
constexpr uint64_t deserving_part = 8;
// The part of the capacity that only reserve() makes containers from.
constexpr uint64_t last_part = 8;
// Fewer slots than this say nothing about which classes are in use.
constexpr uint64_t telling_slots = 1024;

std::string in_mib(uint64_t bytes) {
  return std::to_string(bytes >> 20) + "." + std::to_string((bytes >> 10) % 1024 * 10 / 1024) +
         " MiB";
}

}  // namespace

Containers::Containers(Disk& disk, ContainerOptions options, Counters& counters)
    : disk_(disk),
      options_(options),
      counters_(counters),
      files_(disk, options.container_bytes) {}

Containers::~Containers() = default;

Status Containers::open() {
  auto found = files_.open();
  if (!found.ok()) return found.status();
  for (ContainerFiles::Found& container : *found) {
    auto holes = fill_holes(files_.file(container.container), container.unwritten);
    if (!holes.ok()) return holes.status();
    allocator_.add_container(container.container, container.slot_class, container_blocks(),
                             std::move(container.unwritten), holes.take());
  }
  for (uint32_t container : files_.incomplete()) allocator_.skip_container_id(container);
  return {};
}

// Which unwritten ranges are holes (punched, or never given space) is not remembered: space is
// given to all, piece by piece as far as the headroom stays. One that has its space costs nothing.
Result<BlockBitmap> Containers::fill_holes(File& file, const BlockBitmap& unwritten) {
  BlockBitmap holes(unwritten.blocks());
  for (uint32_t at = unwritten.next_set(0); at < unwritten.blocks();) {
    const uint32_t end = unwritten.next_clear(at);
    auto space = disk_.space();
    if (!space.ok()) return space.status();
    const uint64_t available =
        space->available_bytes - std::min(space->available_bytes, options_.headroom_bytes);
    uint32_t piece = std::min<uint64_t>(end - at, available / block_bytes);
    if (piece < std::min<uint64_t>(end - at, mebibyte_blocks)) piece = 0;
    if (piece) {
      const Status s = file.allocate(at * block_bytes, piece * block_bytes);
      if (!s.ok() && s.code() != ENOSPC) return s;
      if (!s.ok()) piece = 0;
    }
    if (!piece) {
      holes.set(at, end - at);
      piece = end - at;
    }
    at = unwritten.next_set(at + piece);
  }
  return holes;
}

void Containers::close() { files_.close(); }

Status Containers::read(const Extent& extent, std::span<std::byte> out) {
  require(out.size() == extent.length_bytes(), "a read fills its memory");
  if (!holds(extent))
    return Status(EIO, disk_.name() + "/containers: there are no blocks " +
                           std::to_string(extent.block) + "~" + std::to_string(extent.blocks) +
                           " of container " + std::to_string(extent.container) +
                           "; what refers to them is damaged");
  return files_.file(extent.container).read(extent.offset_bytes(), out);
}

Status Containers::provision(Disk& disk, uint64_t container_bytes, uint64_t bytes,
                             const std::function<void(uint64_t)>& progress) {
  ContainerFiles files(disk, container_bytes);
  for (uint64_t made = 0; made + container_bytes <= bytes;) {
    // Of the largest class: any other one's requests can be served from its slots, too.
    const auto unwritten = files.create(made / container_bytes, slot_classes - 1,
                                        ContainerFiles::Space::written);
    if (!unwritten.ok()) return unwritten.status();
    made += container_bytes;
    progress(made);
  }
  return {};
}

// --- space

uint64_t Containers::file_bytes() const {
  const AllocatorUsage usage = allocator_.usage();
  return (usage.blocks - usage.punched_blocks) * block_bytes;
}

Result<uint64_t> Containers::growable_bytes() {
  auto space = disk_.space();
  if (!space.ok()) return space.status();
  uint64_t growable =
      space->available_bytes - std::min(space->available_bytes, options_.headroom_bytes);
  if (options_.capacity_bytes) {
    const uint64_t taken = file_bytes();
    growable =
        std::min(growable, options_.capacity_bytes - std::min(options_.capacity_bytes, taken));
  }
  return growable;
}

uint64_t Containers::obtainable_bytes(const AllocatorUsage& usage, uint64_t growable) const {
  const uint64_t punched =
      std::min(usage.punched_blocks * block_bytes, growable / block_bytes * block_bytes);
  return punched + (growable - punched) / options_.container_bytes * options_.container_bytes;
}

uint64_t Containers::free_bytes() {
  const auto growable = growable_bytes();
  const AllocatorUsage usage = allocator_.usage();
  return usage.free_blocks * block_bytes + (growable.ok() ? obtainable_bytes(usage, *growable) : 0);
}

Status Containers::no_space(uint64_t bytes, uint64_t growable) {
  const AllocatorUsage usage = allocator_.usage();
  std::string cap;
  if (options_.capacity_bytes) cap = " of at most " + in_mib(options_.capacity_bytes);
  return Status(ENOSPC, disk_.name() + "/containers: no space for " + in_mib(bytes) +
                            " of data: " + in_mib(usage.free_blocks * block_bytes) + " free, " +
                            in_mib(usage.reserved_blocks * block_bytes) +
                            " of it promised, containers take " + in_mib(file_bytes()) + cap +
                            " and may take " + in_mib(growable) + " more (in files of " +
                            in_mib(options_.container_bytes) +
                            "); delete data, or give the file system more space");
}

// --- reserve and allocate

Status Containers::reserve(uint64_t bytes) {
  const uint64_t blocks = round_up_to_block(bytes) / block_bytes;
  if (allocator_.reserve(blocks)) return {};
  {
    std::lock_guard growth(growth_mutex_);
    if (Status s = grow_for(blocks); s.code() != ENOSPC) return s;
  }
  // What a background step holds is free again when the step ends.
  std::lock_guard background(background_mutex_);
  std::lock_guard growth(growth_mutex_);
  return grow_for(blocks);
}

void Containers::unreserve(uint64_t bytes) {
  allocator_.unreserve(round_up_to_block(bytes) / block_bytes);
}

Status Containers::grow_for(uint64_t blocks) {
  while (!allocator_.reserve(blocks)) {
    const auto growable = growable_bytes();
    if (!growable.ok()) return growable.status();
    const AllocatorUsage usage = allocator_.usage();
    const uint64_t free = usage.free_blocks - usage.reserved_blocks;
    // Nothing is made in vain.
    if (free * block_bytes + obtainable_bytes(usage, *growable) < blocks * block_bytes) {
      return no_space(blocks * block_bytes, *growable);
    }
    const unsigned slot_class = class_to_grow(blocks);
    auto grown = restore(slot_class, *growable);
    if (grown.ok() && !*grown) grown = restore(std::nullopt, *growable);
    if (grown.ok() && !*grown && *growable >= options_.container_bytes) grown = create(slot_class);
    if (!grown.ok()) return grown.status();
    if (!*grown && !allocator_.reserve(blocks)) return no_space(blocks * block_bytes, *growable);
    if (!*grown) return {};
  }
  return {};
}

unsigned Containers::class_to_grow(uint64_t blocks) const {
  if (const int wanted = wanted_class_.load(std::memory_order_relaxed); wanted >= 0) return wanted;
  return std::min<unsigned>(slot_classes - 1, std::bit_width(std::max<uint64_t>(blocks, 1)) - 1);
}

Result<bool> Containers::restore(std::optional<unsigned> slot_class, uint64_t growable) {
  const uint64_t most = std::min(growable, restore_max_bytes) / block_bytes;
  const auto run = allocator_.begin_restore(slot_class, most);
  if (!run) return false;
  const Status s = files_.file(run->container).allocate(run->offset_bytes(), run->length_bytes());
  if (!s.ok()) {
    allocator_.end_punch(*run);
    if (s.code() == ENOSPC) return false;
    return s;
  }
  allocator_.give_back(*run);
  return true;
}

Result<bool> Containers::create(unsigned slot_class) {
  const uint32_t container = allocator_.next_container_id();
  allocator_.skip_container_id(container);
  auto unwritten = files_.create(container, slot_class);
  create_failed_ = !unwritten.ok();
  if (!unwritten.ok()) {
    if (unwritten.status().code() == ENOSPC) return false;
    return unwritten.status();
  }
  allocator_.add_container(container, slot_class, container_blocks(), unwritten.take());
  if (wanted_class_ == int(slot_class)) wanted_class_ = -1;
  ++counters_.containers_created;
  return true;
}

// The class of an entirely free container is only a name.
Result<bool> Containers::reclass(unsigned slot_class, bool may_be_last) {
  if (reclass_failed_) return false;
  const auto old = allocator_.begin_reclass(slot_class, may_be_last);
  if (!old) return false;
  const uint32_t container = allocator_.next_container_id();
  allocator_.skip_container_id(container);
  const Status s = files_.rename(old->container, container, slot_class);
  if (s.code() == ENOSPC) {
    reclass_failed_ = true;
    allocator_.give_back(old->all());
    return false;
  }
  if (!s.ok()) {
    allocator_.lose_reclassed(*old);
    return s;
  }
  allocator_.end_reclass(*old, container, slot_class);
  if (wanted_class_ == int(slot_class)) wanted_class_ = -1;
  ++counters_.containers_reclassed;
  return true;
}

Result<bool> Containers::obtain_container(unsigned slot_class) {
  auto obtained = reclass(slot_class, false);
  if (!obtained.ok() || *obtained) return obtained;
  if (!create_failed_) {
    auto may = may_create();
    if (!may.ok()) return may.status();
    if (*may) obtained = create(slot_class);
    if (!obtained.ok() || *obtained) return obtained;
  }
  // The last one of another class, rather than that pieces are cut.
  if (!may_take_last(slot_class)) return false;
  return reclass(slot_class, true);
}

bool Containers::in_use(const AllocatorUsage& usage, unsigned slot_class) const {
  return usage.classes[slot_class].recent_slots > 0;
}

bool Containers::deserves_container(unsigned slot_class) {
  const uint64_t slots = allocator_.usage().classes[slot_class].recent_slots;
  const uint64_t enough = std::min(deserving_blocks, container_blocks() / deserving_part);
  const bool in_demand = slots >= deserving_slots || slots * slot_blocks(slot_class) >= enough;
  return in_demand || !allocator_.may_have_run(slot_class);
}

Result<bool> Containers::may_create() {
  const auto growable = growable_bytes();
  if (!growable.ok()) return growable.status();
  return *growable >= options_.container_bytes &&
         *growable > (*growable + file_bytes()) / last_part;
}

// True where the class has one more container, by this thread or another.
bool Containers::obtain_for_allocate(unsigned slot_class) {
  const uint64_t before = allocator_.usage().classes[slot_class].containers;
  if (!deserves_container(slot_class)) return false;
  // Where there is nothing to be had, nobody waits for his turn.
  if (reclass_failed_ || !allocator_.can_reclass(slot_class, may_take_last(slot_class))) {
    const auto may = may_create();
    if (create_failed_ || !may.ok() || !*may) return false;
  }
  std::lock_guard growth(growth_mutex_);
  if (allocator_.usage().classes[slot_class].containers > before) return true;
  if (!deserves_container(slot_class)) return false;
  auto obtained = obtain_container(slot_class);
  if (obtained.ok()) return *obtained;
  if (deferred_error_.ok()) deferred_error_ = obtained.status();
  return false;
}

std::vector<Extent> Containers::allocate(uint64_t bytes) {
  const uint64_t blocks = round_up_to_block(bytes) / block_bytes;
  if (!blocks) return {};
  // A request takes slots of several classes, the larger ones first, and a container that it gets
  // for one of them may be the one that it takes for the next. When it comes back to a larger class
  // there are not enough for both, and it takes pieces.
  unsigned last_wanted = slot_classes;
  uint64_t rest = slot_classes + blocks / container_blocks();  // others may take what it gets
  while (true) {
    unsigned wanted = 0;
    auto extents = allocator_.allocate(blocks, false, &wanted);
    if (!extents.empty()) return extents;
    wanted_class_.store(wanted, std::memory_order_relaxed);
    if (wanted > last_wanted || rest-- == 0 || !obtain_for_allocate(wanted)) break;
    last_wanted = wanted;
  }
  return allocator_.allocate(blocks, true, nullptr);
}

// --- background work

Result<bool> Containers::prepare_step(uint64_t* bytes_done) {
  *bytes_done = 0;
  std::lock_guard background(background_mutex_);
  {
    std::lock_guard growth(growth_mutex_);
    if (!deferred_error_.ok()) return deferred_error_;
    if (Status s = files_.remove_incomplete(); !s.ok()) return s;
  }
  const AllocatorUsage usage = allocator_.usage();
  auto made = make_ahead(usage);
  if (!made.ok() || *made) return made;
  for (unsigned c = 0; c < slot_classes && c <= options_.largest_prepared_class; ++c) {
    const AllocatorUsage::Class& sums = usage.classes[c];
    const uint64_t prepared = (sums.free_blocks - sums.unwritten_free_blocks) * block_bytes;
    if (!in_use(usage, c) || prepared >= options_.prepare_ahead_bytes) continue;
    auto done = prepare_run(c, bytes_done);
    if (!done.ok() || *done) return done;
  }
  return false;
}

// A class in use whose free slots run low gets space before a request has to wait for it.
Result<bool> Containers::make_ahead(const AllocatorUsage& usage) {
  const uint64_t low = std::min(options_.container_bytes, options_.prepare_ahead_bytes) / 2;
  for (unsigned c = 0; c < slot_classes; ++c) {
    if (!in_use(usage, c) || usage.classes[c].free_blocks * block_bytes >= low) continue;
    std::lock_guard growth(growth_mutex_);
    const auto growable = growable_bytes();
    if (!growable.ok()) return growable.status();
    auto grown = restore(c, *growable);
    if (grown.ok() && !*grown && deserves_container(c)) grown = obtain_container(c);
    if (!grown.ok() || *grown) return grown;
  }
  return false;
}

Result<bool> Containers::prepare_run(unsigned slot_class, uint64_t* bytes_done) {
  const auto run = allocator_.begin_prepare(slot_class, prepare_run_blocks);
  if (!run) return false;
  File& file = files_.file(run->container);
  Status s = file.write_zeroes(run->offset_bytes(), run->length_bytes());
  if (s.ok()) s = file.flush();
  if (s.ok()) allocator_.mark_written(*run);
  allocator_.give_back(*run);
  if (s.code() == ENOSPC) return false;
  if (!s.ok()) return s;
  *bytes_done = run->length_bytes();
  counters_.prepared_bytes += run->length_bytes();
  return true;
}

QuietRule Containers::quiet_rule(const AllocatorUsage& usage) const {
  uint64_t slots = 0;
  for (const AllocatorUsage::Class& sums : usage.classes) slots += sums.recent_slots;
  QuietRule rule;
  rule.min_age = options_.quiet_steps;
  for (unsigned c = 0; c < slot_classes; ++c) {
    if (slots >= telling_slots && !in_use(usage, c)) continue;
    rule.spare_blocks[c] = std::max({uint64_t(container_blocks()),
                                     options_.prepare_ahead_bytes / block_bytes,
                                     usage.classes[c].blocks / last_part});
  }
  return rule;
}

uint64_t Containers::surplus_bytes() const {
  const uint64_t bytes = file_bytes();
  return bytes - std::min(bytes, options_.provision_bytes);
}

Result<bool> Containers::shrink_step(uint64_t* bytes_done) {
  *bytes_done = 0;
  std::lock_guard background(background_mutex_);
  const QuietRule rule = quiet_rule(allocator_.usage());
  auto removed = remove_idle_container(rule, bytes_done);
  if (!removed.ok() || *removed) return removed;
  const uint64_t most = std::min<uint64_t>(surplus_bytes() / block_bytes, punch_max_blocks);
  if (most >= punch_min_blocks) {
    if (const auto run = allocator_.begin_punch(rule, punch_min_blocks, most)) {
      return punch_run(*run, bytes_done);
    }
  }
  allocator_.advance_age();
  return false;
}

// What was freed in it became durable before the blocks were released, so that no state that
// recovery can come back to needs the file.
Result<bool> Containers::remove_idle_container(const QuietRule& rule, uint64_t* bytes_done) {
  std::lock_guard growth(growth_mutex_);
  if (surplus_bytes() < options_.container_bytes) return false;
  const auto idle = allocator_.idle_container(rule);
  if (!idle || !allocator_.remove_container(*idle)) return false;
  if (Status s = files_.remove(*idle); !s.ok()) return s;
  create_failed_ = reclass_failed_ = false;
  *bytes_done = options_.container_bytes;
  ++counters_.containers_removed;
  return true;
}

Result<bool> Containers::punch_run(const Extent& extent, uint64_t* bytes_done) {
  const Status s =
      files_.file(extent.container).punch(extent.offset_bytes(), extent.length_bytes());
  // Also after an error: what the range is now is not known, so it needs space and a first touch.
  allocator_.end_punch(extent);
  if (!s.ok()) return s;
  create_failed_ = reclass_failed_ = false;
  *bytes_done = extent.length_bytes();
  counters_.punched_bytes += extent.length_bytes();
  return true;
}

}  // namespace tablestore
