// Leaves out of a batch what nobody could ever read of it, and sorts the rest, so that one row's
// place in the memtable is near the last one's.
//
// An OSD writes some rows again and again: a PG's fastinfo with each operation, the counters of a
// pool, the log entry that is trimmed a moment later, the references of what snapshots share. Each
// would be a node of the memtable, to be skipped by every read until a flush drops it.
//
// A range that is erased becomes an erasure of each row that it has, as far as these can be listed:
// RocksDB looks through all range deletions of a memtable with each read, and the first read after
// a new one sorts all of them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/table/key_ranges.h"
#include "os/tablestore/engine/table/rows.h"

namespace tablestore {

// Not thread-safe; keeps its memory from batch to batch.
class RowCombiner {
 public:
  // Adds an erasure of each row that the table has in the range of `erase_range`. False, and adds
  // nothing: the range is to stay one. See Table::list_erasures().
  using ListErasures = std::function<bool(const Row& erase_range, CountedRows* erasures)>;
  explicit RowCombiner(ListErasures list_erasures) : list_erasures_(std::move(list_erasures)) {}

  // `count` sound rows, which come after all that were added before. They must stay in memory until
  // take().
  void append(uint32_t count, std::string_view rows);
  // All of it but for rows that a later one of the same key replaces, and with one sum in place of
  // all operands of a merge; empty afterwards. Sorted by family and key, but that what came before
  // or after the erasure of a range still does. Counts rows_left_out and what became of ranges.
  //
  // What is listed of ranges is what the table has: it must have got all batches before this one.
  std::string take(Counters& counters);

 private:
  struct Item {
    Row row;
    std::string* sum = nullptr;  // of a merge, in place of its value
    bool kept = true;
  };
  void combine(Counters& counters);
  bool list(const Row& erase_range, Counters& counters);
  void erase(Item& item);
  void sort();
  void append_erasures(RowBatch* batch, Counters& counters);
  Item** find(const Row& row);

  const ListErasures list_erasures_;
  std::vector<Item> items_;
  std::vector<Item*> kept_;
  std::deque<std::string> sums_;
  std::deque<std::string> own_records_;  // of items that have become erasures
  // From key to the last item of that key so far, counted from the batch's end: open addressing, a
  // power of two of places, at least half of them null.
  std::vector<Item*> places_;
  CountedRows erasures_;                     // of the rows that the table has in listed ranges
  std::array<KeyRanges, families> listed_;   // ranges of items that came so far, counted likewise
};

}  // namespace tablestore
