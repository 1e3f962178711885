#include "os/tablestore/engine/table/row_overlay.h"

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
  erased_.add(begin, end);
}

void RowOverlay::skip_erased_ranges(RowIterator& table) const {
  while (table.valid()) {
    const std::string* end = erased_.end_of(table.key());
    if (!end) return;
    table.seek(*end);
  }
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
