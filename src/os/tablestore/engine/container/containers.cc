#include "os/tablestore/engine/container/containers.h"

#include <algorithm>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

std::string in_mib(uint64_t bytes) {
  return std::to_string(bytes >> 20) + "." + std::to_string((bytes >> 10) % 1024 * 10 / 1024) +
         " MiB";
}

// An hour of idleness, in Background's steps.
constexpr unsigned stock_pause = 36'000;

// Only a class that would have to take pieces takes the last free container of another one.
Allocator::LastFree last_free(Claim claim) {
  return claim == Claim::pressing ? Allocator::LastFree::take : Allocator::LastFree::keep;
}

}  // namespace

Containers::Containers(Disk& disk, ContainerOptions options, Counters& counters)
    : disk_(disk),
      policy_(options),
      space_(disk, policy_, counters),
      allocator_(space_.allocator()),
      last_resort_(allocator_, options.last_resort_bytes / block_bytes) {}

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

Status Containers::read(const Run& run, std::span<std::byte> out) {
  require(out.size() == run.length_bytes(), "a read fills its memory");
  if (!holds(run))
    return Status(EIO, disk_.name() + "/containers: there are no blocks " +
                           std::to_string(run.block) + "~" + std::to_string(run.blocks) +
                           " of container " + std::to_string(run.container) +
                           "; what refers to them is damaged");
  return space_.files().file(run.container).read(run.offset_bytes(), out);
}

uint64_t Containers::free_bytes() {
  auto state = space_.state();
  const uint64_t kept_bytes = last_resort_.held_blocks() * block_bytes;
  if (!state.ok()) return allocator_.usage().free_blocks * block_bytes - kept_bytes;
  // A file system that says that it has room, and gives none: a quota, or descriptors.
  if (space_.memory().file_refused()) state->growable_bytes = 0;
  const uint64_t bytes = policy_.free_bytes(*state);
  return bytes - std::min(bytes, kept_bytes);
}

Status Containers::no_space(uint64_t blocks, const SpaceState& state) const {
  std::string cap;
  if (options().capacity_bytes) cap = " of at most " + in_mib(options().capacity_bytes);
  return Status(ENOSPC, disk_.name() + "/containers: no space for " + in_mib(blocks * block_bytes) +
                            " of data: " + in_mib(state.usage.free_blocks * block_bytes) +
                            " free, " + in_mib(state.usage.reserved_blocks * block_bytes) +
                            " of it promised, containers take " +
                            in_mib(GrowthPolicy::file_bytes(state.usage)) + cap +
                            " and may take " + in_mib(state.growable_bytes) +
                            " more (in files of " + in_mib(options().container_bytes) +
                            "), the rest of the store lacks " + in_mib(state.short_bytes) +
                            "; delete data, or give the file system more space");
}

// --- reserve

