// The allocator's state from a checkpoint and the log, or from what rows own.
#include <algorithm>
#include <utility>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

constexpr uint32_t chunk_blocks = BlockBitmap::chunk_blocks;

}  // namespace

void Allocator::load_failed(uint32_t container, const std::string& why) {
  if (recovery_error_.ok())
    recovery_error_ = Status(EIO, "container " + std::to_string(container) + why);
}

void Allocator::load_whole(uint32_t container, const BlockBitmap& owned) {
  std::lock_guard lock(mutex_);
  require(recovering_, "a checkpoint is loaded once");
  next_container_id_ = std::max(next_container_id_, container + 1);
  gone_.insert_or_assign(container, Gone{0, BlockBitmap(0), captures_});
  auto it = containers_.find(container);
  if (it == containers_.end()) {
    missing_.insert_or_assign(container, owned);
    return;
  }
  ContainerState& c = *it->second;
  if (c.blocks() != owned.blocks())
    return load_failed(container, " has " + std::to_string(c.blocks()) +
                                      " blocks, its allocation row is of " +
                                      std::to_string(owned.blocks()));
  c.load_owned(owned);
  for (uint32_t b = owned.next_set(0); b < owned.blocks();
       b = owned.next_set((b / chunk_blocks + 1) * chunk_blocks))
    note_changed(c, {container, b, 1});
}

void Allocator::load(uint32_t container, uint32_t chunk, const BlockBitmap& owned,
                     uint64_t as_of) {
  std::lock_guard lock(mutex_);
  require(recovering_, "a checkpoint is loaded once");
  next_container_id_ = std::max(next_container_id_, container + 1);
  if (as_of) as_of_[{container, chunk}] = as_of;
  auto it = containers_.find(container);
  if (it == containers_.end()) {
    BlockBitmap& bitmap = missing_.try_emplace(container, BlockBitmap(0)).first->second;
    const uint64_t end = uint64_t(chunk) * chunk_blocks + owned.blocks();
    if (end > UINT32_MAX) return load_failed(container, " has an allocation row of no block");
    bitmap.grow(uint32_t(end));
    bitmap.set_chunk(chunk, owned);
    return;
  }
  ContainerState& c = *it->second;
  // Of one that was missing for a life, the row is of the blocks that were known of it.
  const uint32_t blocks = chunk < c.owned().chunks() ? c.owned().blocks_in(chunk) : 0;
  if (owned.count() ? owned.blocks() != blocks : owned.blocks() > blocks)
    return load_failed(container, " has " + std::to_string(c.blocks()) +
                                      " blocks, its allocation row of chunk " +
                                      std::to_string(chunk) + " is of " +
                                      std::to_string(owned.blocks()));
  c.load_owned(chunk, owned);
}

void Allocator::load_unknown(const std::set<ChunkName>& chunks) {
  std::lock_guard lock(mutex_);
  require(recovering_, "a checkpoint is loaded once");
  checkpoint_is_whole_ = false;
  unknown_ = chunks;
  for (const auto& [id, chunk] : chunks) {
    ContainerState& container = state(id);
    BlockBitmap all(container.owned().blocks_in(chunk));
    all.set(0, all.blocks());
    container.load_owned(chunk, all);
    note_changed(container, {id, chunk * chunk_blocks, all.blocks()});
  }
}

void Allocator::replay_owned(const Run& run, uint64_t lsn) { replay(run, true, lsn); }
void Allocator::replay_freed(const Extent& extent, uint64_t lsn) { replay(extent, false, lsn); }

void Allocator::replay(const Run& run, bool owned, uint64_t lsn) {
  std::lock_guard lock(mutex_);
  require(recovering_, "what the log says is replayed once");
  next_container_id_ = std::max(next_container_id_, run.container + 1);
  const uint64_t end = uint64_t(run.block) + run.blocks;
  bool consistent = end <= UINT32_MAX;
  for (uint64_t first = run.block; first < end && consistent;) {
    const uint64_t next = std::min((first / chunk_blocks + 1) * chunk_blocks, end);
    const auto as_of = as_of_.find({run.container, uint32_t(first / chunk_blocks)});
    if (as_of == as_of_.end() || lsn >= as_of->second)
      consistent = replay_in_chunk({run.container, uint32_t(first), uint32_t(next - first)}, owned);
    first = next;
  }
  if (!consistent && recovery_error_.ok()) {
    recovery_error_ = Status(EIO, "the log " + std::string(owned ? "gives" : "frees") + " blocks " +
                                      std::to_string(run.block) + " to " + std::to_string(end) +
                                      " of container " + std::to_string(run.container) +
                                      (owned ? ", which have an owner" : ", which have no owner") +
                                      " according to what precedes, or do not exist");
  }
}

