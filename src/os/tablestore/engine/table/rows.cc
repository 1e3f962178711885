#include "os/tablestore/engine/table/rows.h"

#include <cstring>

namespace tablestore {

namespace {

// db/dbformat.h: enum ValueType. The records of the default family have tags of their own.
constexpr uint8_t erase_default = 0x0, erase_other = 0x4;
constexpr uint8_t put_default = 0x1, put_other = 0x5;
constexpr uint8_t merge_default = 0x2, merge_other = 0x6;
constexpr uint8_t erase_range_default = 0xF, erase_range_other = 0xE;

}  // namespace

void RowWriter::varint(uint32_t v) {
  while (v >= 0x80) {
    out_.push_back(char(v | 0x80));
    v >>= 7;
  }
  out_.push_back(char(v));
}

void RowWriter::bytes(std::string_view s) {
  varint(uint32_t(s.size()));
  out_.append(s);
}

void RowWriter::tag(Family family, uint8_t of_default_family, uint8_t of_other_family) {
  if (uint32_t(family) == 0) {
    out_.push_back(char(of_default_family));
  } else {
    out_.push_back(char(of_other_family));
    varint(uint32_t(family));
  }
}

void RowWriter::put(Family family, std::string_view key, std::string_view value) {
  tag(family, put_default, put_other);
  bytes(key);
  bytes(value);
}

void RowWriter::erase(Family family, std::string_view key) {
  tag(family, erase_default, erase_other);
  bytes(key);
}

void RowWriter::erase_range(Family family, std::string_view begin, std::string_view end) {
  tag(family, erase_range_default, erase_range_other);
  bytes(begin);
  bytes(end);
}

void RowWriter::merge(Family family, std::string_view key, std::string_view operand) {
  tag(family, merge_default, merge_other);
  bytes(key);
  bytes(operand);
}

std::string RowBatch::take() {
  std::memcpy(rep_.data() + 8, &count_, sizeof(count_));
  std::string batch = std::move(rep_);
  rep_.assign(header_bytes, '\0');
  count_ = 0;
  return batch;
}

}  // namespace tablestore
