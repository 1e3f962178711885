#include "os/tablestore/engine/table/yielding_writer.h"

#include <utility>

#include "rocksdb/table_properties.h"

namespace tablestore {

namespace {

constexpr const char* collector_name = "TableStoreYieldingWriter";

// RocksDB tells a collector of each block that it has made; nothing else of it is used.
class YieldingWriter : public rocksdb::TablePropertiesCollector {
 public:
  explicit YieldingWriter(const std::function<void()>& yield) : yield_(yield) {}
  const char* Name() const override { return collector_name; }
  rocksdb::Status AddUserKey(const rocksdb::Slice&, const rocksdb::Slice&, rocksdb::EntryType,
                             rocksdb::SequenceNumber, uint64_t) override {
    return rocksdb::Status::OK();
  }
  void BlockAdd(uint64_t, uint64_t, uint64_t) override { yield_(); }
  rocksdb::Status Finish(rocksdb::UserCollectedProperties*) override {
    return rocksdb::Status::OK();
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }

 private:
  const std::function<void()> yield_;  // a file may outlive the options that it was begun with
};

class YieldingWriters : public rocksdb::TablePropertiesCollectorFactory {
 public:
  explicit YieldingWriters(std::function<void()> yield) : yield_(std::move(yield)) {}
  const char* Name() const override { return collector_name; }
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context) override {
    return new YieldingWriter(yield_);
  }

 private:
  const std::function<void()> yield_;
};

}  // namespace

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_yielding_writer(
    std::function<void()> yield) {
  return std::make_shared<YieldingWriters>(std::move(yield));
}

}  // namespace tablestore
