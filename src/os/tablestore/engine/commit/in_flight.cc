#include "os/tablestore/engine/commit/in_flight.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace tablestore {

void InFlightWrites::add(const Extent& run, const std::vector<iovec>& iov,
                         std::shared_ptr<const std::any> keep_alive) {
  auto write = std::make_shared<Write>(Write{run, iov, std::move(keep_alive)});
  Shard& s = shard(run.container);
  std::lock_guard lock(s.mutex);
  const bool inserted =
      s.writes.emplace(std::pair(run.container, run.block), std::move(write)).second;
  assert(inserted);
  (void)inserted;
}

void InFlightWrites::remove(const Extent& run) {
  Shard& s = shard(run.container);
  std::lock_guard lock(s.mutex);
  const auto erased = s.writes.erase({run.container, run.block});
  assert(erased == 1);
  (void)erased;
}

bool InFlightWrites::read(const Extent& extent, std::span<std::byte> out) const {
  assert(out.size() == extent.length_bytes());
  std::shared_ptr<const Write> write;
  {
    const Shard& s = shard(extent.container);
    std::lock_guard lock(s.mutex);
    auto it = s.writes.upper_bound({extent.container, extent.block});
    if (it == s.writes.begin()) return false;
    --it;
    const Extent& run = it->second->run;
    if (run.container != extent.container || run.end() < extent.end()) return false;
    write = it->second;
  }
  size_t skip = uint64_t(extent.block - write->run.block) * block_bytes;
  for (const iovec& v : write->iov) {
    if (skip >= v.iov_len) {
      skip -= v.iov_len;
      continue;
    }
    const size_t piece = std::min(out.size(), v.iov_len - skip);
    std::memcpy(out.data(), static_cast<const std::byte*>(v.iov_base) + skip, piece);
    out = out.subspan(piece);
    skip = 0;
    if (out.empty()) return true;
  }
  assert(out.empty());
  return true;
}

}  // namespace tablestore
