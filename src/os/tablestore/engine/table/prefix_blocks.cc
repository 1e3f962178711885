#include "os/tablestore/engine/table/prefix_blocks.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "rocksdb/flush_block_policy.h"
#include "rocksdb/slice.h"

namespace tablestore {

namespace {

class PrefixBlocks : public rocksdb::FlushBlockPolicy {
 public:
  PrefixBlocks(size_t prefix_bytes, rocksdb::FlushBlockPolicy* by_size)
      : prefix_bytes_(prefix_bytes), by_size_(by_size) {}
  // Of an internal key, which is the row's key and eight bytes. False for the first of a file.
  bool Update(const rocksdb::Slice& key, const rocksdb::Slice& value) override {
    const std::string_view prefix(key.data(), std::min(prefix_bytes_, key.size()));
    const bool changes = !last_.empty() && prefix != last_;
    last_ = prefix;
    return by_size_->Update(key, value) || changes;
  }

 private:
  const size_t prefix_bytes_;
  const std::unique_ptr<rocksdb::FlushBlockPolicy> by_size_;
  std::string last_;
};

class PrefixBlocksFactory : public rocksdb::FlushBlockPolicyFactory {
 public:
  explicit PrefixBlocksFactory(size_t prefix_bytes) : prefix_bytes_(prefix_bytes) {}
  const char* Name() const override { return "TableStorePrefixBlocks"; }
  rocksdb::FlushBlockPolicy* NewFlushBlockPolicy(
      const rocksdb::BlockBasedTableOptions& options,
      const rocksdb::BlockBuilder& builder) const override {
    return new PrefixBlocks(prefix_bytes_, by_size_.NewFlushBlockPolicy(options, builder));
  }

 private:
  const size_t prefix_bytes_;
  const rocksdb::FlushBlockBySizePolicyFactory by_size_;
};

}  // namespace

std::shared_ptr<rocksdb::FlushBlockPolicyFactory> make_prefix_blocks(size_t prefix_bytes) {
  return std::make_shared<PrefixBlocksFactory>(prefix_bytes);
}

}  // namespace tablestore
