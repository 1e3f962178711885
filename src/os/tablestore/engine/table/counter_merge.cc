#include "os/tablestore/engine/table/counter_merge.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "rocksdb/merge_operator.h"
#include "rocksdb/slice.h"

namespace tablestore {

namespace {

class CounterMerge : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing, const rocksdb::Slice& operand,
             std::string* merged, rocksdb::Logger*) const override {
    if (operand.size() % sizeof(int64_t) || (existing && existing->size() % sizeof(int64_t)))
      return false;
    merged->assign(operand.data(), operand.size());
    if (!existing) return true;
    if (merged->size() < existing->size()) merged->resize(existing->size(), '\0');
    for (size_t at = 0; at < existing->size(); at += sizeof(uint64_t)) {
      uint64_t sum, addend;  // counters that are damaged may overflow
      std::memcpy(&sum, merged->data() + at, sizeof(sum));
      std::memcpy(&addend, existing->data() + at, sizeof(addend));
      sum += addend;
      std::memcpy(merged->data() + at, &sum, sizeof(sum));
    }
    return true;
  }
  const char* Name() const override { return "tablestore.counters"; }
};

}  // namespace

std::shared_ptr<rocksdb::MergeOperator> make_counter_merge() {
  return std::make_shared<CounterMerge>();
}

}  // namespace tablestore
