// What a crash makes of a disk: the crash model of disk_image.h.
#include <algorithm>
#include <cstring>
#include <utility>

#include "test/tablestore/sim/disk_image.h"

namespace tablestore::sim {

namespace {

constexpr unsigned sectors_per_block = block_bytes / sector_bytes;

void fill_randomly(std::byte* out, size_t bytes, Random& random) {
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t other = random();
    std::memcpy(out + i, &other, 8);
  }
}

// What is left of one write to one block: of its first sectors (`torn`), or of any.
PagePtr mix_sectors(const FileView& view, uint32_t block, const PagePtr& written, bool torn,
                    unsigned torn_at, Random& random) {
  auto mixed = std::make_shared<Page>();
  std::memcpy(mixed->data(), view.page(block), block_bytes);
  static const Page zeros{};
  const std::byte* source = written ? written->data() : zeros.data();
  for (unsigned s = 0; s < sectors_per_block; ++s) {
    std::byte* target = mixed->data() + s * sector_bytes;
    unsigned what;  // 0 keep, 1 drop, 2 other bytes
    if (torn) {
      what = s < torn_at ? 0 : 1;
    } else {
      const unsigned r = unsigned(random() % 8);
      what = r < 4 ? 0 : r < 7 ? 1 : 2;
    }
    if (what == 0) std::memcpy(target, source + s * sector_bytes, sector_bytes);
    if (what == 2) fill_randomly(target, sector_bytes, random);
  }
  return mixed;
}

// An allocation or a punch is several transactions of the file system: any blocks of it, but a size
// only as far as space was given.
void apply_some_blocks(FileView& view, PendingOp op, Random& random) {
  const uint64_t blocks = op.length / block_bytes;
  if (op.kind == PendingOp::Kind::allocate && op.offset + op.length > view.size) {
    op.length = random() % (blocks + 1) * block_bytes;
    view.apply(op);
    return;
  }
  for (uint64_t i = 0; i < blocks; ++i)
    if (random() % 2)
      view.apply({.kind = op.kind, .offset = op.offset + i * block_bytes, .length = block_bytes});
}

// Part of a write, or of zeros written, survives: by sectors, in the order in which they were
// written (`torn`) or in none.
void apply_some_sectors(FileView& view, const PendingOp& op, bool torn, Random& random) {
  view.grow(op.offset + op.length);
  const uint64_t sectors = op.length / sector_bytes;
  const uint64_t kept = torn ? random() % (sectors + 1) : 0;
  const uint32_t first = uint32_t(op.offset / block_bytes);
  for (uint32_t i = 0; i < op.length / block_bytes; ++i) {
    const uint32_t b = first + i;
    const PagePtr written = op.kind == PendingOp::Kind::write ? op.pages[i] : nullptr;
    const bool converts = view.extents[b] != FileView::Extent::written;
    if (torn && uint64_t(i) * sectors_per_block >= kept) break;
    if (converts && random() % 2) {  // the conversion is lost, and the data with it
      if (view.extents[b] == FileView::Extent::hole && random() % 2)
        view.set_extent(b, FileView::Extent::unwritten);
      continue;
    }
    view.set_extent(b, FileView::Extent::written);
    if (torn && uint64_t(i + 1) * sectors_per_block <= kept) {
      view.set_page(b, written);
    } else if (!torn && random() % 4 == 0) {
      if (random() % 2) view.set_page(b, written);
    } else {
      const unsigned at = torn ? unsigned(kept - uint64_t(i) * sectors_per_block) : 0;
      view.set_page(b, mix_sectors(view, b, written, torn, at, random));
    }
  }
}

void apply_part(FileView& view, const PendingOp& op, bool torn, Random& random) {
  if (op.kind == PendingOp::Kind::allocate || op.kind == PendingOp::Kind::punch)
    apply_some_blocks(view, op, random);
  else
    apply_some_sectors(view, op, torn, random);
}

// Some of what was appended to a buffered file since its last sync.
void keep_some_appended(FileView& durable, const FileView& current, Random& random) {
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
    const unsigned kept = all ? 0 : unsigned(random() % 3);  // all of the page, none, some sectors
    if (kept == 1) continue;
    auto page = std::make_shared<Page>();
    std::memcpy(page->data(), durable.page(b), block_bytes);
    for (uint64_t at = 0; at < block_bytes; at += sector_bytes) {
      if (kept == 2 && random() % 2) continue;
      const uint64_t begin = std::max(before, b * block_bytes + at);
      const uint64_t end = std::min(size, b * block_bytes + at + sector_bytes);
      if (begin < end)
        std::memcpy(page->data() + begin % block_bytes, current.page(b) + begin % block_bytes,
                    end - begin);
    }
    durable.set_page(b, std::move(page));
  }
}