Status Containers::reserve(uint64_t bytes) {
  const uint64_t blocks = round_up_to_block(bytes) / block_bytes;
  if (!space_.is_short() && allocator_.reserve(blocks)) return {};
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

Status Containers::reserve_at_last(uint64_t bytes) {
  const uint64_t blocks = round_up_to_block(bytes) / block_bytes;
  if (last_resort_.take(blocks)) return {};
  const auto state = space_.state();
  return state.ok() ? no_space(blocks, *state) : state.status();
}

void Containers::refill_last_resort() {
  last_resort_.refill();
  const uint64_t lacking = last_resort_.lacking_blocks();
  if (lacking == 0 || space_.is_short()) return;
  if (reserve(lacking * block_bytes).ok()) last_resort_.add(lacking);
}

Status Containers::grow_for(uint64_t blocks) {
  for (;;) {
    const auto state = space_.state();
    if (!state.ok()) return state.status();
    if (!policy_.can_promise(*state, blocks)) return no_space(blocks, *state);
    if (allocator_.reserve(blocks)) return {};
    const unsigned slot_class =
        GrowthPolicy::class_for_reservation(space_.memory().lacked_class(), blocks);
    const auto grown = grow_for_reservation(slot_class, *state);
    if (!grown.ok()) return grown.status();
    if (*grown == Grown::yes) continue;
    // What others have given back meanwhile may do.
    if (allocator_.reserve(blocks)) return {};
    // Nothing is restored in a closed container.
    if (allocator_.open_all()) continue;
    const Status why = space_.growth_error();
    return why.ok() ? no_space(blocks, *state) : why;
  }
}

Result<Grown> Containers::grow_for_reservation(unsigned slot_class, const SpaceState& state) {
  auto grown = space_.restore(slot_class, state);
  if (no_room(grown)) grown = space_.restore(std::nullopt, state);
  if (no_room(grown) && policy_.new_file(state) != NewFile::for_nobody) {
    grown = space_.create(slot_class);
  }
  return grown;
}

void Containers::retry_growth() {
  std::lock_guard growth(growth_mutex_);
  const auto state = space_.state();
  if (!state.ok() || space_.growth_error().ok()) return;
  const auto grown = grow_for_reservation(
      GrowthPolicy::class_for_reservation(space_.memory().lacked_class(), 1), *state);
  if (!grown.ok() && deferred_error_.ok()) deferred_error_ = grown.status();
}

// --- a container for a class

Claim Containers::claim_of(unsigned slot_class) const {
  return policy_.claim(allocator_.usage(), slot_class, allocator_.may_have_run(slot_class));
}

Result<Grown> Containers::obtain_container(unsigned slot_class, Claim claim) {
  if (claim == Claim::none) return Grown::no_room;
  auto obtained = space_.reclass(slot_class, Allocator::LastFree::keep);
  if (no_room(obtained)) obtained = create_for_class(slot_class);
  if (no_room(obtained) && claim == Claim::pressing) {
    obtained = space_.reclass(slot_class, Allocator::LastFree::take);
  }
  return obtained;
}

Result<Grown> Containers::create_for_class(unsigned slot_class) {
  if (space_.memory().file_refused()) return Grown::no_room;
  const auto state = space_.state();
  if (!state.ok()) return state.status();
  if (policy_.new_file(*state) != NewFile::for_any_class) return Grown::no_room;
  return space_.create(slot_class);
}

// --- allocate

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
    space_.memory().note_lacked(wanted);
    if (wanted > last_wanted || rest-- == 0) break;
    if (obtain_for_allocate(wanted) == Grown::no_room) break;
    last_wanted = wanted;
  }
  return allocator_.allocate(blocks, true, nullptr);
}

// Where there is nothing to be had, no thread waits for its turn.
bool Containers::may_obtain(unsigned slot_class, Claim claim) {
  if (claim == Claim::none) return false;
  if (!space_.memory().name_refused() && allocator_.can_reclass(slot_class, last_free(claim))) {
    return true;
  }
  if (space_.memory().file_refused()) return false;
  const auto state = space_.state();
  return state.ok() && policy_.new_file(*state) == NewFile::for_any_class;
}

Grown Containers::obtain_for_allocate(unsigned slot_class) {
  const uint64_t before = allocator_.usage().classes[slot_class].containers;
  if (!may_obtain(slot_class, claim_of(slot_class))) return Grown::no_room;
  std::lock_guard growth(growth_mutex_);
  if (allocator_.usage().classes[slot_class].containers > before) return Grown::yes;
  const auto obtained = obtain_container(slot_class, claim_of(slot_class));
  if (obtained.ok()) return *obtained;
  if (deferred_error_.ok()) deferred_error_ = obtained.status();
  return Grown::no_room;
}

// --- background work

Result<Worked> Containers::prepare_step(uint64_t* bytes_done) {
  PreparePace::Piece piece;
  const auto worked = prepare_step(&piece, PreparePace::least_piece_bytes, true);
  *bytes_done = piece.bytes;
  return worked;
}

Result<Worked> Containers::prepare_step(PreparePace::Piece* piece, uint64_t most_bytes,
                                        bool is_idle) {
  *piece = {};
  std::lock_guard background(background_mutex_);
  {
    std::lock_guard growth(growth_mutex_);
    if (!deferred_error_.ok()) return deferred_error_;
    if (Status s = space_.remove_incomplete(); !s.ok()) return s;
  }
  const AllocatorUsage usage = allocator_.usage();
  auto worked = make_ahead(usage);
  if (nothing_to_do(worked)) worked = write_ahead(usage, most_bytes, piece);
  if (nothing_to_do(worked) && is_idle) worked = make_stock(most_bytes, piece);
  return worked;
}

