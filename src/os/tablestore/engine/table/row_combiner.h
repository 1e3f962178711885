// Leaves out of a batch what nobody could ever read of it, and sorts the rest, so that one row's
// place in the memtable is near the last one's.
//
// An OSD writes some rows again and again: a PG's fastinfo with each operation, the counters of a
// pool, the log entry that is trimmed a moment later, the references of what snapshots share. Each
// would be a node of the memtable, to be skipped by every read until a flush drops it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "os/tablestore/engine/table/rows.h"

namespace tablestore {

// Not thread-safe; keeps its memory from batch to batch.
class RowCombiner {
 public:
  // `count` sound rows, which come after all that were added before. They must stay in memory until
  // take().
  void append(uint32_t count, std::string_view rows);
  // All of it but for rows that a later one of the same key replaces, and with one sum in place of
  // all operands of a merge; empty afterwards. Sorted by family and key, but that what came before
  // or after the erasure of a range still does. `left_out`: how many rows that saved.
  std::string take(uint64_t* left_out);

 private:
  struct Item {
    Row row;
    std::string* sum = nullptr;  // of a merge, in place of its value
    bool kept = true;
  };
  void combine();
  void sort();
  Item** find(const Row& row);

  std::vector<Item> items_;
  std::vector<Item*> kept_;
  std::deque<std::string> sums_;
  // From key to the last item of that key so far, counted from the batch's end: open addressing, a
  // power of two of places, at least half of them null.
  std::vector<Item*> places_;
};

}  // namespace tablestore
