#include "test/tablestore/sim/disk_image.h"

#include <algorithm>
#include <cstring>

#include "os/tablestore/engine/require.h"
#include "test/tablestore/paths.h"

namespace tablestore::sim {

namespace {

// Applies a change of a direct file, whole.
void apply(FileView& view, const PendingOp& op) {
  const uint32_t first = uint32_t(op.offset / block_bytes);
  const uint32_t end = uint32_t((op.offset + op.length) / block_bytes);
  if (op.kind != PendingOp::Kind::punch) view.grow(op.offset + op.length);
  for (uint32_t b = first; b < end && b < view.extents.size(); ++b) {
    switch (op.kind) {
      case PendingOp::Kind::write:
        view.set_extent(b, FileView::Extent::written);
        view.set_page(b, op.pages[b - first]);
        break;
      case PendingOp::Kind::zeroes:
        view.set_extent(b, FileView::Extent::written);
        view.set_page(b, nullptr);
        break;
      case PendingOp::Kind::allocate:
        if (view.extents[b] == FileView::Extent::hole)
          view.set_extent(b, FileView::Extent::unwritten);
        break;
      case PendingOp::Kind::punch:
        view.set_extent(b, FileView::Extent::hole);
        view.set_page(b, nullptr);
        break;
    }
  }
}

// What is left of one write to one block.
PagePtr mix_sectors(const FileView& view, uint32_t block, const PagePtr& written, bool torn_here,
                    unsigned torn_at, Random& random) {
  auto mixed = std::make_shared<Page>();
  std::memcpy(mixed->data(), view.page(block), block_bytes);
  static const Page zeros{};
  const std::byte* source = written ? written->data() : zeros.data();
  for (unsigned s = 0; s < block_bytes / sector_bytes; ++s) {
    std::byte* target = mixed->data() + s * sector_bytes;
    unsigned what;  // 0 keep, 1 drop, 2 other bytes
    if (torn_here) {
      what = s < torn_at ? 0 : 1;
    } else {
      const unsigned r = unsigned(random() % 8);
      what = r < 4 ? 0 : r < 7 ? 1 : 2;
    }
    if (what == 0) std::memcpy(target, source + s * sector_bytes, sector_bytes);
    if (what == 2)
      for (unsigned i = 0; i < sector_bytes; i += 8) {
        const uint64_t other = random();
        std::memcpy(target + i, &other, 8);
      }
  }
  return mixed;
}

// Part of a write survives, by sectors.
void apply_part(FileView& view, const PendingOp& op, bool torn, Random& random) {
  view.grow(op.offset + op.length);
  const uint64_t sectors = op.length / sector_bytes;
  const uint64_t kept = torn ? random() % (sectors + 1) : 0;
  const uint32_t first = uint32_t(op.offset / block_bytes);
  constexpr unsigned per_block = block_bytes / sector_bytes;
  for (uint32_t i = 0; i < op.length / block_bytes; ++i) {
    const uint32_t b = first + i;
    const PagePtr written = op.kind == PendingOp::Kind::write ? op.pages[i] : nullptr;
    const bool converts = view.extents[b] != FileView::Extent::written;
    if (torn && uint64_t(i) * per_block >= kept) break;
    if (converts && random() % 2) {  // the conversion is lost, and the data with it
      if (view.extents[b] == FileView::Extent::hole && random() % 2)
        view.set_extent(b, FileView::Extent::unwritten);
      continue;
    }
    view.set_extent(b, FileView::Extent::written);
    if (torn && uint64_t(i + 1) * per_block <= kept) {
      view.set_page(b, written);
    } else if (!torn && random() % 4 == 0) {
      if (random() % 2) view.set_page(b, written);
    } else {
      const unsigned at = torn ? unsigned(kept - uint64_t(i) * per_block) : 0;
      view.set_page(b, mix_sectors(view, b, written, torn, at, random));
    }
  }
}

// Some of what was appended to a buffered file since its last sync.
void keep_some_pages(FileView& durable, const FileView& current, Random& random) {
  if (current.size <= durable.size) {
    if (current.size < durable.size && random() % 2) durable = current;
    return;
  }
  const uint64_t before = durable.size;
  const uint64_t size = before + random() % (current.size - before + 1);
  const bool all = random() % 2;
  durable.grow(size);
  for (uint32_t b = uint32_t(before / block_bytes); b * block_bytes < size; ++b) {
    durable.set_extent(b, FileView::Extent::written);
    if (!all && random() % 2) continue;
    auto page = std::make_shared<Page>();
    std::memcpy(page->data(), current.page(b), block_bytes);
    const uint64_t end = size - std::min<uint64_t>(size, b * block_bytes);
    if (end < block_bytes) std::memset(page->data() + end, 0, block_bytes - end);
    durable.set_page(b, std::move(page));
  }
}

}  // namespace

const char* fate_name(Fate fate) {
  switch (fate) {
    case Fate::drop: return "drop";
    case Fate::keep: return "keep";
    case Fate::last_only: return "last_only";
    case Fate::not_last: return "not_last";
    case Fate::log_only: return "log_only";
    case Fate::data_only: return "data_only";
    case Fate::torn: return "torn";
    case Fate::scrambled: return "scrambled";
    case Fate::killed: return "killed";
  }
  return "?";
}

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
  if (page)
    pages[block] = std::move(page);
  else
    pages.erase(block);
}

