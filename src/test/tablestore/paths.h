// Directories as both disks in memory have them: paths are the keys of a sorted map, with '/'
// between names and none in front; what a key maps to is the disk's business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tablestore {

inline std::string parent_path(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// Everything is below "".
inline bool is_below(std::string_view path, std::string_view dir) {
  return dir.empty() ? !path.empty()
                     : path.size() > dir.size() && path.starts_with(dir) && path[dir.size()] == '/';
}

// The names in `dir`, ascending.
template <typename Map>
std::vector<std::string> names_in(const Map& paths, const std::string& dir) {
  std::vector<std::string> names;
  for (auto it = paths.upper_bound(dir); it != paths.end(); ++it) {
    const std::string& path = it->first;
    if (!std::string_view(path).starts_with(dir)) break;
    if (is_below(path, dir) && parent_path(path) == dir)
      names.push_back(path.substr(dir.empty() ? 0 : dir.size() + 1));
  }
  return names;
}

// `dir` itself, where it is there, and the paths of all that is below it; a directory before what
// it holds.
template <typename Map>
std::vector<std::string> tree_of(const Map& paths, const std::string& dir) {
  std::vector<std::string> tree;
  for (auto it = paths.lower_bound(dir); it != paths.end(); ++it) {
    if (!std::string_view(it->first).starts_with(dir)) break;
    if (it->first == dir || is_below(it->first, dir)) tree.push_back(it->first);
  }
  return tree;
}

}  // namespace tablestore
