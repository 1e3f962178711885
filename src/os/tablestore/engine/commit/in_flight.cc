#include "os/tablestore/engine/commit/in_flight.h"

#include <algorithm>
#include <cstring>

#include "os/tablestore/engine/require.h"

namespace tablestore {

void InFlightWrites::add(const Run& run, const std::vector<iovec>& iov,
                         std::shared_ptr<const std::any> keep_alive) {
  auto write = std::make_shared<Write>(Write{run, iov, std::move(keep_alive)});
  Shard& s = shard(run.container);
  std::lock_guard lock(s.mutex);
  const bool inserted =
      s.writes.emplace(std::pair(run.container, run.block), std::move(write)).second;
  require(inserted, "a block is written once at a time");
  bytes_ += run.length_bytes();
}

void InFlightWrites::remove(const Run& run) {
  Shard& s = shard(run.container);
  std::lock_guard lock(s.mutex);
  require(s.writes.erase({run.container, run.block}) == 1, "what has been written was in flight");
  bytes_ -= run.length_bytes();
}

bool InFlightWrites::read(const Run& wanted, std::span<std::byte> out) const {
  require(out.size() == wanted.length_bytes(), "room for all of the wanted");
  std::shared_ptr<const Write> write;
  {
    const Shard& s = shard(wanted.container);
    std::lock_guard lock(s.mutex);
    auto it = s.writes.upper_bound({wanted.container, wanted.block});
    if (it == s.writes.begin()) return false;
    --it;
    const Run& run = it->second->run;
    if (run.container != wanted.container || run.end() < wanted.end()) return false;
    write = it->second;
  }
  size_t skip = uint64_t(wanted.block - write->run.block) * block_bytes;
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
  require(out.empty(), "the memory of a write is as long as its run");
  return true;
}

}  // namespace tablestore
