// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

namespace tablestore {

/// Of all objects of a store: their numbers, and which rows go by these. For a check, which has
/// one of each object in memory at once, so an entry is small.
class ObjectNumbers {
 public:
  enum class InlineRow : uint8_t { none, wanted, seen };
  struct Entry {
    uint64_t nid = 0;
    int32_t pool = 0;              ///< of its omap
    uint32_t shard_rows : 20 = 0;
    uint32_t has_omap : 1 = false; ///< may have omap
    InlineRow inline_row : 8 = InlineRow::none;

    bool has_rows() const
    {
      return has_omap || inline_row != InlineRow::none || shard_rows > 0;
    }
  };
  static_assert(sizeof(Entry) == 16);

  explicit ObjectNumbers(std::pmr::memory_resource* memory) : entries(memory) {}
  uint64_t size() const { return entries.size(); }

  void add(const Entry& entry) { entries.push_back(entry); }
  /// After the last add(), and before anything below.
  void sort()
  {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.nid < b.nid; });
  }
  using Position = std::pmr::deque<Entry>::iterator;
  /// The entries of the objects with this number: one, where all is well.
  std::pair<Position, Position> find(uint64_t nid)
  {
    const auto first = std::lower_bound(entries.begin(), entries.end(), nid,
                                        [](const Entry& e, uint64_t n) { return e.nid < n; });
    auto end = first;
    while (end != entries.end() && end->nid == nid)
      ++end;
    return {first, end};
  }
  /// Calls f(first, end) for the entries of each number.
  template <typename F>
  void for_each(F&& f)
  {
    for (auto first = entries.begin(); first != entries.end();) {
      auto end = first;
      while (end != entries.end() && end->nid == first->nid)
        ++end;
      f(first, end);
      first = end;
    }
  }

 private:
  std::pmr::deque<Entry> entries;
};

}  // namespace tablestore