const std::byte* FileView::page(uint32_t block) const {
  static const Page zeros{};
  const auto found = pages.find(block);
  return found == pages.end() ? zeros.data() : found->second->data();
}

bool FileView::written(uint64_t offset, uint64_t length) const {
  const uint64_t end = (offset + length + block_bytes - 1) / block_bytes;
  for (uint64_t b = offset / block_bytes; b < end; ++b)
    if (b >= extents.size() || extents[b] != Extent::written) return false;
  return true;
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
    if ((!c.from.empty() && parent_path(c.from) == dir) || (!c.to.empty() && parent_path(c.to) == dir))
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
  const uint32_t first = uint32_t(op.offset / block_bytes);
  auto touches = [&](uint32_t i) {
    const uint64_t offset = (first + uint64_t(i)) * block_bytes;
    return !inode.current.written(offset, block_bytes) ||
           !inode.durable.written(offset, block_bytes);
  };
  const uint32_t blocks = uint32_t(op.pages.size());
  for (uint32_t at = 0; at < blocks;) {
    uint32_t end = at + 1;
    while (end < blocks && touches(end) == touches(at)) ++end;
    PendingOp piece{.kind = op.kind, .first_touch = touches(at), .id = op.id};
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
      pending.complete = true;
      apply(inode.current, pending);
    }
}

void DiskImage::forget(InodeId id, uint64_t op) {
  std::erase_if(changed(id).pending, [op](const PendingOp& p) { return p.id == op; });
}

void DiskImage::flush(InodeId id) {
  size_t changes = 0;
  for (size_t i = 0; i < journal_.size(); ++i)
    if (inode(id).buffered && journal_[i].inode == id && !journal_[i].to.empty()) changes = i + 1;
  commit_names(changes);
  for (const auto& [other, shared] : inodes_) {
    const bool own = other == id;
    if (shared->buffered) {
      if (own) {
        Inode& inode = changed(other);
        inode.durable = inode.current;
      }
      continue;
    }
    auto covered = [own](const Inode& inode, const PendingOp& op) {
      return op.complete &&
             (own || (!op.first_touch && inode.durable.written(op.offset, op.length)));
    };
    if (std::ranges::none_of(shared->pending,
                             [&](const PendingOp& op) { return covered(*shared, op); }))
      continue;
    Inode& inode = changed(other);
    std::vector<PendingOp> left;
    for (PendingOp& op : inode.pending) {
      if (covered(inode, op))
        apply(inode.durable, op);
      else
        left.push_back(std::move(op));
    }
    inode.pending = std::move(left);
  }
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
  FileView& view = changed(id).current;
  view.grow(bytes);
  view.size = bytes;
  const uint32_t blocks = uint32_t((bytes + block_bytes - 1) / block_bytes);
  for (uint32_t b = blocks; b < view.extents.size(); ++b)
    view.set_extent(b, FileView::Extent::hole);
  view.extents.resize(blocks);
  view.pages.erase(view.pages.lower_bound(blocks), view.pages.end());
}

