// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include <boost/circular_buffer.hpp>

namespace tablestore {

/// How many bytes of a cache were last used when: the first bin is that of now, a shift() begins
/// another one. What was last used in a bin that has been shifted out is in none. Of one shard,
/// and guarded by its mutex.
class AgeBins {
 public:
  /// Of an entry: the bin that its bytes are in.
  using Bin = std::shared_ptr<uint64_t>;

  AgeBins() : bins(1) { shift(); }

  void shift() { bins.push_front(std::make_shared<uint64_t>(0)); }
  void set_count(uint32_t count) { bins.set_capacity(std::max(count, 1u)); }
  uint64_t sum(uint32_t begin, uint32_t end) const
  {
    uint64_t bytes = 0;
    for (size_t i = begin; i < std::min<size_t>(end, bins.size()); ++i)
      bytes += *bins[i];
    return bytes;
  }

  /// The bytes of an entry, which is used now; `bin` is null where it is new.
  void use(Bin& bin, uint64_t bytes)
  {
    if (bin == bins.front())
      return;
    if (bin)
      *bin -= bytes;
    bin = bins.front();
    *bin += bytes;
  }
  static void resize(Bin& bin, uint64_t from_bytes, uint64_t to_bytes)
  {
    *bin += to_bytes - from_bytes;
  }

 private:
  boost::circular_buffer<Bin> bins;
};

}  // namespace tablestore
