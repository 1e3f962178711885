#include "test/tablestore/sim/frame/cases.h"

#include <algorithm>

namespace tablestore::sim {

Cases::Cases(const std::string& wanted) {
  for (size_t at = 0; at < wanted.size();) {
    const size_t end = std::min(wanted.find(',', at), wanted.size());
    wanted_.push_back(wanted.substr(at, end - at));
    at = end + 1;
  }
}

bool Cases::enter(size_t level, const std::string& word, const std::string& story) {
  words_.resize(level);
  stories_.resize(level);
  words_.push_back(word);
  stories_.push_back(story);
  return level >= wanted_.size() || wanted_[level].empty() || wanted_[level] == word;
}

uint64_t Cases::seed() const {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name()) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return hash;
}

std::string Cases::join(const std::vector<std::string>& parts, const char* between) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : between) + part;
  return all;
}

}  // namespace tablestore::sim
