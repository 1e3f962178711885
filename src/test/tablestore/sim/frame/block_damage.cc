#include "test/tablestore/sim/frame/block_damage.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tablestore::sim {

namespace {

const char* kind_name(BlockDamage::Kind kind) {
  switch (kind) {
    case BlockDamage::Kind::rot: return "rot";
    case BlockDamage::Kind::unreadable: return "unreadable";
    case BlockDamage::Kind::stale: return "stale";
  }
  return "?";
}

uint64_t bit_of(const std::byte* page, uint64_t seed) {
  std::vector<uint64_t> bytes;
  for (uint64_t i = 0; i < block_bytes; ++i)
    if (page[i] != std::byte(0)) bytes.push_back(i);
  const uint64_t byte = bytes.empty() ? 0 : bytes[seed / 8 % bytes.size()];
  return byte * 8 + seed % 8;
}

}  // namespace

std::string BlockDamage::name() const {
  return std::string(kind_name(kind)) + "@" + path + "@" + std::to_string(block);
}

std::string BlockDamage::story() const {
  return "block " + std::to_string(block) + " of " + path + " " +
         (kind == Kind::rot ? "rotten" : kind_name(kind));
}

bool BlockDamage::apply(const DiskImage& older, uint64_t seed, DiskImage* image) const {
  const DiskImage::InodeId id = image->lookup(path);
  const std::byte* const now = image->inode(id).durable.page(block);
  if (kind == Kind::rot && image->inode(id).buffered) {
    const uint64_t bytes = image->inode(id).durable.size - block * block_bytes;
    return image->rot(id, block, seed % (std::min(bytes, block_bytes) * 8));
  }
  if (kind == Kind::rot) return image->rot(id, block, bit_of(now, seed));
  if (kind == Kind::unreadable) return image->make_unreadable(id, block);
  const DiskImage::InodeId before = older.lookup(path);
  PagePtr page = before ? older.inode(before).durable.pages.get(block) : nullptr;
  static const Page zeros{};
  if (std::memcmp(now, page ? page->data() : zeros.data(), block_bytes) == 0) return false;
  image->overwrite(id, block, std::move(page));
  return image->inode(id).damaged.contains(block);
}

}  // namespace tablestore::sim
