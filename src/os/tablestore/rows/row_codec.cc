// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include "os/tablestore/rows/row_codec.h"

#include <cstring>

#include "include/byteorder.h"
#include "os/tablestore/engine/format/crc32c.h"

namespace tablestore {

namespace {

constexpr size_t checksum_bytes = sizeof(uint32_t);
/// Version, compat, and the longest varint.
constexpr size_t head_room_bytes = 2 + 10;
/// Of most rows: a shard in many pieces has about 800.
constexpr size_t usual_bytes = 1000;

void append_varint(uint64_t value, std::string* out)
{
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void append_u32(uint32_t value, std::string* out)
{
  const ceph_le32 little(value);
  out->append(reinterpret_cast<const char*>(&little), sizeof(little));
}

}  // namespace

void throw_malformed(const char* what)
{
  throw ceph::buffer::malformed_input(what);
}

ValueWriter::ValueWriter() : body(head_room_bytes, '\0')
{
  body.reserve(usual_bytes);
}

void ValueWriter::varint(uint64_t value)
{
  append_varint(value, &body);
}

void ValueWriter::signed_varint(int64_t value)
{
  varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

void ValueWriter::u32(uint32_t value)
{
  append_u32(value, &body);
}

std::string ValueWriter::finish(uint8_t version, uint8_t compat)
{
  std::string head;
  head.push_back(static_cast<char>(version));
  head.push_back(static_cast<char>(compat));
  append_varint(body.size() - head_room_bytes, &head);
  const size_t start = head_room_bytes - head.size();
  body.replace(start, head.size(), head);
  body.erase(0, start);
  append_u32(crc32c(0, body.data(), body.size()), &body);
  return std::move(body);
}

bool is_of_newer_version(uint8_t version_known, std::string_view row)
{
  // Version, compat, length, body: what is no frame is damage.
  ceph_le32 length;
  constexpr size_t head_bytes = 2 + sizeof(length);
  if (row.size() < head_bytes)
    return false;
  std::memcpy(&length, row.data() + 2, sizeof(length));
  const auto version = static_cast<uint8_t>(row[0]), compat = static_cast<uint8_t>(row[1]);
  return compat > version_known && version >= compat && length == row.size() - head_bytes;
}

ValueReader::ValueReader(uint8_t version_known, std::string_view row) : rest(row)
{
  version_found = u8();
  const uint8_t compat = u8();
  const uint64_t body_length = varint();
  const size_t head_length = row.size() - rest.size();
  const std::string_view body = bytes(body_length);
  const uint32_t expected = u32();
  if (crc32c(0, row.data(), head_length + body_length) != expected) {
    throw_malformed("checksum of the row does not match");
  }
  // After the checksum: a damaged version is damage, not a newer store.
  if (compat > version_known) {
    throw NewerVersion();
  }
  frame_length = head_length + body_length + checksum_bytes;
  rest = body;
}

uint64_t ValueReader::varint()
{
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = u8();
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80)) {
      return value;
    }
  }
  throw_malformed("integer too long");
}

uint64_t ValueReader::varint_up_to(uint64_t limit)
{
  const uint64_t value = varint();
  if (value > limit) {
    throw_malformed("integer out of range");
  }
  return value;
}

int64_t ValueReader::signed_varint()
{
  const uint64_t value = varint();
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

uint32_t ValueReader::u32()
{
  const std::string_view raw = bytes(sizeof(ceph_le32));
  ceph_le32 little;
  std::memcpy(&little, raw.data(), sizeof(little));
  return little;
}

std::string_view ValueReader::bytes(uint64_t length)
{
  if (length > rest.size()) {
    throw_malformed("row ends too early");
  }
  const std::string_view taken = rest.substr(0, length);
  rest.remove_prefix(length);
  return taken;
}

}  // namespace tablestore
