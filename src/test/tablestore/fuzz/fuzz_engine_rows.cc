// The engine's own rows of the table.
//
//   input = which:u8 value                  0 applied, 1 log_start
//         = which:u8 key_bytes:u8 key value  2 allocation
#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "rocksdb/write_batch.h"
#include "test/tablestore/fuzz/input.h"

namespace tablestore::fuzz {
namespace {

// The row that is written of a state that was read.
class Scribe : public rocksdb::WriteBatch::Handler {
 public:
  std::string key, value;
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice& k, const rocksdb::Slice& v) override {
    key = k.ToString();
    value = v.ToString();
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice& k) override {
    key = k.ToString();
    value.clear();
    return rocksdb::Status::OK();
  }
};

void read_allocation(std::string_view key, std::string_view value) {
  const auto name = engine_rows::decode_allocation_key(key);
  if (const auto whole = engine_rows::decode_whole_allocation(value))
    require(whole->count() <= whole->blocks(), "set bits are blocks");
  const auto row = engine_rows::decode_allocation(value);
  if (!row) return;
  require(row->owned.chunks() == 1, "a row is of one chunk");
  require(row->owned.count() <= row->owned.blocks(), "set bits are blocks");
  if (!name || !name->chunk) return;
  std::string rows;
  RowWriter writer(rows);
  engine_rows::write_allocation(writer, {name->container, *name->chunk, row->owned}, row->as_of);
  RowBatch batch;
  batch.append(1, rows);
  Scribe scribe;
  rocksdb::WriteBatch parsed(batch.take());
  require(parsed.Iterate(&scribe).ok() && scribe.key == key && scribe.value == value,
          "an allocation row is read as it was written");
}

void run(Input in) {
  switch (in.u8() % 3) {
    case 0: {
      const Exactly value(in.rest());
      const auto lsn = engine_rows::decode_applied(value.view());
      require(!lsn || value.view().size() == sizeof(*lsn), "a transaction's number has 8 bytes");
      return;
    }
    case 1: {
      const Exactly value(in.rest());
      const auto position = LogPosition::decode(value.view());
      if (!position) return;
      require(position->encode() == value.view(), "log_start is read as it was written");
      require(position->position % block_bytes == 0, "groups begin with a block");
      require(position->next_lsn > 0, "the first transaction is 1");
      return;
    }
    default: {
      const Exactly key(in.view(in.u8()));
      const Exactly value(in.rest());
      return read_allocation(key.view(), value.view());
    }
  }
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tablestore::fuzz::run({data, size});
  return 0;
}
