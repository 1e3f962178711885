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

bool RowReader::next(Row* row) {
  const char* const begin = rest_.data();
  uint8_t tag;
  if (!byte(&tag)) return false;
  uint32_t family = 0;
  switch (tag) {
    case erase_other: case put_other: case merge_other: case erase_range_other:
      if (!varint(&family) || family == 0 || family >= families) return false;
      break;
    case erase_default: case put_default: case merge_default: case erase_range_default: break;
    default: return false;
  }
  row->family = Family(family);
  row->value = {};
  if (!bytes(&row->key)) return false;
  const bool is_erase = tag == erase_default || tag == erase_other;
  if (!is_erase && !bytes(&row->value)) return false;
  row->record = {begin, size_t(rest_.data() - begin)};
  switch (tag) {
    case erase_default: case erase_other: row->kind = Row::Kind::erase; return true;
    case put_default: case put_other: row->kind = Row::Kind::put; return true;
    case erase_range_default: case erase_range_other:
      row->kind = Row::Kind::erase_range;
      return row->key <= row->value;
    default:  // only the counters of Family::super are added to
      row->kind = Row::Kind::merge;
      return tag == merge_default && row->value.size() % sizeof(int64_t) == 0;
  }
}

bool RowReader::byte(uint8_t* out) {
  if (rest_.empty()) return false;
  *out = uint8_t(rest_.front());
  rest_.remove_prefix(1);
  return true;
}

bool RowReader::varint(uint32_t* out) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift <= 28; shift += 7) {
    uint8_t b;
    if (!byte(&b)) return false;
    value |= uint64_t(b & 0x7f) << shift;
    if (b & 0x80) continue;
    *out = uint32_t(value);
    return value <= UINT32_MAX;
  }
  return false;
}

bool RowReader::bytes(std::string_view* out) {
  uint32_t length;
  if (!varint(&length) || length > rest_.size()) return false;
  *out = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

bool rows_are_sound(uint32_t count, std::string_view rows) {
  RowReader reader(rows);
  Row row;
  for (; count > 0 && !reader.at_end(); --count)
    if (!reader.next(&row)) return false;
  return count == 0 && reader.at_end();
}

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
