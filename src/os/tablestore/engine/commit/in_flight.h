// Data that was given to Engine::write() and may not be on the disk yet: reads are answered from
// here.
#pragma once

#include <any>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "os/tablestore/engine/format/extent.h"
#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// Thread-safe: a mutex per shard of containers.
class InFlightWrites {
 public:
  // [iov] is the content of `run`; keep_alive owns its memory.
  void add(const Run& run, const std::vector<iovec>& iov,
           std::shared_ptr<const std::any> keep_alive);
  void remove(const Run& run);
  // Copies `wanted` if it lies within one write in flight.
  bool read(const Run& wanted, std::span<std::byte> out) const;
  uint64_t bytes() const { return bytes_; }

 private:
  struct Write {
    Run run;
    std::vector<iovec> iov;
    std::shared_ptr<const std::any> keep_alive;
  };
  struct Shard {
    mutable std::mutex mutex;
    // by container, block
    std::map<std::pair<uint32_t, uint32_t>, std::shared_ptr<const Write>> writes;
  };
  Shard& shard(uint32_t container) { return shards_[container % shards_.size()]; }
  const Shard& shard(uint32_t container) const { return shards_[container % shards_.size()]; }
  std::array<Shard, 16> shards_;
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace tablestore
