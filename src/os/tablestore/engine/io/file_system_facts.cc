#include "os/tablestore/engine/io/file_system_facts.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

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

// jbd2 shows each journal: one in the file system as its device's name, "-", and its inode.
bool has_journal_elsewhere(const std::string& root, const std::string& device) {
  std::error_code none;
  bool shows_any = false;
  std::filesystem::directory_iterator journal(root + "/proc/fs/jbd2", none), end;
  for (; !none && journal != end; journal.increment(none)) {
    shows_any = true;
    if (journal->path().filename().string().starts_with(device + "-")) return false;
  }
  return shows_any;
}

// True where it is not known.
bool is_kernel_since(const std::string& root, unsigned wanted_major, unsigned wanted_minor) {
  std::ifstream in(root + "/proc/sys/kernel/osrelease");
  unsigned major = 0, minor = 0;
  char dot = 0;
  if (!(in >> major >> dot >> minor)) return true;
  return std::pair(major, minor) >= std::pair(wanted_major, wanted_minor);
}

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
    facts.has_journal_elsewhere = !has_no_journal(facts) &&
                                  has_journal_elsewhere(root, in_sysfs.filename().string());
    facts.flushes_before_journal = is_kernel_since(root, 6, 15);
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
                        on + " without a journal: a power cut may lose what was acknowledged, and "
                             "names, and take space in use for free unless e2fsck runs before it "
                             "is mounted; stop the OSD, unmount it, and give it a journal with "
                             "'tune2fs -O has_journal DEVICE'"});
  if (facts.type == "ext4" && facts.options.contains("data=writeback"))
    concerns.push_back({unsafe,
                        on + " mounted with data=writeback, which uses freed space anew before it "
                             "has noted that it is free: a power cut while files are moved or "
                             "replaced may put other bytes in their place; mount it with "
                             "data=ordered, which is as fast for this store"});
  if (facts.has_journal_elsewhere && !facts.flushes_before_journal)
    concerns.push_back({unsafe,
                        on + " with a journal on another device, for which Linux before 6.15 "
                             "leaves out flushes, unless it has the commit aac45075f6d7: a power "
                             "cut may lose what was acknowledged; make the journal a part of the "
                             "file system, or use a newer kernel"});
  if (facts.type == "overlay" && facts.options.contains("volatile"))
    concerns.push_back({unsafe,
                        on + " mounted with volatile, so that nothing is flushed: a crash of the "
                             "machine loses what was acknowledged; put the store on a volume",
                        true});
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
