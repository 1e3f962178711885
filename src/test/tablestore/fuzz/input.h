// What the fuzz targets have in common. Each is one program: the main() of libFuzzer (`./run fuzz`)
// or of driver_main.cc, and one function that is given bytes. What it finds wrong ends the process,
// by require() or by a sanitizer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tablestore::fuzz {

// Takes an input from its front; zeros when it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t bytes)
      : rest_(reinterpret_cast<const char*>(data), bytes) {}

  bool empty() const { return rest_.empty(); }
  size_t size() const { return rest_.size(); }
  std::string_view rest() const { return rest_; }

  template <typename T>
  T number() {
    T value{};
    const std::string_view raw = view(sizeof(T));
    std::memcpy(&value, raw.data(), raw.size());
    return value;
  }
  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  // As many as there are.
  std::string_view view(size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

// A copy of just these bytes on the heap, so that a read behind them is noticed.
class Exactly {
 public:
  explicit Exactly(std::string_view bytes) : memory_(bytes.begin(), bytes.end()) {
    memory_.shrink_to_fit();
  }
  std::string_view view() const { return {memory_.data(), memory_.size()}; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(memory_)); }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(memory_)); }

 private:
  std::vector<char> memory_;
};

// Appends little-endian fields: what Input::number() takes apart, for the makers of seeds.
class Output {
 public:
  template <typename T>
  Output& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Output& raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace tablestore::fuzz
