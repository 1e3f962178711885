#include "test/tablestore/sim/disk_image.h"

#include <algorithm>
#include <cstring>

#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/require.h"
#include "test/tablestore/paths.h"

namespace tablestore::sim {

namespace {

// A write that lands in blocks where nobody wanted it: `inode` is as before.
void note_stray(Inode* inode, const PendingOp& op) {
  if (!op.stray) return;
  const uint32_t first = uint32_t(op.offset / block_bytes);
  for (uint32_t b = first; b < first + op.pages.size(); ++b) {
    const auto [it, is_new] = inode->damaged.try_emplace(
        b, DamagedBlock{.good = inode->current.pages.get(b), .since = op.id});
    if (is_new) continue;
    // What was damaged before, and has been written anew since, which is not durable yet.
    for (const PendingOp& p : inode->pending)
      if (p.kind == PendingOp::Kind::write && p.complete && !p.stray && !p.lost &&
          p.id > it->second.since && p.offset <= b * block_bytes &&
          b * block_bytes < p.offset + p.length)
        it->second.good = p.pages[b - p.offset / block_bytes];
    it->second.since = op.id;
  }
}

// A sector that is written anew can be read again.
void make_readable(Inode* inode, const PendingOp& op) {
  if (op.kind == PendingOp::Kind::allocate) return;
  const uint32_t end = uint32_t((op.offset + op.length) / block_bytes);
  for (auto it = inode->damaged.lower_bound(uint32_t(op.offset / block_bytes));
       it != inode->damaged.end() && it->first < end; ++it)
    it->second.unreadable = false;
}

// Of one operation, what lies in blocks [begin, end).
PendingOp part_of(const PendingOp& op, uint64_t begin, uint64_t end) {
  PendingOp part = op;
  part.offset = begin * block_bytes;
  part.length = (end - begin) * block_bytes;
  if (op.kind == PendingOp::Kind::write) {
    const auto first = op.pages.begin() + ptrdiff_t(begin - op.offset / block_bytes);
    part.pages.assign(first, first + ptrdiff_t(end - begin));
  }
  return part;
}

// What failed before `durable` was submitted, and was to change the same blocks, is over.
void forget_failed(std::vector<PendingOp>* earlier, const PendingOp& durable) {
  const uint64_t first = durable.offset / block_bytes;
  const uint64_t end = (durable.offset + durable.length) / block_bytes;
  std::vector<PendingOp> left;
  for (PendingOp& op : *earlier) {
    const uint64_t op_first = op.offset / block_bytes;
    const uint64_t op_end = (op.offset + op.length) / block_bytes;
    if (!op.failed || op_end <= first || end <= op_first) {
      left.push_back(std::move(op));
      continue;
    }
    if (op_first < first) left.push_back(part_of(op, op_first, first));
    if (end < op_end) left.push_back(part_of(op, end, op_end));
  }
  *earlier = std::move(left);
}

// Of what was dropped there is nothing but the length.
void sync_buffered(Inode* inode) {
  const uint64_t before = inode->durable.size;
  inode->durable = inode->current;
  for (uint64_t at = before; at < std::min(inode->dropped_end, inode->current.size);) {
    const uint64_t end = std::min(round_up_to_block(at + 1), inode->dropped_end);
    auto page = std::make_shared<Page>();
    std::memcpy(page->data(), inode->durable.page(uint32_t(at / block_bytes)), block_bytes);
    std::memset(page->data() + at % block_bytes, 0, end - at);
    inode->durable.set_page(uint32_t(at / block_bytes), std::move(page));
    at = end;
  }
  inode->dropped_end = 0;
  inode->judge_promise();
}

}  // namespace

// --- FileView

void FileView::grow(uint64_t bytes) {
  if (bytes <= size) return;
  size = bytes;
  extents.resize((bytes + block_bytes - 1) / block_bytes, Extent::hole);
}

void FileView::set_extent(uint32_t block, Extent extent) {
  taken_blocks += (extent != Extent::hole) - (extents[block] != Extent::hole);
  extents[block] = extent;
}

void FileView::set_page(uint32_t block, PagePtr page) {
  pages.set(block, std::move(page));
}

const std::byte* FileView::page(uint32_t block) const {
  static const Page zeros{};
  const Page* found = pages.find(block);
  return found ? found->data() : zeros.data();
}

bool FileView::written(uint64_t offset, uint64_t length) const {
  const uint64_t end = (offset + length + block_bytes - 1) / block_bytes;
  for (uint64_t b = offset / block_bytes; b < end; ++b)
    if (b >= extents.size() || extents[b] != Extent::written) return false;
  return true;
}

bool FileView::has_hole(uint64_t offset, uint64_t length) const {
  for (uint64_t b = offset / block_bytes; b < (offset + length) / block_bytes; ++b)
    if (b >= extents.size() || extents[b] == Extent::hole) return true;
  return false;
}

void FileView::apply(const PendingOp& op) {
  const uint32_t first = uint32_t(op.offset / block_bytes);
  const uint32_t end = uint32_t((op.offset + op.length) / block_bytes);
  if (op.kind != PendingOp::Kind::punch) grow(op.offset + op.length);
  for (uint32_t b = first; b < end && b < extents.size(); ++b) {
    switch (op.kind) {
      case PendingOp::Kind::write:
        set_extent(b, FileView::Extent::written);
        set_page(b, op.pages[b - first]);
        break;
      case PendingOp::Kind::zeroes:
        set_extent(b, FileView::Extent::written);
        set_page(b, nullptr);
        break;
      case PendingOp::Kind::allocate:
        if (extents[b] == FileView::Extent::hole)
          set_extent(b, FileView::Extent::unwritten);
        break;
      case PendingOp::Kind::punch:
        set_extent(b, FileView::Extent::hole);
        set_page(b, nullptr);
        break;
    }
  }
}

// --- names

DiskImage::InodeId DiskImage::lookup(const std::string& path) const {
  const auto found = names_.find(path);
  return found == names_.end() ? 0 : found->second;
}

Inode& DiskImage::changed(InodeId id) {
  auto& inode = inodes_.at(id);
  if (inode.use_count() > 1) inode = std::make_shared<Inode>(*inode);
  return *inode;
}

void DiskImage::change_name(NameChange change) {
  if (!change.from.empty()) names_.erase(change.from);
  if (!change.to.empty()) names_[change.to] = change.inode;
  journal_.push_back(std::move(change));
}

DiskImage::InodeId DiskImage::create(const std::string& path, bool buffered) {
  auto inode = std::make_shared<Inode>();
  inode->buffered = buffered;
  const InodeId id = next_inode_++;
  inodes_[id] = std::move(inode);
  change_name({"", path, id});
  return id;
}

void DiskImage::make_dir(const std::string& path) {
  if (lookup(path)) return;
  inodes_[create(path, false)]->directory = true;
}

void DiskImage::remove(const std::string& path) {
  if (const InodeId id = lookup(path)) change_name({path, "", id});
}

void DiskImage::rename(const std::string& from, const std::string& to) {
  change_name({from, to, lookup(from)});
}

std::vector<std::pair<std::string, DiskImage::InodeId>> DiskImage::all_names() const {
  std::vector<std::pair<std::string, InodeId>> all(names_.begin(), names_.end());
  for (const auto& [path, id] : durable_names_)
    if (lookup(path) != id) all.emplace_back(path, id);
  for (const NameChange& c : journal_)
    if (!c.to.empty() && lookup(c.to) != c.inode) all.emplace_back(c.to, c.inode);
  return all;
}

void DiskImage::commit_names(size_t changes) {
  for (size_t i = 0; i < changes; ++i) {
    const NameChange& c = journal_[i];
    if (!c.from.empty()) durable_names_.erase(c.from);
    if (!c.to.empty()) durable_names_[c.to] = c.inode;
  }
  journal_.erase(journal_.begin(), journal_.begin() + ptrdiff_t(changes));
}

void DiskImage::sync_dir(const std::string& dir) {
  size_t changes = 0;
  for (size_t i = 0; i < journal_.size(); ++i) {
    const NameChange& c = journal_[i];
    auto is_here = [&](const std::string& path) {
      return !path.empty() && parent_path(path) == dir;
    };
    if (is_here(c.from) || is_here(c.to))
      changes = i + 1;
  }
  commit_names(changes);
}

// --- direct files

uint64_t DiskImage::submit(InodeId id, PendingOp op) {
  Inode& inode = changed(id);
  op.id = next_op_++;
  op.first_touch = true;
  if (op.kind != PendingOp::Kind::write) {
    inode.pending.push_back(std::move(op));
    return next_op_ - 1;
  }
  // As the file system does: pieces that are first touches and pieces that are not are different
  // I/Os, of which the latter need the disk's cache only.
  // So is a piece that was punched, or converted, and is not durably so: its place on the disk is
  // another one than the one that is durable.
  const uint32_t first = uint32_t(op.offset / block_bytes);
  std::vector<const PendingOp*> unsettled;
  for (const PendingOp& p : inode.pending)
    if (p.first_touch && p.offset < op.offset + op.length && op.offset < p.offset + p.length)
      unsettled.push_back(&p);
  struct Touches {
    bool first, seem_first;
    bool operator==(const Touches&) const = default;
  };
  auto touches = [&](uint32_t i) -> Touches {
    const PendingOp block{.id = op.id,
                          .offset = (first + uint64_t(i)) * block_bytes,
                          .length = block_bytes};
    if (!in_place_ || !inode.current.written(block.offset, block_bytes)) return {true, true};
    Touches t{!inode.durable.written(block.offset, block_bytes), !inode.seems_written(block)};
    for (const PendingOp* p : unsettled)
      if (p->offset <= block.offset && block.offset < p->offset + p->length) {
        t.first = true;
        t.seem_first |= !p->promised;
      }
    return t;
  };
  const uint32_t blocks = uint32_t(op.pages.size());
  for (uint32_t at = 0; at < blocks;) {
    uint32_t end = at + 1;
    while (end < blocks && touches(end) == touches(at)) ++end;
    const Touches t = touches(at);
    PendingOp piece{.kind = op.kind,
                    .first_touch = t.first,
                    .seems_first_touch = t.seem_first,
                    .stray = op.stray,
                    .id = op.id};
    piece.offset = (first + uint64_t(at)) * block_bytes;
    piece.length = (end - at) * block_bytes;
    piece.pages.assign(op.pages.begin() + at, op.pages.begin() + end);
    inode.pending.push_back(std::move(piece));
    at = end;
  }
  return op.id;
}

std::pair<uint64_t, uint64_t> DiskImage::range(InodeId id, uint64_t op) const {
  uint64_t begin = UINT64_MAX, end = 0;
  for (const PendingOp& p : inode(id).pending)
    if (p.id == op) {
      begin = std::min(begin, p.offset);
      end = std::max(end, p.offset + p.length);
    }
  return {begin, end - begin};
}

void DiskImage::complete(InodeId id, uint64_t op) {
  Inode& inode = changed(id);
  for (PendingOp& pending : inode.pending)
    if (pending.id == op) {
      note_stray(&inode, pending);
      pending.complete = true;
      inode.current.apply(pending);
      if (!pending.stray) make_readable(&inode, pending);
    }
}

void DiskImage::fail(InodeId id, uint64_t op) {
  for (PendingOp& pending : changed(id).pending)
    if (pending.id == op) pending.failed = true;
}

bool DiskImage::in_flight(InodeId id, uint64_t offset, uint64_t length) const {
  return std::ranges::any_of(inode(id).pending, [&](const PendingOp& op) {
    return !op.complete && !op.failed && op.offset < offset + length &&
           offset < op.offset + op.length;
  });
}

DiskImage::Unsettled DiskImage::unsettled() const {
  Unsettled u;
  auto is_container = [](const std::string& path) { return path.starts_with("containers/"); };
  for (const NameChange& c : journal_) {
    u.new_container |= is_container(c.to) && c.from.empty();
    u.removed_container |= is_container(c.from) && c.to.empty();
    u.renamed_container |= is_container(c.from) && is_container(c.to);
  }
  for (const auto& [path, id] : names_) {
    const Inode& file = inode(id);
    for (const PendingOp& op : file.pending) {
      u.zeroes |= is_container(path) && op.kind == PendingOp::Kind::zeroes;
      u.allocation |= is_container(path) && op.kind == PendingOp::Kind::allocate &&
                      file.durable.has_hole(op.offset, op.length);
      u.punch |= op.kind == PendingOp::Kind::punch;
      u.log_wrap |= path == "log/0" && op.offset == 0 && file.durable.pages.contains(0);
    }
  }
  return u;
}

// A flush of `flushed` makes it durable.
bool DiskImage::covers(InodeId flushed, InodeId id, const Inode& inode,
                       const PendingOp& op) const {
  return op.complete && (flushed == id || (in_place_ && !op.first_touch &&
                                           inode.durable.written(op.offset, op.length)));
}

void DiskImage::flush(InodeId id) {
  for (const auto& [other, shared] : inodes_) {
    if (shared->buffered) {
      if (other == id) sync_buffered(&changed(other));
      continue;
    }
    if (std::ranges::none_of(shared->pending, [&](const PendingOp& op) {
          return covers(id, other, *shared, op);
        }))
      continue;
    Inode& inode = changed(other);
    std::vector<PendingOp> left;
    for (PendingOp& op : inode.pending) {
      if (!covers(id, other, inode, op)) {
        left.push_back(std::move(op));
        continue;
      }
      inode.settle(op, remembers_previous_);
      if (op.kind != PendingOp::Kind::allocate) forget_failed(&left, op);
    }
    inode.pending = std::move(left);
  }
  if (lies_told_) promise(id);
}

std::vector<DiskImage::InodeId> DiskImage::dirty() const {
  std::vector<InodeId> all;
  for (const auto& [id, inode] : inodes_)
    if (!inode->buffered && std::ranges::any_of(inode->pending, &PendingOp::complete))
      all.push_back(id);
  return all;
}

// --- buffered files

void DiskImage::append(InodeId id, std::span<const std::byte> data) {
  FileView& view = changed(id).current;
  uint64_t at = view.size;
  view.grow(at + data.size());
  while (!data.empty()) {
    const uint32_t block = uint32_t(at / block_bytes);
    const size_t skip = at % block_bytes;
    const size_t piece = std::min<size_t>(data.size(), block_bytes - skip);
    auto page = std::make_shared<Page>();
    std::memcpy(page->data(), view.page(block), block_bytes);
    std::memcpy(page->data() + skip, data.data(), piece);
    view.set_extent(block, FileView::Extent::written);
    view.set_page(block, std::move(page));
    at += piece;
    data = data.subspan(piece);
  }
}

void DiskImage::truncate(InodeId id, uint64_t bytes) {
  Inode& inode = changed(id);
  inode.promised.size = std::min(inode.promised.size, bytes);
  FileView& view = inode.current;
  view.grow(bytes);
  view.size = bytes;
  const uint32_t blocks = uint32_t((bytes + block_bytes - 1) / block_bytes);
  for (uint32_t b = blocks; b < view.extents.size(); ++b)
    view.set_extent(b, FileView::Extent::hole);
  view.extents.resize(blocks);
  view.pages.cut(blocks);
}

void DiskImage::drop_unnamed() {
  std::map<InodeId, bool> named;
  for (const auto& [path, id] : names_) named[id] = true;
  for (const auto& [path, id] : durable_names_) named[id] = true;
  for (const NameChange& c : journal_) named[c.inode] = true;
  std::erase_if(inodes_, [&](const auto& entry) { return !named.contains(entry.first); });
}

uint64_t DiskImage::taken_bytes() const {
  uint64_t blocks = 0;
  for (const auto& [path, id] : names_) blocks += inodes_.at(id)->current.taken_blocks;
  return blocks * block_bytes;
}

uint64_t DiskImage::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;
  auto add = [&hash](uint64_t value) {
    hash ^= value;
    hash *= 0x100000001b3;
    hash ^= hash >> 29;
  };
  for (const auto& [path, id] : names_) {
    add(std::hash<std::string>()(path));
    const FileView& view = inodes_.at(id)->durable;
    add(view.size);
    add(view.taken_blocks);
    for (const FileView::Extent e : view.extents) add(uint64_t(e));
    view.pages.each([&](uint32_t block, const Page& page) {
      add(block);
      add(reinterpret_cast<uintptr_t>(&page));
    });
  }
  return hash;
}

}  // namespace tablestore::sim
