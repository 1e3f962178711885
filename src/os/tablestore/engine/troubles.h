// What an operator has to know and to do something about, for as long as it is so: an OSD shows
// these in `ceph health detail`.
#pragma once

#include <map>
#include <mutex>
#include <string>

namespace tablestore {

// Those that a store tells in every life, until they are settled.
inline constexpr const char* log_loss = "LOG_LOSS";
inline constexpr const char* allocation_unknown = "ALLOCATION_UNKNOWN";

// Thread-safe.
class Troubles {
 public:
  // `name`: TABLE_DAMAGED and the like, as the documentation lists them. `line`: what it is, where,
  // and what to do. Replaces what was said under that name before.
  void raise(const std::string& name, const std::string& line) {
    std::lock_guard lock(mutex_);
    lines_[name] = line;
  }
  void clear(const std::string& name) {
    std::lock_guard lock(mutex_);
    lines_.erase(name);
  }
  std::map<std::string, std::string> all() const {
    std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> lines_;
};

}  // namespace tablestore
