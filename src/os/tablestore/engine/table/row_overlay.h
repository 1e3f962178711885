// The rows of a range as they will be once a transaction is applied: the table's, with the
// transaction's own laid over them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/table/key_ranges.h"

namespace tablestore {

// Owns copies of what the transaction says of the range, so that the transaction may grow while
// visit() runs. Not thread-safe.
class RowOverlay {
 public:
  // `rows`: records as RowWriter makes them; of equal keys the later one wins. The range is
  // [lower, upper) of `family`; empty = open end. Not of Family::super, whose rows may be merged.
  RowOverlay(std::string_view rows, Family family, std::string_view lower, std::string_view upper);

  using Visitor = std::function<void(std::string_view key, std::string_view value)>;
  // In the order of keys. `table`: the same range of the table's rows.
  Status visit(RowIterator& table, const Visitor& visitor) const;

 private:
  void put(std::string_view key, std::optional<std::string_view> value);  // nullopt: erased
  void erase_range(std::string_view begin, std::string_view end);
  void skip_erased_ranges(RowIterator& table) const;

  const std::string lower_, upper_;
  // What became of single keys after the last erasure of a range that they are in; nullopt: erased.
  std::map<std::string, std::optional<std::string>, std::less<>> rows_;
  KeyRanges erased_;  // of the table's rows
};

}  // namespace tablestore
