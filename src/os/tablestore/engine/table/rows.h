// Rows as they lie in the log and go to the table: RocksDB write-batch records.
//
// RocksDB's write-batch format is its WAL's and stable; written by hand here because a
// transaction's rows are built by a caller's thread that knows neither the database nor its column
// family handles, and because the batches of a whole group are joined without decoding any of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "os/tablestore/engine/engine.h"

namespace tablestore {

// Appends records to a string.
class RowWriter {
 public:
  explicit RowWriter(std::string& out) : out_(out) {}
  void put(Family family, std::string_view key, std::string_view value);
  void erase(Family family, std::string_view key);
  void erase_range(Family family, std::string_view begin, std::string_view end);
  void merge(Family family, std::string_view key, std::string_view operand);

 private:
  void tag(Family family, uint8_t of_default_family, uint8_t of_other_family);
  void bytes(std::string_view s);
  void varint(uint32_t v);
  std::string& out_;
};

// One record.
struct Row {
  enum class Kind { put, erase, erase_range, merge };
  Kind kind = Kind::put;
  Family family = Family::super;
  std::string_view key;    // of a range the begin
  std::string_view value;  // of a range the end; of a merge the operand; of an erasure nothing
  std::string_view record; // all of it, as it lies in the batch
};

// Takes records apart from the front.
class RowReader {
 public:
  explicit RowReader(std::string_view rows) : rest_(rows) {}
  bool at_end() const { return rest_.empty(); }
  // False where they are not such as RowWriter makes, or where there is none left.
  bool next(Row* row);

 private:
  bool byte(uint8_t* out);
  bool varint(uint32_t* out);
  bool bytes(std::string_view* out);
  std::string_view rest_;
};

// Whether `rows` are `count` records as RowWriter makes them. RocksDB believes the batches that it
// is given, so nothing else may reach it.
bool rows_are_sound(uint32_t count, std::string_view rows);

// Records, and how many.
struct CountedRows {
  uint32_t count = 0;
  std::string rows;
};

// One RocksDB write batch made of the rows of many transactions.
class RowBatch {
 public:
  RowBatch() : rep_(header_bytes, '\0') {}
  void append(uint32_t count, std::string_view rows) {
    rep_.append(rows);
    count_ += count;
  }
  uint32_t count() const { return count_; }
  // The representation for rocksdb::WriteBatch; the batch is empty afterwards.
  std::string take();

 private:
  static constexpr size_t header_bytes = 12;  // sequence:u64 count:u32
  std::string rep_;
  uint32_t count_ = 0;
};

}  // namespace tablestore
