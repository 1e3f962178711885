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
void RowCombiner::combine() {
  places_.assign(std::bit_ceil(2 * items_.size() + 1), nullptr);
  const Item* last_range = nullptr;  // the first in the batch's order of those seen
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (item->row.kind == Row::Kind::erase_range) {
      last_range = &*item;
      continue;
    }
    Item*& later = *find(item->row);
    if (!later) {
      later = &*item;
    } else if (later->row.kind != Row::Kind::merge) {
      item->kept = false;
    } else if (item->row.kind == Row::Kind::merge && (!last_range || later < last_range)) {
      if (!later->sum) later->sum = &sums_.emplace_back(later->row.value);
      require(add_counters(later->sum, item->row.value), "sound rows are whole counters");
      item->kept = false;
    } else {
      later = &*item;
    }
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

std::string RowCombiner::take(uint64_t* left_out) {
  combine();
  for (Item& item : items_)
    if (item.kept) kept_.push_back(&item);
  sort();
  RowBatch batch;
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
  *left_out = items_.size() - kept_.size();
  kept_.clear();
  items_.clear();
  sums_.clear();
  return batch.take();
}

}  // namespace tablestore
