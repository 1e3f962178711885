#include "os/tablestore/engine/table/engine_rows.h"

#include <cstring>

namespace tablestore::engine_rows {

std::string log_start() { return std::string("\0log_start", 10); }
std::string applied() { return std::string("\0applied", 8); }

std::string ownership_unknown() { return std::string("\0ownership", 10); }

std::string trouble(std::string_view name) {
  return std::string("\0trouble ", 9) + std::string(name);
}

std::string encode_applied(uint64_t lsn) {
  return {reinterpret_cast<const char*>(&lsn), sizeof(lsn)};
}

void write_with_copy(RowWriter& writer, std::string_view key, std::string_view value) {
  writer.put(Family::super, key, value);
  writer.put(of_copies, key, value);
}

bool is_ours(Family family, std::string_view key) {
  return (family == Family::super || family == of_copies) && key.starts_with('\0');
}

std::optional<uint64_t> decode_applied(std::string_view value) {
  uint64_t lsn;
  if (value.size() != sizeof(lsn)) return std::nullopt;
  std::memcpy(&lsn, value.data(), sizeof(lsn));
  return lsn;
}

namespace {

enum class Kind : uint8_t { none_owned, all_owned, bits };

struct __attribute__((packed)) AllocationHead {
  uint64_t as_of;
  uint16_t blocks;
  Kind kind;
};
static_assert(sizeof(AllocationHead) == 11);
static_assert(BlockBitmap::chunk_blocks <= UINT16_MAX);

void append_number(std::string* key, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) key->push_back(char(number >> shift));
}

uint32_t number_at(std::string_view key, size_t at) {
  uint32_t number = 0;
  for (char c : key.substr(at, 4)) number = number << 8 | uint8_t(c);
  return number;
}

std::string_view bytes_of(const std::vector<uint64_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(words[0])};
}

// `bytes` are whole words.
std::vector<uint64_t> words_of(std::string_view bytes) {
  std::vector<uint64_t> words(bytes.size() / sizeof(uint64_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

}  // namespace

std::string whole_allocation(uint32_t container) {
  std::string key(allocation_prefix);
  append_number(&key, container);
  return key;
}

std::string allocation(uint32_t container, uint32_t chunk) {
  std::string key = whole_allocation(container);
  append_number(&key, chunk);
  return key;
}

std::optional<AllocationKey> decode_allocation_key(std::string_view key) {
  if (!key.starts_with(allocation_prefix)) return std::nullopt;
  const std::string_view numbers = key.substr(allocation_prefix.size());
  if (numbers.size() == 4) return AllocationKey{number_at(numbers, 0), std::nullopt};
  // A block number has 32 bits.
  if (numbers.size() != 8 || number_at(numbers, 4) > UINT32_MAX / BlockBitmap::chunk_blocks)
    return std::nullopt;
  return AllocationKey{number_at(numbers, 0), number_at(numbers, 4)};
}

void write_allocation(RowWriter& writer, const Allocator::OwnedChunk& chunk, uint64_t as_of) {
  const uint32_t owned = chunk.owned.count();
  const Kind kind = owned == 0                      ? Kind::none_owned
                    : owned == chunk.owned.blocks() ? Kind::all_owned
                                                    : Kind::bits;
  const AllocationHead head{as_of, uint16_t(chunk.owned.blocks()), kind};
  std::string value(reinterpret_cast<const char*>(&head), sizeof(head));
  if (kind == Kind::bits) value += bytes_of(chunk.owned.words());
  writer.put(Family::super, allocation(chunk.container, chunk.chunk), value);
}

std::optional<AllocationRow> decode_allocation(std::string_view value) {
  AllocationHead head;
  if (value.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, value.data(), sizeof(head));
  if (head.blocks == 0 || head.blocks > BlockBitmap::chunk_blocks) return std::nullopt;
  const std::string_view bits = value.substr(sizeof(head));
  AllocationRow row{head.as_of, BlockBitmap(head.blocks)};
  if (head.kind == Kind::bits) {
    if (bits.size() != (head.blocks + 63u) / 64 * sizeof(uint64_t)) return std::nullopt;
    row.owned = BlockBitmap(head.blocks, words_of(bits));
    const uint32_t owned = row.owned.count();
    if (owned == 0 || owned == head.blocks || bytes_of(row.owned.words()) != bits)
      return std::nullopt;
    return row;
  }
  if (head.kind > Kind::bits || !bits.empty()) return std::nullopt;
  if (head.kind == Kind::all_owned) row.owned.set(0, head.blocks);
  return row;
}

std::optional<BlockBitmap> decode_whole_allocation(std::string_view value) {
  if (value.size() % sizeof(uint64_t) != 1 || uint8_t(value[0]) >= slot_classes)
    return std::nullopt;
  const std::string_view words = value.substr(1);
  // One without blocks has no row, and a block number has 32 bits.
  if (words.empty() || words.size() > UINT32_MAX / 8) return std::nullopt;
  return BlockBitmap(uint32_t(words.size()) * 8, words_of(words));
}

uint32_t erase_allocation(RowWriter& writer, const Allocator::GoneRows& gone) {
  writer.erase(Family::super, whole_allocation(gone.container));
  for (uint32_t chunk = 0; chunk < gone.chunks; ++chunk)
    writer.erase(Family::super, allocation(gone.container, chunk));
  return 1 + gone.chunks;
}

}  // namespace tablestore::engine_rows