Result<Worked> Containers::make_stock(uint64_t most_bytes, PreparePace::Piece* piece) {
  if (!most_bytes || !options().stock_bytes) return Worked::nothing_to_do;
  if (stock_pause_ > 0 && --stock_pause_ > 0) return Worked::nothing_to_do;
  const auto state = space_.state();
  if (!state.ok()) return Worked::nothing_to_do;
  const auto run = begin_to_write_stock(*state, most_bytes / block_bytes);
  if (!run && !policy_.stock_lacks_container(*state)) return Worked::nothing_to_do;
  const auto worked = run ? space_.prepare(*run, piece) : add_to_stock();
  if (nothing_to_do(worked)) stock_pause_ = stock_pause;
  return worked;
}

// What classes in use have is taken first, by them: they get nothing of the stock before that is
// used up.
std::optional<Run> Containers::begin_to_write_stock(const SpaceState& state,
                                                    uint64_t most_blocks) {
  for (unsigned c = 0; c < slot_classes; ++c)
    if (const uint64_t blocks = policy_.own_blocks_to_write(state, c))
      if (const auto run = allocator_.begin_prepare(c, std::min(blocks, most_blocks))) return run;
  const uint64_t blocks = policy_.stock_blocks_to_write(state);
  return allocator_.begin_prepare_whole(std::min(blocks, most_blocks));
}

// Nobody has asked for it: that there is no space for it says nothing to those who ask.
Result<Worked> Containers::add_to_stock() {
  std::lock_guard growth(growth_mutex_);
  const auto grown = space_.create_unasked(slot_classes - 1);
  if (!grown.ok()) return grown.status();
  return *grown == Grown::yes ? Worked::yes : Worked::nothing_to_do;
}

Result<Worked> Containers::make_ahead(const AllocatorUsage& usage) {
  for (unsigned c = 0; c < slot_classes; ++c) {
    if (!policy_.runs_low(usage, c)) continue;
    std::lock_guard growth(growth_mutex_);
    const auto state = space_.state();
    if (!state.ok()) return state.status();
    auto grown = space_.restore(c, *state);
    if (no_room(grown)) grown = obtain_container(c, claim_of(c));
    if (!grown.ok()) return grown.status();
    if (*grown == Grown::yes) return Worked::yes;
  }
  return Worked::nothing_to_do;
}

// By turns: a class that is used up as fast as it is prepared leaves the others theirs.
Result<Worked> Containers::write_ahead(const AllocatorUsage& usage, uint64_t most_bytes,
                                       PreparePace::Piece* piece) {
  for (unsigned i = 0; i < slot_classes; ++i) {
    const unsigned slot_class = (next_prepared_ + i) % slot_classes;
    const uint64_t blocks =
        std::min(policy_.blocks_to_prepare(usage, slot_class), most_bytes / block_bytes);
    if (!blocks) continue;
    const auto worked = space_.prepare(slot_class, blocks, piece);
    if (nothing_to_do(worked)) continue;
    next_prepared_ = slot_class + 1;
    return worked;
  }
  return Worked::nothing_to_do;
}

Result<Worked> Containers::punch_step(uint64_t* bytes_done) {
  *bytes_done = 0;
  std::lock_guard background(background_mutex_);
  const auto state = space_.state();
  if (!state.ok()) return state.status();
  const AllocatorUsage& usage = state->usage;
  QuietRule rule = policy_.quiet_rule(*state);
  rule.min_age = rule.whole_blocks = 0;
  // A look is at some containers only, and goes on where the last one has ended.
  Result<Worked> worked = Worked::nothing_to_do;
  for (uint64_t seen = 0; seen <= usage.containers() && nothing_to_do(worked);
       seen += Allocator::punch_candidates)
    worked = shrink(usage, rule, bytes_done);
  return worked;
}

