// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/error_code.h"
#include "include/buffer.h"

namespace tablestore {

/// The frame around the value of a row:
///
///   version(u8) compat(u8) varint body length, body, crc32c(u32) of all before
///
/// `compat` is the oldest version whose reader understands the body; a reader skips what newer
/// versions append. The checksum catches what the table's own block checksums cannot: a value that
/// was damaged before it reached the table. Integers in the body are varints (7 bits a byte, least
/// significant first), fixed ones are little endian.
class ValueWriter {
 public:
  ValueWriter();
  void varint(uint64_t value);
  /// Small for small absolute values.
  void signed_varint(int64_t value);
  void u8(uint8_t value) { body.push_back(static_cast<char>(value)); }
  void u32(uint32_t value);
  void bytes(std::string_view value) { body.append(value); }
  /// The framed body. The last call.
  std::string finish(uint8_t version, uint8_t compat);

 private:
  std::string body;   ///< after room for what comes before it in the frame
};

/// A sound row, of a version that this program does not know: no damage, and nothing to be mended
/// or replaced by it.
struct NewerVersion : ceph::buffer::malformed_input {
  NewerVersion()
    : malformed_input("it was written by a newer version of Ceph: nothing of it is changed here, "
                      "use that version")
  {
  }
};

/// Of rows that Ceph's ENCODE_START frames, which have no checksum: whether it is such a one.
bool is_of_newer_version(uint8_t version_known, std::string_view row);

/// Reads a frame that ValueWriter made. Everything throws ceph::buffer::malformed_input where the
/// bytes are not such, be they too short or damaged; NewerVersion where they are of a version that
/// is too new.
class ValueReader {
 public:
  /// Takes the frame at the front of `row`.
  ValueReader(uint8_t version_known, std::string_view row);
  uint64_t varint();
  /// A varint that must not exceed `limit`.
  uint64_t varint_up_to(uint64_t limit);
  int64_t signed_varint();
  uint8_t u8() { return static_cast<uint8_t>(bytes(1).front()); }
  uint32_t u32();
  /// A view into the row.
  std::string_view bytes(uint64_t length);
  std::string_view rest_of_body() { return bytes(rest.size()); }
  uint8_t version() const { return version_found; }
  /// What the frame took of the row.
  size_t frame_bytes() const { return frame_length; }

 private:
  std::string_view rest;
  uint8_t version_found = 0;
  size_t frame_length = 0;
};

[[noreturn]] void throw_malformed(const char* what);

}  // namespace tablestore
