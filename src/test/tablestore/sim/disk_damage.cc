// What a disk does to what lies on it, and to those who trust its flushes: see disk_image.h.
#include <algorithm>
#include <cstring>
#include <utility>

#include "test/tablestore/sim/disk_image.h"

namespace tablestore::sim {

void Inode::settle(const PendingOp& op, bool remember_previous) {
  const uint32_t first = uint32_t(op.offset / block_bytes);
  const uint32_t end = uint32_t((op.offset + op.length) / block_bytes);
  if (remember_previous && op.kind == PendingOp::Kind::write)
    for (uint32_t b = first; b < end; ++b)
      if (PagePtr page = durable.pages.get(b)) previous.set(b, std::move(page));
  durable.apply(op);
  if (op.stray || op.kind == PendingOp::Kind::allocate) return;
  for (auto it = damaged.lower_bound(first); it != damaged.end() && it->first < end;)
    it = it->second.since < op.id ? damaged.erase(it) : std::next(it);
}

void Inode::give_up(const PendingOp& op) {
  if (!op.promised || op.stray || op.lost || op.kind != PendingOp::Kind::write) return;
  for (size_t i = 0; i < op.pages.size(); ++i)
    damaged[uint32_t(op.offset / block_bytes + i)] = {.good = op.pages[i], .since = op.id};
}

void Inode::judge_promise() {
  const FileView wanted = std::exchange(promised, {});
  for (uint64_t at = 0; at < wanted.size; at += block_bytes) {
    const uint32_t b = uint32_t(at / block_bytes);
    const uint64_t bytes = std::min(block_bytes, wanted.size - at);
    if (at + bytes <= durable.size &&
        std::memcmp(durable.page(b), wanted.page(b), bytes) == 0)
      continue;
    damaged.try_emplace(b, DamagedBlock{.good = wanted.pages.get(b)});
    promised_end = wanted.size;
  }
}

bool Inode::seems_written(const PendingOp& op) const {
  for (uint64_t at = op.offset; at < op.offset + op.length; at += block_bytes) {
    if (durable.written(at, block_bytes)) continue;
    if (std::ranges::none_of(pending, [&](const PendingOp& p) {
          return p.id < op.id && p.promised && p.offset <= at && at < p.offset + p.length &&
                 (p.kind == PendingOp::Kind::zeroes || p.kind == PendingOp::Kind::write);
        }))
      return false;
  }
  return true;
}

// For the file system it is complete: what lay there is written once more.
void DiskImage::lose(InodeId id, uint64_t op) {
  Inode& inode = changed(id);
  for (PendingOp& p : inode.pending) {
    if (p.id != op) continue;
    p.lost = true;
    for (size_t i = 0; i < p.pages.size(); ++i) {
      const uint32_t block = uint32_t(p.offset / block_bytes + i);
      inode.damaged[block] = {.good = p.pages[i], .since = op};
      p.pages[i] = inode.current.pages.get(block);
    }
  }
  complete(id, op);
}

// --- flushes that do not do what they should

bool DiskImage::seems_to_cover(InodeId flushed, InodeId id, const Inode& inode,
                               const PendingOp& op) const {
  return op.complete && (flushed == id || (in_place_ && !op.seems_first_touch &&
                                           op.kind == PendingOp::Kind::write &&
                                           inode.seems_written(op)));
}

void DiskImage::promise(InodeId flushed) {
  for (const auto& [id, shared] : inodes_) {
    if (shared->buffered) continue;
    auto seems_covered = [&, id = id](const PendingOp& op) {
      return !op.promised && seems_to_cover(flushed, id, *shared, op);
    };
    if (std::ranges::none_of(shared->pending, seems_covered)) continue;
    Inode& inode = changed(id);
    for (PendingOp& op : inode.pending) op.promised |= seems_to_cover(flushed, id, inode, op);
  }
}

void DiskImage::pretend_flush(InodeId id) {
  lies_told_ = true;
  if (inode(id).buffered) {
    Inode& file = changed(id);
    file.promised = file.current;
  }
  promise(id);
}

void DiskImage::drop_flush(InodeId id, Covered what) {
  lost_promises_ |= lies_told_;  // what an earlier flush should have made durable is dropped, too
  for (const auto& [other, shared] : inodes_) {
    if (what == Covered::own && other != id) continue;
    if (shared->buffered) {
      if (other == id) {
        Inode& inode = changed(other);
        inode.dropped_end = inode.current.size;
      }
      continue;
    }
    auto dropped = [&](const PendingOp& op) {
      return (op.kind == PendingOp::Kind::write || op.kind == PendingOp::Kind::zeroes) &&
             covers(id, other, *shared, op);
    };
    if (std::ranges::none_of(shared->pending, dropped)) continue;
    Inode& inode = changed(other);
    for (const PendingOp& op : inode.pending)
      if (dropped(op)) inode.give_up(op);
    std::erase_if(inode.pending, dropped);
    inode.current = inode.durable;
    for (const PendingOp& op : inode.pending)
      if (op.complete) inode.current.apply(op);
  }
}

// --- damage

Inode* DiskImage::at_rest(InodeId id, uint32_t block) {
  const FileView& durable = inode(id).durable;
  const bool there = block < durable.extents.size() &&
                     durable.extents[block] == FileView::Extent::written &&
                     block < inode(id).current.extents.size();
  return there ? &changed(id) : nullptr;
}

// It holds `page` from now on, and should not.
void DiskImage::damage(Inode* inode, uint32_t block, PagePtr page) {
  inode->damaged.try_emplace(
      block, DamagedBlock{.good = inode->durable.pages.get(block), .since = next_op_ - 1});
  inode->durable.set_page(block, page);
  inode->current.set_page(block, std::move(page));
}

bool DiskImage::rot(InodeId id, uint32_t block, uint64_t bit) {
  Inode* const inode = at_rest(id, block);
  if (!inode) return false;
  auto page = std::make_shared<Page>();
  std::memcpy(page->data(), inode->durable.page(block), block_bytes);
  (*page)[bit / 8 % block_bytes] ^= std::byte(1 << bit % 8);
  damage(inode, block, std::move(page));
  return true;
}

bool DiskImage::make_unreadable(InodeId id, uint32_t block) {
  Inode* const inode = at_rest(id, block);
  if (!inode) return false;
  damage(inode, block, inode->durable.pages.get(block));
  inode->damaged[block].unreadable = true;
  return true;
}

bool DiskImage::revert(InodeId id, uint32_t block) {
  Inode* const inode = at_rest(id, block);
  if (!inode || (!inode->buffered && !inode->previous.contains(block))) return false;
  damage(inode, block, inode->previous.get(block));
  return true;
}

void DiskImage::overwrite(InodeId id, uint32_t block, PagePtr page) {
  if (Inode* const inode = at_rest(id, block)) damage(inode, block, std::move(page));
}

bool DiskImage::readable(InodeId id, uint64_t offset, uint64_t length) const {
  const auto& damaged = inode(id).damaged;
  for (auto it = damaged.lower_bound(uint32_t(offset / block_bytes));
       it != damaged.end() && it->first * block_bytes < offset + length; ++it)
    if (it->second.unreadable) return false;
  return true;
}

bool DiskImage::is_damaged() const {
  return std::ranges::any_of(inodes_, [](const auto& each) {
    return !each.second->damaged.empty();
  });
}

DiskImage DiskImage::healed() const {
  DiskImage copy = *this;
  for (const auto& [id, shared] : inodes_) {
    if (shared->damaged.empty()) continue;
    Inode& inode = copy.changed(id);
    inode.durable.grow(inode.promised_end);
    inode.current.grow(inode.promised_end);
    auto written_since = [&inode](uint32_t block, uint64_t since) {
      const uint64_t at = block * block_bytes;
      return std::ranges::any_of(inode.pending, [&](const PendingOp& op) {
        return op.kind != PendingOp::Kind::allocate && op.complete && !op.stray &&
               op.id > since && op.offset <= at && at < op.offset + op.length;
      });
    };
    for (const auto& [block, damaged] : shared->damaged) {
      const bool is_new = written_since(block, damaged.since);
      if (block < inode.durable.extents.size()) {
        inode.durable.set_extent(block, FileView::Extent::written);
        inode.durable.set_page(block, damaged.good);
      }
      if (block < inode.current.extents.size() && !is_new) {
        inode.current.set_extent(block, FileView::Extent::written);
        inode.current.set_page(block, damaged.good);
      }
    }
    inode.damaged.clear();
  }
  return copy;
}

}  // namespace tablestore::sim
