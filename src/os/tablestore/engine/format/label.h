// The label: what a store is, before anything else of it is read.
//
// A file "label" of 8 KiB holds two copies, each one block of 4 KiB that carries its own checksum
// in its last four bytes. That place never moves, whatever the format's version, so that an older
// program can tell a newer label from a damaged one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "os/tablestore/engine/format/release.h"
#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

inline constexpr uint32_t label_format_version = 1;

// Feature bits that this program understands. A store with an unknown bit in ...
//   compat     can be used
//   ro_compat  can be read, not written
//   incompat   cannot be opened
// Some are in use, or were. A program that does not know the bit may drop them.
inline constexpr uint64_t compat_label_keys = 1;
inline constexpr uint64_t known_compat = compat_label_keys;
inline constexpr uint64_t known_ro_compat = 0;
// Rows of the allocation map are of chunks, each with a log position of its own.
inline constexpr uint64_t incompat_allocation_chunks = 1;
// Groups of the log may be compressed. A store that was made without keeps to groups that are not.
inline constexpr uint64_t incompat_compressed_groups = 2;
inline constexpr uint64_t known_incompat = incompat_allocation_chunks | incompat_compressed_groups;

// A release as a number, as the label has it. 0: one from before 0.1, or nobody knows.
constexpr uint32_t release_number(uint32_t major, uint32_t minor) { return major << 16 | minor; }
inline constexpr uint32_t this_release =
    release_number(TABLESTORE_RELEASE_MAJOR, TABLESTORE_RELEASE_MINOR);
std::string release_name(uint32_t number);

struct Label {
  std::array<uint8_t, 16> store_uuid{};
  uint64_t compat = 0;
  uint64_t ro_compat = 0;
  uint64_t incompat = 0;
  // Geometry: fixed for the life of the store.
  uint64_t log_bytes = 0;
  uint64_t segment_bytes = 0;
  uint64_t container_bytes = 0;
  uint64_t created_unix_seconds = 0;
  // For people: a store is refused by its version and its feature bits, never by these.
  uint32_t made_by = 0;    // the release that made the store
  uint32_t opened_by = 0;  // the one that opened it last
  // Notes of whoever operates the store; nothing that it needs.
  std::map<std::string, std::string> keys;
  // Set by read_label(); write_label() counts on by itself.
  uint32_t format_version = label_format_version;
  uint64_t sequence = 0;

  bool operator==(const Label&) const = default;
};

// Makes the label or replaces it, so that a crash at any point leaves the old or the new one. Makes
// the name durable too. EIO, ENOSPC ...
// E2BIG: there are more keys than fit.
Status write_label(Disk& disk, const Label& label);

// ENOENT: the directory has no label. EIO: both copies are damaged, or belong to two stores, or
// the geometry is none.
// ENOTSUP: a newer format, or features that this program does not know; the line says which.
// `repair_needed` (may be null): one copy was damaged or older than the other, and write_label() of
// the result would mend it.
Result<Label> read_label(Disk& disk, bool* repair_needed = nullptr);

// ENOTSUP where the store may only be read by this program.
Status check_writable(Disk& disk, const Label& label);

}  // namespace tablestore
