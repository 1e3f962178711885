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

std::string allocation(uint32_t container) {
  std::string key(allocation_prefix);
  for (int shift = 24; shift >= 0; shift -= 8) key.push_back(char(container >> shift));
  return key;
}

void write_allocation(RowWriter& writer, const Allocator::OwnedState& state) {
  const std::string key = allocation(state.container);
  if (state.bitmap.blocks() == 0) {
    writer.erase(Family::super, key);
    return;
  }
  const std::vector<uint64_t> words = state.bitmap.words();
  std::string value(1, char(state.slot_class));
  value.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(words[0]));
  writer.put(Family::super, key, value);
}

std::optional<uint32_t> decode_allocation_key(std::string_view key) {
  if (!key.starts_with(allocation_prefix) || key.size() != allocation_prefix.size() + 4)
    return std::nullopt;
  uint32_t container = 0;
  for (char c : key.substr(allocation_prefix.size())) container = container << 8 | uint8_t(c);
  return container;
}

std::optional<Allocator::OwnedState> decode_allocation(std::string_view key,
                                                         std::string_view value) {
  const auto container = decode_allocation_key(key);
  if (!container || value.size() % sizeof(uint64_t) != 1 || uint8_t(value[0]) >= slot_classes)
    return std::nullopt;
  const std::string_view words = value.substr(1);
  // One without blocks has no row, and a block number has 32 bits.
  if (words.empty() || words.size() > UINT32_MAX / 8) return std::nullopt;
  std::vector<uint64_t> aligned(words.size() / sizeof(uint64_t));
  std::memcpy(aligned.data(), words.data(), words.size());
  return Allocator::OwnedState{*container, uint8_t(value[0]),
                               BlockBitmap(uint32_t(words.size()) * 8, aligned)};
}

}  // namespace tablestore::engine_rows