// What a process that is killed has under way: nothing more is submitted, and a request that the
// engine would have gone on with after a part of it was written has that part only. One that failed
// may have left any of it.
void finish_killed(Inode& inode, Random& random) {
  std::vector<PendingOp> left;
  for (PendingOp& op : inode.pending) {
    if (!op.complete) {
      const uint64_t blocks = op.length / block_bytes;
      const uint64_t kept = random() % 3 == 0 ? random() % (blocks + 1)
                            : random() % 2    ? blocks
                                              : 0;
      if (kept == 0) continue;
      op.length = kept * block_bytes;
      const bool writes = op.kind == PendingOp::Kind::write;
      if (writes) op.pages.resize(kept);
      if (writes && op.failed)
        for (uint64_t i = 0; i < kept; ++i)
          op.pages[i] = mix_sectors(inode.current, uint32_t(op.offset / block_bytes + i),
                                    op.pages[i], false, 0, random);
      op.complete = true;
      inode.current.apply(op);
    }
    left.push_back(std::move(op));
  }
  inode.pending = std::move(left);
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

uint64_t DiskImage::last_write() const {
  uint64_t last = 0;
  for (const auto& [id, inode] : inodes_)
    for (const PendingOp& op : inode->pending)
      if (op.kind == PendingOp::Kind::write) last = std::max(last, op.id);
  return last;
}

namespace {

// Where what was acknowledged may be lost, its writes may lie in blocks that others own again.
void note_stranger(Inode* inode, const PendingOp& op) {
  if (op.kind == PendingOp::Kind::allocate) return;
  for (uint64_t at = op.offset; at < op.offset + op.length; at += block_bytes) {
    const uint32_t block = uint32_t(at / block_bytes);
    inode->damaged.try_emplace(block, DamagedBlock{.good = inode->durable.pages.get(block)})
        .first->second.since = op.id;
  }
}

// Part of `op` survives. What it has changed is as it should be, whatever lay there before.
void survive_in_part(Inode* inode, const PendingOp& op, bool torn, Random& random) {
  const FileView before = inode->damaged.empty() ? FileView() : inode->durable;
  apply_part(inode->durable, op, torn, random);
  if (op.stray) return;
  std::erase_if(inode->damaged, [&](const auto& each) {
    const auto& [block, damaged] = each;
    const uint64_t at = block * block_bytes;
    return damaged.since < op.id && op.offset <= at && at < op.offset + op.length &&
           inode->durable.pages.get(block) != before.pages.get(block);
  });
}

// Of what was being written, some sectors cannot be read after it.
void lose_sectors(Inode* inode, const PendingOp& op, double chance, Random& random) {
  if (chance <= 0 || op.kind != PendingOp::Kind::write) return;
  for (size_t i = 0; i < op.pages.size(); ++i) {
    if (double(random() >> 11) * 0x1p-53 >= chance) continue;
    const uint32_t block = uint32_t(op.offset / block_bytes + i);
    if (inode->durable.extents[block] != FileView::Extent::written) continue;
    DamagedBlock& damaged = inode->damaged[block];
    if (!op.promised && !op.stray) damaged.good = inode->durable.pages.get(block);
    damaged.unreadable = true;
    damaged.since = op.id;
  }
}

// What looks as it should is no damage: a stray write that did not survive, say.
void forget_what_is_whole(Inode* inode) {
  std::erase_if(inode->damaged, [inode](const auto& each) {
    static const Page zeros{};
    const std::byte* good = each.second.good ? each.second.good->data() : zeros.data();
    return !each.second.unreadable && each.first < inode->durable.extents.size() &&
           std::memcmp(inode->durable.page(each.first), good, block_bytes) == 0;
  });
}

}  // namespace

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
      case Fate::torn: part = true; break;
      default:
        whole = random() % 3 == 0;
        part = !whole && random() % 2;
    }
    if (lost_promises_ && (whole || part)) note_stranger(&inode, op);
    if (whole)
      inode.settle(op, remembers_previous_);
    else
      inode.give_up(op);
    if (!part) continue;
    survive_in_part(&inode, op, fate == Fate::torn, random);
    lose_sectors(&inode, op, bad_sector_chance_, random);
  }
  inode.pending.clear();
  forget_what_is_whole(&inode);
  if (inode.buffered) {
    inode.dropped_end = 0;
    if (fate == Fate::keep || fate == Fate::not_last) inode.durable = inode.current;
    if (fate == Fate::torn || fate == Fate::scrambled)
      keep_some_appended(inode.durable, inode.current, random);
    inode.judge_promise();
  }
  inode.current = inode.durable;
}

void DiskImage::crash(Fate fate, Random& random) {
  if (fate == Fate::killed) {
    for (auto& [id, shared] : inodes_)
      if (!std::ranges::all_of(shared->pending, &PendingOp::complete))
        finish_killed(changed(id), random);
    drop_unnamed();
    return;
  }
  lost_promises_ |= std::exchange(lies_told_, false);
  const uint64_t last = last_write();
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
    if (before.pending.empty() && before.damaged.empty() && !before.buffered) continue;
    if (before.buffered && before.current.size == before.durable.size &&
        before.current.pages == before.durable.pages)
      continue;
    crash_inode(path, changed(id), fate, last, random);
  }
}

}  // namespace tablestore::sim
