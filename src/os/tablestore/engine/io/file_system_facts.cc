#include "os/tablestore/engine/io/file_system_facts.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tablestore {
namespace {

constexpr const char* unsafe = "FS_UNSAFE";

std::set<std::string> split_at_commas(const std::string& text) {
  std::set<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.insert(word);
  return words;
}

// A line of proc(5), "/proc/pid/mountinfo": the device is the third word; the type, the source and
// the options of the file system come behind a "-".
void read_mountinfo(std::istream& mountinfo, const std::string& device, FileSystemFacts* facts) {
  for (std::string line; std::getline(mountinfo, line);) {
    std::istringstream words(line);
    std::string id, parent, number, word, type, source, options;
    words >> id >> parent >> number;
    if (number != device) continue;
    while (words >> word && word != "-") {
    }
    if (!(words >> type >> source >> options)) continue;
    facts->type = type;
    facts->options = split_at_commas(options);
    return;
  }
}

// ext4's own list has all options, one in a line, also those that it is mounted with by default.
void read_ext4_options(std::istream& list, FileSystemFacts* facts) {
  std::set<std::string> options;
  for (std::string line; std::getline(list, line);) options.insert(line);
  if (options.empty()) return;
  facts->options.merge(options);
  facts->has_all_options = true;
}

bool has_volatile_cache(const std::filesystem::path& device) {
  // A partition has the queue of its disk.
  for (const char* queue : {"queue", "../queue"}) {
    std::ifstream in(device / queue / "write_cache");
    std::string cache;
    if (std::getline(in, cache)) return cache != "write through";
  }
  return true;
}

bool is_ext(const FileSystemFacts& facts) { return facts.type.starts_with("ext"); }

bool has_no_barriers(const FileSystemFacts& facts) {
  return facts.options.contains("nobarrier") || facts.options.contains("barrier=0");
}

bool has_no_journal(const FileSystemFacts& facts) {
  return is_ext(facts) && facts.has_all_options &&
         std::ranges::none_of(facts.options,
                              [](const std::string& o) { return o.starts_with("data="); });
}

}  // namespace

FileSystemFacts facts_of(dev_t device, const std::string& root) {
  FileSystemFacts facts;
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::ifstream mountinfo(root + "/proc/self/mountinfo");
  read_mountinfo(mountinfo, number, &facts);
  std::error_code missing;
  const auto in_sysfs = std::filesystem::canonical(root + "/sys/dev/block/" + number, missing);
  if (missing) return facts;
  facts.has_volatile_cache = has_volatile_cache(in_sysfs);
  if (is_ext(facts)) {
    std::ifstream list(root + "/proc/fs/ext4/" + in_sysfs.filename().string() + "/options");
    read_ext4_options(list, &facts);
  }
  return facts;
}

std::vector<Concern> concerns_about(const FileSystemFacts& facts, const std::string& directory) {
  std::vector<Concern> concerns;
  const std::string on = directory + " is on " + facts.type;
  if (facts.type == "ext2" || facts.type == "ext3")
    concerns.push_back({unsafe,
                        on + ", which cannot give files space ahead of use: make it a new ext4 or "
                             "XFS",
                        true});
  if (has_no_barriers(facts) && facts.has_volatile_cache)
    concerns.push_back({unsafe,
                        on + " mounted with nobarrier, so that a flush does not empty the cache of "
                             "its disk: a power cut loses what was acknowledged; remount it with "
                             "barrier",
                        true});
  if (facts.type == "ext4" && has_no_journal(facts))
    concerns.push_back({unsafe,
                        on + " without a journal: after a power cut names may be lost, and space "
                             "in use taken for free unless e2fsck runs before it is mounted; stop "
                             "the OSD, unmount it, and give it a journal with 'tune2fs -O "
                             "has_journal DEVICE'"});
  return concerns;
}

Concern not_direct(const FileSystemFacts& facts, const std::string& directory) {
  std::string why = "this file system";
  std::string what = "move the store to ext4 or XFS";
  if (facts.options.contains("data=journal")) {
    why = "data=journal";
    what = "mount it with data=ordered";
  } else if (is_ext(facts) || facts.type == "xfs") {
    why = "encryption, or data journalling of this directory,";
    what = "move the store to a directory without";
  }
  return {not_direct_io, directory + ": " + why + " allows no direct I/O that overwrites in " +
                               "place, so that each commit flushes every file that it has written, "
                               "which is safe but slow: " + what};
}

}  // namespace tablestore