bool DiskImage::rot(InodeId id, uint32_t block, uint64_t bit) {
  const Inode& before = inode(id);
  if (block >= before.durable.extents.size() ||
      before.durable.extents[block] != FileView::Extent::written)
    return false;
  Inode& inode = changed(id);
  for (FileView* view : {&inode.durable, &inode.current}) {
    auto page = std::make_shared<Page>();
    std::memcpy(page->data(), view->page(block), block_bytes);
    (*page)[bit / 8 % block_bytes] ^= std::byte(1 << bit % 8);
    view->set_page(block, std::move(page));
  }
  return true;
}

// --- crash

uint64_t DiskImage::last_write() const {
  uint64_t last = 0;
  for (const auto& [id, inode] : inodes_)
    for (const PendingOp& op : inode->pending)
      if (op.kind == PendingOp::Kind::write) last = std::max(last, op.id);
  return last;
}

void DiskImage::crash_inode(const std::string& path, Inode& inode, Fate fate, uint64_t last,
                            Random& random) {
  const bool log = path.starts_with("log/"), data = path.starts_with("containers/");
  for (const PendingOp& op : inode.pending) {
    const bool writes = op.kind == PendingOp::Kind::write;
    bool whole = false, part = false;
    switch (fate) {
      case Fate::drop: break;
      case Fate::keep: whole = true; break;
      case Fate::last_only: whole = !writes || op.id == last; break;
      case Fate::not_last: whole = op.id != last; break;
      case Fate::log_only: whole = log; break;
      case Fate::data_only: whole = data; break;
      case Fate::torn: part = writes, whole = !writes; break;
      default:
        whole = random() % 3 == 0;
        part = !whole && random() % 2 && op.kind != PendingOp::Kind::punch &&
               op.kind != PendingOp::Kind::allocate;
    }
    if (whole)
      apply(inode.durable, op);
    else if (part)
      apply_part(inode.durable, op, fate == Fate::torn, random);
  }
  inode.pending.clear();
  if (inode.buffered) {
    if (fate == Fate::keep || fate == Fate::not_last) inode.durable = inode.current;
    if (fate == Fate::torn || fate == Fate::scrambled)
      keep_some_pages(inode.durable, inode.current, random);
  }
  inode.current = inode.durable;
}

void DiskImage::crash(Fate fate, Random& random) {
  if (fate == Fate::killed) {
    for (auto& [id, shared] : inodes_) {
      for (size_t i = 0; i < shared->pending.size();) {
        const PendingOp& op = shared->pending[i];
        if (op.complete || random() % 2) {
          if (!op.complete) complete(id, op.id);
          ++i;
        } else {
          forget(id, op.id);
        }
      }
    }
    drop_unnamed();
    return;
  }
  const uint64_t last = last_write();
  const std::map<std::string, InodeId> paths = names_;
  const bool names_too = fate == Fate::keep || fate == Fate::not_last;
  const bool some = fate == Fate::torn || fate == Fate::scrambled;
  commit_names(names_too ? journal_.size() : some ? random() % (journal_.size() + 1) : 0);
  journal_.clear();
  names_ = durable_names_;
  drop_unnamed();
  std::map<InodeId, std::string> path_of;
  for (const auto& [path, id] : names_) path_of[id] = path;
  for (const auto& [id, path] : path_of) {
    const Inode& before = *inodes_.at(id);
    if (before.pending.empty() && !before.buffered) continue;
    if (before.buffered && before.current.size == before.durable.size &&
        before.current.pages == before.durable.pages)
      continue;
    crash_inode(path, changed(id), fate, last, random);
  }
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
    for (const auto& [block, page] : view.pages) {
      add(block);
      add(reinterpret_cast<uintptr_t>(page.get()));
    }
  }
  return hash;
}

}  // namespace tablestore::sim
