#include "os/tablestore/engine/table/counter_merge.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "rocksdb/merge_operator.h"
#include "rocksdb/slice.h"

namespace tablestore {

bool add_counters(std::string* sum, std::string_view operand) {
  if (operand.size() % sizeof(int64_t) || sum->size() % sizeof(int64_t)) return false;
  if (sum->size() < operand.size()) sum->resize(operand.size(), '\0');
  for (size_t at = 0; at < operand.size(); at += sizeof(uint64_t)) {
    uint64_t counter, addend;  // counters that are damaged may overflow
    std::memcpy(&counter, sum->data() + at, sizeof(counter));
    std::memcpy(&addend, operand.data() + at, sizeof(addend));
    counter += addend;
    std::memcpy(sum->data() + at, &counter, sizeof(counter));
  }
  return true;
}

namespace {

class CounterMerge : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing, const rocksdb::Slice& operand,
             std::string* merged, rocksdb::Logger*) const override {
    merged->clear();
    if (existing) merged->assign(existing->data(), existing->size());
    return add_counters(merged, operand.ToStringView());
  }
  const char* Name() const override { return "tablestore.counters"; }
};

}  // namespace

std::shared_ptr<rocksdb::MergeOperator> make_counter_merge() {
  return std::make_shared<CounterMerge>();
}

}  // namespace tablestore