bool Allocator::replay_in_chunk(const Run& run, bool owned) {
  const uint32_t end = run.block + run.blocks;
  auto it = containers_.find(run.container);
  if (it == containers_.end()) {
    BlockBitmap& bitmap = missing_.try_emplace(run.container, BlockBitmap(0)).first->second;
    bitmap.grow(end);
    const bool consistent = owned ? !bitmap.any(run.block, run.blocks)
                                  : bitmap.all(run.block, run.blocks) || !checkpoint_is_whole_;
    owned ? bitmap.set(run.block, run.blocks) : bitmap.clear(run.block, run.blocks);
    return consistent;
  }
  ContainerState& c = *it->second;
  if (end > c.blocks()) return false;
  note_changed(c, run);
  if (!owned) return c.clear_owned(run.block, run.blocks);
  if (unknown_.contains({run.container, run.block / chunk_blocks}))
    for (uint32_t block = run.block; block < end; ++block)
      if (c.owned().test(block)) c.clear_owned(block, 1);
  return c.set_owned(run.block, run.blocks);
}

std::vector<uint32_t> Allocator::missing_containers() const {
  std::lock_guard lock(mutex_);
  std::vector<uint32_t> ids;
  for (const auto& [container, bitmap] : missing_)
    if (bitmap.count()) ids.push_back(container);
  return ids;
}

Status Allocator::finish_recovery() {
  std::lock_guard lock(mutex_);
  require(recovering_, "recovery ends once");
  if (!recovery_error_.ok()) return recovery_error_;
  for (const auto& [container, bitmap] : missing_) {
    if (const uint32_t owned = bitmap.count()) {
      return Status(EIO, "missing or incomplete container file: containers/*/" +
                             std::to_string(container) + ", " + std::to_string(owned) +
                             " blocks of which hold data; bring the file back, or have this OSD "
                             "rebuilt from its peers");
    }
    // Its rows may say that something is owned, in spite of what was replayed over them.
    BlockBitmap all_chunks(bitmap.chunks());
    all_chunks.set(0, all_chunks.blocks());
    gone_.insert_or_assign(container, Gone{bitmap.blocks(), std::move(all_chunks), captures_});
    if (bitmap.blocks()) changed_.insert(container);
  }
  missing_.clear();
  as_of_.clear();
  unknown_.clear();
  recovering_ = false;
  for (auto& [id, container] : containers_) {
    container->hold_owned(&owned_without_space_);
    account_new(*container);
  }
  return {};
}

std::vector<Run> Allocator::take_owned_without_space() {
  std::lock_guard lock(mutex_);
  return std::exchange(owned_without_space_, {});
}

Result<std::vector<Run>> Allocator::adopt_owned(
    const std::map<uint32_t, BlockBitmap>& owned_by_rows) {
  std::lock_guard lock(mutex_);
  require(!recovering_, "what rows own is adopted after recovery");
  bool in_use = usage_.reserved_blocks > 0;
  for (const auto& [id, container] : containers_) {
    const ContainerState::Counts& n = container->counts();
    in_use |= n.free + n.punched + n.owned < container->blocks();
  }
  if (in_use) return Status(EBUSY, "blocks are reserved, or in the hands of a transaction");
  std::vector<Run> given_up;
  for (auto& [id, container] : containers_) {
    const auto rows = owned_by_rows.find(id);
    const BlockBitmap none(container->blocks());
    const BlockBitmap& owned = rows == owned_by_rows.end() ? none : rows->second;
    require(owned.blocks() == container->blocks(), "a bitmap is of its container");
    if (owned == container->owned()) continue;
    change(*container, [&] { container->adopt_owned(owned, &given_up); });
    note_changed(*container, {id, 0, container->blocks()});
  }
  return given_up;
}

}  // namespace tablestore
