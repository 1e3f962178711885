// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <string>

#include "include/buffer.h"
#include "include/ceph_assert.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "test/tablestore/fuzz/input.h"

/// What the fuzz targets of the store's rows have in common. An input begins with a byte that says
/// how the rest becomes a row: as it is, or as the body of a frame (os/tablestore/row_codec.h)
/// whose length and checksum are right, so that what lies behind these is reached.
namespace tablestore::fuzz {

inline std::string framed(uint8_t version, uint8_t compat, std::string_view body)
{
  std::string row;
  row.push_back(static_cast<char>(version));
  row.push_back(static_cast<char>(compat));
  size_t length = body.size();
  for (; length >= 0x80; length >>= 7) {
    row.push_back(static_cast<char>(length | 0x80));
  }
  row.push_back(static_cast<char>(length));
  row.append(body);
  const uint32_t crc = crc32c(0, row.data(), row.size());
  row.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  return row;
}

inline std::string take_row(Input& in)
{
  const uint8_t how = in.u8();
  if (how == 0) {
    return framed(1, 1, in.rest());
  }
  if (how == 1) {
    return std::string(in.rest());
  }
  const uint8_t compat = in.u8();
  return framed(how, compat, in.rest());
}

/// For seeds: the body of a frame.
inline std::string body_of(const std::string& row)
{
  size_t head = 2;
  while (row.at(head++) & 0x80) {
  }
  return row.substr(head, row.size() - head - sizeof(uint32_t));
}

/// In one piece that is just as long, so that a read behind it is noticed.
inline ceph::buffer::list one_buffer(std::string_view bytes)
{
  ceph::buffer::list bl;
  bl.push_back(ceph::buffer::copy(bytes.data(), bytes.size()));
  return bl;
}

}  // namespace tablestore::fuzz
