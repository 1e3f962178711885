#include "os/tablestore/engine/table/engine_rows.h"

namespace tablestore::engine_rows {

std::string log_start() { return std::string("\0log_start", 10); }
std::string applied() { return std::string("\0applied", 8); }

std::string allocation(uint32_t container) {
  std::string key(allocation_prefix);
  for (int shift = 24; shift >= 0; shift -= 8) key.push_back(char(container >> shift));
  return key;
}

void write_allocation(RowWriter& writer, const Allocator::DurableState& state) {
  const std::string key = allocation(state.container);
  if (state.bitmap.blocks() == 0) {
    writer.erase(Family::super, key);
    return;
  }
  const auto& words = state.bitmap.words();
  std::string value(1, char(state.slot_class));
  value.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(words[0]));
  writer.put(Family::super, key, value);
}

}  // namespace tablestore::engine_rows
