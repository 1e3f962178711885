#include "test/tablestore/sim/damage_places.h"

#include <map>
#include <set>

namespace tablestore::sim {

namespace {

using Blocks = std::set<uint32_t>;
using Places = std::map<std::string, Blocks>;  // by file

// The first, the last and one between of each row of blocks.
void add_some(const Blocks& blocks, Blocks* some) {
  for (auto first = blocks.begin(); first != blocks.end();) {
    auto end = std::next(first);
    while (end != blocks.end() && *end == *std::prev(end) + 1) ++end;
    const uint32_t last = *std::prev(end);
    some->insert({*first, (*first + last) / 2, last});
    first = end;
  }
}

class Finder {
 public:
  Finder(const DiskImage& older, const DiskImage& disk, const LiveLog& log,
         const EngineOptions& options)
      : older_(older), disk_(disk), log_(log), options_(options) {}

  Places find(bool all) {
    for (const auto& [path, id] : disk_.names()) {
      if (disk_.inode(id).directory || path.starts_with("log/")) continue;
      const FileView& view = disk_.inode(id).durable;
      Blocks held;
      for (uint32_t b = 0; b < view.extents.size(); ++b) {
        const bool is_zeros = path.starts_with("containers/") && !view.pages.contains(b);
        if (!is_zeros && (all || is_new(path, b))) held.insert(b);
      }
      add_some(held, &places_[path]);
    }
    size_t first = 0;
    if (!all)
      while (first + 1 < log_.groups.size() && !is_new(log_.groups[first + 1])) ++first;
    for (size_t i = first; i < log_.groups.size(); ++i) add_group(log_.groups[i]);
    if (!log_.groups.empty()) add_log(log_.groups.back().end, 2 * block_bytes);
    return std::move(places_);
  }

 private:
  bool is_new(const std::string& path, uint32_t block) const {
    const DiskImage::InodeId before = older_.lookup(path);
    return !before || older_.inode(before).durable.pages.find(block) !=
                          disk_.inode(disk_.lookup(path)).durable.pages.find(block);
  }
  std::pair<std::string, uint32_t> in_log(uint64_t position) const {
    const uint64_t at = position % options_.log_bytes;
    return {"log/" + std::to_string(at / options_.segment_bytes),
            uint32_t(at % options_.segment_bytes / block_bytes)};
  }
  bool is_new(const LiveLog::Group& group) const {
    const auto [path, block] = in_log(group.begin);
    return is_new(path, block);
  }
  void add_log(uint64_t begin, uint64_t bytes) {
    const uint64_t last = begin + bytes - block_bytes;
    for (const uint64_t at : {begin, (begin + last) / 2 / block_bytes * block_bytes, last}) {
      const auto [path, block] = in_log(at);
      places_[path].insert(block);
    }
  }
  void add_group(const LiveLog::Group& group) {
    add_log(group.begin, group.end - group.begin);
    std::map<uint32_t, Blocks> written;
    for (const auto& [container, block] : group.written) written[container].insert(block);
    for (const auto& [path, id] : disk_.names()) {
      if (!path.starts_with("containers/") || disk_.inode(id).directory) continue;
      const uint32_t number = uint32_t(std::stoul(path.substr(path.rfind('/') + 1)));
      if (const auto found = written.find(number); found != written.end())
        add_some(found->second, &places_[path]);
    }
  }

  const DiskImage& older_;
  const DiskImage& disk_;
  const LiveLog& log_;
  const EngineOptions& options_;
  Places places_;
};

}  // namespace

std::vector<BlockDamage> damages_of(const DiskImage& older, const DiskImage& disk,
                                    const LiveLog& log, const EngineOptions& options, bool all) {
  std::vector<BlockDamage> damages;
  for (const auto& [path, blocks] : Finder(older, disk, log, options).find(all))
    for (const uint32_t block : blocks)
      for (const auto kind : block_damage_kinds) damages.push_back({kind, path, block});
  return damages;
}

}  // namespace tablestore::sim
