#include "os/tablestore/engine/format/label.h"

#include <bit>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>

#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/format/extent.h"
#include "os/tablestore/engine/io/block_memory.h"

namespace tablestore {
namespace {

static_assert(std::endian::native == std::endian::little,
              "on-disk structures are used as they are in memory");

constexpr char label_path[] = "label";
constexpr char label_magic[8] = {'t', 'b', 'l', 's', 't', 'o', 'r', '1'};
constexpr unsigned label_copies = 2;

// One copy of the label, little endian. What each field guards against:
//   magic           a file that is no label
//   format_version  a program that is too old to understand the store
//   field_bytes     fields that this program does not know, and would drop when it rewrites the
//                   label
//   sequence        an update that a crash cut off between the copies: the higher one is newer
//   store_uuid      a label, a log or containers that were copied from another store
//   compat ...      a program that lacks a feature that the store has come to use
//   *_bytes         files of another geometry than the one that the store was made with
//   made_by ...     a refusal that cannot say which release is needed
//   keys            nothing: whoever does not know them drops them
//   crc             torn, lost and rotten bytes; over everything before it
struct __attribute__((packed)) LabelBlock {
  char magic[8];
  uint32_t format_version;
  uint32_t field_bytes;
  uint64_t sequence;
  uint8_t store_uuid[16];
  uint64_t compat;
  uint64_t ro_compat;
  uint64_t incompat;
  uint64_t log_bytes;
  uint64_t segment_bytes;
  uint64_t container_bytes;
  uint64_t block_bytes;
  uint64_t created_unix_seconds;
  uint32_t made_by;
  uint32_t opened_by;
  uint32_t key_bytes;
  uint8_t keys[3976];
  uint32_t crc;
};
static_assert(sizeof(LabelBlock) == block_bytes);
static_assert(offsetof(LabelBlock, format_version) == 8);
static_assert(offsetof(LabelBlock, sequence) == 16);
static_assert(offsetof(LabelBlock, store_uuid) == 24);
static_assert(offsetof(LabelBlock, compat) == 40);
static_assert(offsetof(LabelBlock, log_bytes) == 64);
static_assert(offsetof(LabelBlock, block_bytes) == 88);
static_assert(offsetof(LabelBlock, made_by) == 104);
static_assert(offsetof(LabelBlock, key_bytes) == 112);
static_assert(offsetof(LabelBlock, keys) == 116);
static_assert(offsetof(LabelBlock, crc) == block_bytes - sizeof(uint32_t));

// Without the keys, which may be dropped: see compat_label_keys.
constexpr uint32_t label_field_bytes = offsetof(LabelBlock, key_bytes);
// Before 0.1: without the releases, which read as 0.
constexpr uint32_t least_field_bytes = offsetof(LabelBlock, made_by);

uint32_t crc_of(const LabelBlock& block) {
  return crc32c(0, &block, offsetof(LabelBlock, crc));
}

std::string label_name(const Disk& disk) { return disk.name() + "/" + label_path; }

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

// One copy as it was found: the block where it is sound, else what is wrong with it.
struct Copy {
  std::optional<LabelBlock> block;
  std::string fault;
};

// An error says nothing of the copy.
Result<Copy> read_copy(File& file, unsigned index) {
  BlockMemory memory(block_bytes);
  Copy copy;
  if (Status s = file.read(index * block_bytes, memory.span()); !s.ok()) {
    if (s.code() != EIO) return s;
    copy.fault = "cannot be read (" + s.what() + ")";
    return copy;
  }
  LabelBlock block;
  std::memcpy(&block, memory.data(), sizeof(block));
  if (std::memcmp(block.magic, label_magic, sizeof(label_magic)) != 0) {
    copy.fault = "has no label magic";
  } else if (uint32_t crc = crc_of(block); crc != block.crc) {
    copy.fault = "has checksum " + hex(crc) + ", expected " + hex(block.crc);
  } else {
    copy.block = block;
  }
  return copy;
}

Status read_copies(File& file, Copy (&copies)[label_copies]) {
  for (unsigned i = 0; i < label_copies; ++i) {
    auto copy = read_copy(file, i);
    if (!copy.ok()) return copy.status();
    copies[i] = copy.take();
  }
  return {};
}

// The copy to go by: 0 or 1; none where both are damaged.
std::optional<unsigned> newest(const Copy (&copies)[label_copies]) {
  if (!copies[0].block && !copies[1].block) return std::nullopt;
  if (!copies[1].block) return 0;
  if (!copies[0].block) return 1;
  return copies[1].block->sequence > copies[0].block->sequence ? 1 : 0;
}

Status check_understood(const std::string& name, const LabelBlock& block) {
  const std::string newest_needed = block.opened_by > this_release
                                        ? "TableStore " + release_name(block.opened_by)
                                        : "the release that wrote it";
  const std::string advice =
      " (" TABLESTORE_RELEASE "); use " + newest_needed + ", or a newer one";
  if (block.format_version != label_format_version) {
    return Status(ENOTSUP, name + ": the store has format version " +
                               std::to_string(block.format_version) + ", this program knows " +
                               std::to_string(label_format_version) + advice);
  }
  if (block.field_bytes < least_field_bytes || block.field_bytes > label_field_bytes) {
    return Status(ENOTSUP, name + ": the label has " + std::to_string(block.field_bytes) +
                               " bytes of fields, this program knows " +
                               std::to_string(label_field_bytes) + advice);
  }
  if (uint64_t unknown = block.incompat & ~known_incompat) {
    return Status(ENOTSUP, name + ": the store uses features that this program does not know "
                               "(incompat bits " + hex(unknown) + ")" + advice);
  }
  if (block.block_bytes != block_bytes) {
    return Status(ENOTSUP, name + ": the store has blocks of " +
                               std::to_string(block.block_bytes) + " bytes, this program knows " +
                               std::to_string(block_bytes) + advice);
  }
  return Status();
}

// The other rooms divide by these, and take them for sizes of files.
Status check_geometry(const std::string& name, const LabelBlock& block) {
  constexpr uint64_t mib = 1 << 20;
  constexpr uint64_t largest_slot_bytes = largest_slot_blocks * tablestore::block_bytes;
  const bool log_fits = block.segment_bytes > 0 && block.segment_bytes % mib == 0 &&
                        block.log_bytes % block.segment_bytes == 0 &&
                        block.log_bytes / block.segment_bytes >= 2;
  const bool containers_fit = block.container_bytes > 0 &&
                              block.container_bytes % largest_slot_bytes == 0 &&
                              block.container_bytes / tablestore::block_bytes < UINT32_MAX;
  if (log_fits && containers_fit) return {};
  return Status(EIO, name + ": no store has a log of " + std::to_string(block.log_bytes) +
                         " bytes in segments of " + std::to_string(block.segment_bytes) +
                         " and containers of " + std::to_string(block.container_bytes) +
                         "; what wrote this label was faulty: recover the data from replicas");
}

struct __attribute__((packed)) KeyHeader {
  uint16_t key_length;
  uint16_t value_length;
};
static_assert(sizeof(KeyHeader) == 4);

// What does not fit has been refused.
void encode_keys(const Label& label, LabelBlock* block) {
  uint8_t* at = block->keys;
  for (const auto& [key, value] : label.keys) {
    const KeyHeader header{uint16_t(key.size()), uint16_t(value.size())};
    std::memcpy(at, &header, sizeof(header));
    std::memcpy(at + sizeof(header), key.data(), key.size());
    std::memcpy(at + sizeof(header) + key.size(), value.data(), value.size());
    at += sizeof(header) + key.size() + value.size();
  }
  block->key_bytes = uint32_t(at - block->keys);
}

std::map<std::string, std::string> decode_keys(const LabelBlock& block) {
  std::map<std::string, std::string> keys;
  if (!(block.compat & compat_label_keys) || block.key_bytes > sizeof(block.keys)) return keys;
  const char* at = reinterpret_cast<const char*>(block.keys);
  for (size_t left = block.key_bytes; left > 0;) {
    KeyHeader header;
    if (left < sizeof(header)) return {};
    std::memcpy(&header, at, sizeof(header));
    const size_t bytes = sizeof(header) + header.key_length + header.value_length;
    if (left < bytes) return {};
    const std::string key(at + sizeof(header), header.key_length);
    if (!keys.empty() && key <= keys.rbegin()->first) return {};
    keys[key].assign(at + sizeof(header) + header.key_length, header.value_length);
    at += bytes;
    left -= bytes;
  }
  return keys;
}

Status check_keys(const std::string& name, const Label& label) {
  size_t bytes = 0;
  for (const auto& [key, value] : label.keys)
    bytes += sizeof(KeyHeader) + key.size() + value.size();
  if (bytes <= sizeof(LabelBlock::keys)) return {};
  return Status(E2BIG, name + ": its keys and their values would be " + std::to_string(bytes) +
                           " bytes, and there is room for " +
                           std::to_string(sizeof(LabelBlock::keys)));
}

LabelBlock encode(const Label& label, uint64_t sequence) {
  LabelBlock block{};
  std::memcpy(block.magic, label_magic, sizeof(label_magic));
  block.format_version = label.format_version;
  block.field_bytes = label_field_bytes;
  block.sequence = sequence;
  std::memcpy(block.store_uuid, label.store_uuid.data(), sizeof(block.store_uuid));
  block.compat = label.compat;
  block.ro_compat = label.ro_compat;
  block.incompat = label.incompat;
  block.log_bytes = label.log_bytes;
  block.segment_bytes = label.segment_bytes;
  block.container_bytes = label.container_bytes;
  block.block_bytes = block_bytes;
  block.created_unix_seconds = label.created_unix_seconds;
  block.made_by = label.made_by;
  block.opened_by = label.opened_by;
  if (!label.keys.empty()) block.compat |= compat_label_keys;
  encode_keys(label, &block);
  block.crc = crc_of(block);
  return block;
}

Label decode(const LabelBlock& block) {
  Label label;
  std::memcpy(label.store_uuid.data(), block.store_uuid, sizeof(block.store_uuid));
  label.compat = block.compat;
  label.ro_compat = block.ro_compat;
  label.incompat = block.incompat;
  label.log_bytes = block.log_bytes;
  label.segment_bytes = block.segment_bytes;
  label.container_bytes = block.container_bytes;
  label.created_unix_seconds = block.created_unix_seconds;
  label.made_by = block.made_by;
  label.opened_by = block.opened_by;
  label.format_version = block.format_version;
  label.sequence = block.sequence;
  label.keys = decode_keys(block);
  return label;
}

// The label's file for writing, made where there is none.
Result<std::unique_ptr<File>> open_for_writing(Disk& disk) {
  Result<bool> there = disk.exists(label_path);
  if (!there.ok()) return there.status();
  return disk.open(label_path, *there ? OpenMode::read_write : OpenMode::create_new);
}

}  // namespace

std::string release_name(uint32_t number) {
  if (number == 0) return "before 0.1";
  return std::to_string(number >> 16) + "." + std::to_string(number & 0xffff);
}

Status write_label(Disk& disk, const Label& label) {
  if (Status s = check_keys(label_name(disk), label); !s.ok()) return s;
  Result<std::unique_ptr<File>> file = open_for_writing(disk);
  if (!file.ok()) return file.status();
  Copy copies[label_copies];
  if ((*file)->size_bytes() > 0)
    if (Status s = read_copies(**file, copies); !s.ok()) return s;
  const std::optional<unsigned> best = newest(copies);
  BlockMemory memory(block_bytes);
  const LabelBlock block = encode(label, best ? copies[*best].block->sequence + 1 : 1);
  std::memcpy(memory.data(), &block, sizeof(block));

  // The copy to go by is written last: until the other one is durable, it is the only good one.
  const unsigned last = best.value_or(1);
  for (unsigned index : {1 - last, last}) {
    if (Status s = (*file)->write(index * block_bytes, memory.span()); !s.ok()) return s;
    if (Status s = (*file)->flush(); !s.ok()) return s;
  }
  return disk.sync_dir("");
}

Result<Label> read_label(Disk& disk, bool* repair_needed) {
  const std::string name = label_name(disk);
  Result<bool> there = disk.exists(label_path);
  if (!there.ok()) return there.status();
  if (!*there) return Status(ENOENT, name + ": there is no such file, so this is not a store");
  Result<std::unique_ptr<File>> file = disk.open(label_path, OpenMode::read_only);
  if (!file.ok()) return file.status();

  Copy copies[label_copies];
  if (Status s = read_copies(**file, copies); !s.ok()) return s;
  const std::optional<unsigned> best = newest(copies);
  if (!best) {
    return Status(EIO, name + ": both copies are damaged: the first " + copies[0].fault +
                           ", the second " + copies[1].fault +
                           "; if mkfs was interrupted here, remove the file and repeat it");
  }
  const LabelBlock& block = *copies[*best].block;
  const std::optional<LabelBlock>& other = copies[1 - *best].block;
  if (Status s = check_understood(name, block); !s.ok()) return s;
  if (other && std::memcmp(block.store_uuid, other->store_uuid, sizeof(block.store_uuid)) != 0) {
    return Status(EIO, name + ": the two copies name two different stores");
  }
  if (Status s = check_geometry(name, block); !s.ok()) return s;
  if (repair_needed) *repair_needed = !other || std::memcmp(&block, &*other, sizeof(block)) != 0;
  return decode(block);
}

Status check_writable(Disk& disk, const Label& label) {
  if (uint64_t unknown = label.ro_compat & ~known_ro_compat) {
    return Status(ENOTSUP, label_name(disk) +
                               ": this program may only read the store: it does not know its "
                               "features with the ro_compat bits " + hex(unknown) +
                               "; open it read-only, or use the release that wrote it");
  }
  return Status();
}

}  // namespace tablestore
