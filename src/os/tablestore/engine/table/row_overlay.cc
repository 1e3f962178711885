#include "os/tablestore/engine/table/row_overlay.h"

#include <algorithm>
#include <iterator>

#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/rows.h"

namespace tablestore {

RowOverlay::RowOverlay(std::string_view rows, Family family, std::string_view lower,
                       std::string_view upper)
    : lower_(lower), upper_(upper) {
  require(family != Family::super, "only rows that are never merged are read with an overlay");
  RowReader reader(rows);
  for (Row row; !reader.at_end();) {
    require(reader.next(&row), "a transaction's rows are sound");
    if (row.family != family) continue;
    switch (row.kind) {
      case Row::Kind::put: put(row.key, row.value); break;
      case Row::Kind::erase: put(row.key, std::nullopt); break;
      case Row::Kind::erase_range: erase_range(row.key, row.value); break;
      case Row::Kind::merge: require(false, "only rows of Family::super are merged");
    }
  }
}

void RowOverlay::put(std::string_view key, std::optional<std::string_view> value) {
  if (key < lower_ || (!upper_.empty() && key >= upper_)) return;
  rows_.insert_or_assign(std::string(key), value);
}

void RowOverlay::erase_range(std::string_view begin, std::string_view end) {
  if (begin >= end) return;
  rows_.erase(rows_.lower_bound(begin), rows_.lower_bound(end));
  std::string joined_begin(begin), joined_end(end);
  auto range = erased_ranges_.upper_bound(begin);
  if (range != erased_ranges_.begin() && std::prev(range)->second >= begin) --range;
  while (range != erased_ranges_.end() && range->first <= end) {
    joined_begin = std::min(joined_begin, range->first);
    joined_end = std::max(joined_end, range->second);
    range = erased_ranges_.erase(range);
  }
  erased_ranges_.emplace(std::move(joined_begin), std::move(joined_end));
}

void RowOverlay::skip_erased_ranges(RowIterator& table) const {
  if (!table.valid()) return;
  const auto after = erased_ranges_.upper_bound(table.key());
  if (after == erased_ranges_.begin()) return;
  if (const auto range = std::prev(after); table.key() < range->second) table.seek(range->second);
}

Status RowOverlay::visit(RowIterator& table, const Visitor& visitor) const {
  auto own = rows_.begin();
  table.seek_to_first();
  for (;;) {
    skip_erased_ranges(table);
    const bool has_table = table.valid();
    if (!has_table && !table.status().ok()) return table.status();
    if (own == rows_.end() && !has_table) return {};
    if (own != rows_.end() && (!has_table || own->first <= table.key())) {
      if (own->second) visitor(own->first, *own->second);
      if (has_table && own->first == table.key()) table.next();
      ++own;
    } else {
      visitor(table.key(), table.value());
      table.next();
    }
  }
}

}  // namespace tablestore