Result<Worked> Containers::shrink_step(uint64_t* bytes_done) {
  *bytes_done = 0;
  std::lock_guard background(background_mutex_);
  const auto state = space_.state();
  const auto worked = state.ok()
                          ? shrink(state->usage, policy_.quiet_rule(*state), bytes_done)
                          : Worked::nothing_to_do;  // it is asked again
  if (nothing_to_do(worked)) allocator_.advance_age();
  return worked;
}

Result<Worked> Containers::shrink(const AllocatorUsage& usage, const QuietRule& rule,
                                  uint64_t* bytes_done) {
  Result<Worked> worked = Worked::nothing_to_do;
  if (policy_.may_remove_container(usage)) worked = remove_idle(rule, bytes_done);
  const auto size = policy_.punch_size(usage);
  if (nothing_to_do(worked) && size && space_.memory().may_punch())
    worked = space_.punch(rule, *size, bytes_done);
  return worked;
}

Result<Worked> Containers::remove_idle(const QuietRule& rule, uint64_t* bytes_done) {
  std::lock_guard growth(growth_mutex_);
  return space_.remove_idle(rule, bytes_done);
}

void Containers::close_containers(unsigned max_live_percent) {
  const auto state = space_.state();
  const bool may_grow = state.ok() && !space_.memory().file_refused();
  allocator_.close_containers(max_live_percent,
                              may_grow ? policy_.obtainable_blocks(*state) : 0);
}

Result<Worked> Containers::remove_emptied(uint64_t* bytes_done) {
  *bytes_done = 0;
  std::lock_guard background(background_mutex_);
  std::lock_guard growth(growth_mutex_);
  const auto emptied = allocator_.emptied();
  if (!emptied) return Worked::nothing_to_do;
  if (policy_.may_remove_container(allocator_.usage())) {
    const auto removed = space_.remove(*emptied, bytes_done);
    if (!nothing_to_do(removed)) return removed;
  }
  allocator_.open_container(*emptied);
  return Worked::yes;
}

Result<Worked> Containers::relieve_step(uint64_t at_least, uint64_t* bytes_done) {
  *bytes_done = 0;
  std::lock_guard background(background_mutex_);
  const auto state = space_.state();
  if (!state.ok()) return state.status();
  const uint64_t lacking = std::max(state->short_bytes, at_least);
  if (!lacking) return Worked::nothing_to_do;
  stock_pause_ = stock_pause;  // it is not for the stock, whatever the file system says
  QuietRule nothing_is_spared;
  nothing_is_spared.min_free_blocks = 1;  // what is all holes gives nothing
  if (policy_.relieves_with_container(lacking)) {
    const auto removed = remove_idle(nothing_is_spared, bytes_done);
    if (!nothing_to_do(removed)) return removed;
  }
  for (const GrowthPolicy::PunchSize& size : GrowthPolicy::relief_sizes(lacking)) {
    const auto punched = punch_until(lacking, size, state->usage.containers(), bytes_done);
    if (!nothing_to_do(punched)) return punched;
  }
  // A hole may want space itself (XFS), a file that is removed wants none.
  return remove_idle(nothing_is_spared, bytes_done);
}

// Some runs of one size: to look for small ones takes longer than to punch one. A call looks at
// some containers only, and all are looked at before there is nothing to do.
Result<Worked> Containers::punch_until(uint64_t enough_bytes, GrowthPolicy::PunchSize size,
                                       uint64_t containers, uint64_t* bytes_done) {
  constexpr unsigned runs_max = 64;
  unsigned runs = 0;
  for (uint64_t looked_at = 0; looked_at <= containers && runs < runs_max;) {
    uint64_t bytes = 0;
    const auto worked = space_.punch(QuietRule(), size, &bytes);
    if (!worked.ok()) return worked.status();
    if (*worked == Worked::nothing_to_do) {
      looked_at += Allocator::punch_candidates;
      continue;
    }
    ++runs;
    *bytes_done += bytes;
    if (*bytes_done >= enough_bytes) break;
  }
  return runs ? Worked::yes : Worked::nothing_to_do;
}

}  // namespace tablestore
