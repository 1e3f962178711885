// A set of ranges of keys: what of one family is erased.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

namespace tablestore {

// Not thread-safe.
class KeyRanges {
 public:
  bool empty() const { return ranges_.empty(); }
  void clear() { ranges_.clear(); }
  // [begin, end)
  void add(std::string_view begin, std::string_view end) {
    if (begin >= end) return;
    std::string joined_begin(begin), joined_end(end);
    auto range = ranges_.upper_bound(begin);
    if (range != ranges_.begin() && std::prev(range)->second >= begin) --range;
    while (range != ranges_.end() && range->first <= end) {
      joined_begin = std::min(joined_begin, range->first);
      joined_end = std::max(joined_end, range->second);
      range = ranges_.erase(range);
    }
    ranges_.emplace(std::move(joined_begin), std::move(joined_end));
  }
  // The end of the range that the key is in; null where it is in none.
  const std::string* end_of(std::string_view key) const {
    const auto after = ranges_.upper_bound(key);
    if (after == ranges_.begin()) return nullptr;
    const std::string& end = std::prev(after)->second;
    return key < end ? &end : nullptr;
  }
  // Whether all of [begin, end) is in it.
  bool covers(std::string_view begin, std::string_view end) const {
    const std::string* covered = end_of(begin);
    return covered && *covered >= end;
  }

 private:
  // From begin to end of each; neither overlapping nor touching.
  std::map<std::string, std::string, std::less<>> ranges_;
};

}  // namespace tablestore
