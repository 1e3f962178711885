#include "os/tablestore/engine/table/row_combiner.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/counter_merge.h"

namespace tablestore {

void RowCombiner::append(uint32_t count, std::string_view rows) {
  RowReader reader(rows);
  for (; count > 0; --count) {
    Item& item = items_.emplace_back();
    require(reader.next(&item.row), "rows are sound");
  }
  require(reader.at_end(), "as many rows as were counted");
}

// Where the item of this row's key is, or would be.
RowCombiner::Item** RowCombiner::find(const Row& row) {
  const size_t mask = places_.size() - 1;
  size_t at = std::hash<std::string_view>{}(row.key) + size_t(row.family);
  for (;; ++at) {
    Item*& place = places_[at & mask];
    if (!place || (place->row.family == row.family && place->row.key == row.key)) return &place;
  }
}

// From the end: a row is left out where its key was written later, whatever came in between. Only
// operands of a merge need more care: they are added to later ones, but not across an erasure of
// a range.
void RowCombiner::combine(Counters& counters) {
  places_.assign(std::bit_ceil(2 * items_.size() + 1), nullptr);
  const Item* last_range = nullptr;  // the first in the batch's order of those seen that stay
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (item->row.kind == Row::Kind::erase_range) {
      item->kept = !list(item->row, counters);
      if (item->kept) last_range = &*item;
      continue;
    }
    Item*& later = *find(item->row);
    if (!later) {
      later = &*item;
      if (listed_[size_t(item->row.family)].end_of(item->row.key)) erase(*item);
    } else if (later->row.kind != Row::Kind::merge) {
      item->kept = false;
      ++counters.rows_left_out;
    } else if (item->row.kind == Row::Kind::merge && (!last_range || later < last_range)) {
      if (!later->sum) later->sum = &sums_.emplace_back(later->row.value);
      require(add_counters(later->sum, item->row.value), "sound rows are whole counters");
      item->kept = false;
      ++counters.rows_left_out;
    } else {
      later = &*item;
    }
  }
}

// True: the range need not be in the batch. Rows that are merged have more than one record of a
// key in a batch, so their ranges stay.
bool RowCombiner::list(const Row& erase_range, Counters& counters) {
  if (erase_range.family == Family::super) return false;
  KeyRanges& listed = listed_[size_t(erase_range.family)];
  if (listed.covers(erase_range.key, erase_range.value)) {
    ++counters.rows_left_out;
    return true;
  }
  if (!list_erasures_(erase_range, &erasures_)) {
    ++counters.range_deletions;
    return false;
  }
  ++counters.listed_ranges;
  listed.add(erase_range.key, erase_range.value);
  return true;
}

// A range that comes later takes the row: it may be in the table as well.
void RowCombiner::erase(Item& item) {
  if (item.row.kind == Row::Kind::erase) return;
  std::string& record = own_records_.emplace_back();
  RowWriter(record).erase(item.row.family, item.row.key);
  item.row.kind = Row::Kind::erase;
  item.row.value = {};
  item.row.record = record;
}

// What the batch says of a key comes later than what the table had of it, or says the same.
void RowCombiner::append_erasures(RowBatch* batch, Counters& counters) {
  RowReader reader(erasures_.rows);
  for (Row row; !reader.at_end();) {
    require(reader.next(&row), "listed rows are sound");
    if (*find(row)) continue;
    batch->append(1, row.record);
    ++counters.listed_rows;
  }
}

// Between two erasures of ranges the keys may come in any order; of what is left of one key, the
// operand of a merge comes after what it is added to.
void RowCombiner::sort() {
  const auto before = [](const Item* a, const Item* b) {
    if (a->row.family != b->row.family) return a->row.family < b->row.family;
    return a->row.key < b->row.key;
  };
  auto begin = kept_.begin();
  for (auto at = kept_.begin(); at != kept_.end(); ++at)
    if ((*at)->row.kind == Row::Kind::erase_range) {
      std::stable_sort(begin, at, before);
      begin = at + 1;
    }
  std::stable_sort(begin, kept_.end(), before);
}

std::string RowCombiner::take(Counters& counters) {
  combine(counters);
  for (Item& item : items_)
    if (item.kept) kept_.push_back(&item);
  sort();
  RowBatch batch;
  append_erasures(&batch, counters);
  std::string sum;
  for (const Item* item : kept_) {
    if (item->sum) {
      sum.clear();
      RowWriter(sum).merge(item->row.family, item->row.key, *item->sum);
      batch.append(1, sum);
    } else {
      batch.append(1, item->row.record);
    }
  }
  kept_.clear();
  items_.clear();
  sums_.clear();
  own_records_.clear();
  erasures_ = {};
  for (KeyRanges& listed : listed_) listed.clear();
  return batch.take();
}

}  // namespace tablestore
