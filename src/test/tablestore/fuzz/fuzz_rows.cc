// The rows of a transaction, as they lie in the log: what is taken for sound, RocksDB understands.
//
//   input = count:u32 rows
#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/counter_merge.h"
#include "os/tablestore/engine/table/rows.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/write_batch.h"
#include "test/tablestore/fuzz/input.h"

namespace tablestore::fuzz {
namespace {

// Writes the rows again with RowWriter, and adds counters to each other.
class Rewriter : public rocksdb::WriteBatch::Handler {
 public:
  std::string text;
  uint32_t count = 0;

  rocksdb::Status PutCF(uint32_t f, const rocksdb::Slice& k, const rocksdb::Slice& v) override {
    return add([&] { writer_.put(Family(f), k.ToStringView(), v.ToStringView()); });
  }
  rocksdb::Status DeleteCF(uint32_t f, const rocksdb::Slice& k) override {
    return add([&] { writer_.erase(Family(f), k.ToStringView()); });
  }
  rocksdb::Status DeleteRangeCF(uint32_t f, const rocksdb::Slice& a,
                                const rocksdb::Slice& b) override {
    require(a.compare(b) <= 0, "a range ends after it begins");
    return add([&] { writer_.erase_range(Family(f), a.ToStringView(), b.ToStringView()); });
  }
  rocksdb::Status MergeCF(uint32_t f, const rocksdb::Slice& k, const rocksdb::Slice& v) override {
    require(f == 0, "only counters are merged");
    std::string sum;
    const std::string before = counters_;
    const rocksdb::Slice existing(before);
    require(merge_->Merge(k, &existing, v, &sum, nullptr), "counters can be added");
    counters_ = sum;
    return add([&] { writer_.merge(Family(f), k.ToStringView(), v.ToStringView()); });
  }

 private:
  template <typename F>
  rocksdb::Status add(F f) {
    ++count;
    f();
    return rocksdb::Status::OK();
  }
  RowWriter writer_{text};
  std::string counters_;
  const std::shared_ptr<rocksdb::AssociativeMergeOperator> merge_ =
      std::static_pointer_cast<rocksdb::AssociativeMergeOperator>(make_counter_merge());
};

void run(Input in) {
  const uint32_t count = in.u32();
  const Exactly rows(in.rest());
  if (!rows_are_sound(count, rows.view())) return;
  RowBatch batch;
  batch.append(count, rows.view());
  rocksdb::WriteBatch parsed(batch.take());
  require(uint32_t(parsed.Count()) == count, "a batch has its count");
  Rewriter rewriter;
  const auto status = parsed.Iterate(&rewriter);
  require(status.ok(), "RocksDB understands sound rows");
  require(rewriter.count == count, "each record is one row");
  require(rewriter.text.size() <= rows.view().size() && rows_are_sound(count, rewriter.text),
          "rows are read as they were written");
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tablestore::fuzz::run({data, size});
  return 0;
}
