#include "os/tablestore/engine/container/container_files.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <optional>

#include "os/tablestore/engine/container/parallel.h"
#include "os/tablestore/engine/format/extent.h"
#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

constexpr const char* root = "containers";

std::string class_dir(unsigned slot_class) {
  const std::string digits = std::to_string(slot_class);
  return std::string(root) + "/" + (digits.size() < 2 ? "0" : "") + digits;
}

// Errors that the kernel has before it changes a directory.
bool changed_nothing(const Status& s) {
  return is_lack(s.code()) || s.code() == EPERM || s.code() == EACCES || s.code() == EROFS;
}

std::optional<uint32_t> parse_number(const std::string& name) {
  uint32_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  // One name per number, and the highest number leaves room for a next one.
  if (!whole || number == UINT32_MAX || std::to_string(number) != name) return std::nullopt;
  return number;
}

}  // namespace

std::string ContainerFiles::path_of(uint32_t container, unsigned slot_class) {
  return class_dir(slot_class) + "/" + std::to_string(container);
}

ContainerFiles::ContainerFiles(Disk& disk, uint64_t container_bytes)
    : disk_(disk), container_bytes_(container_bytes) {
  require(container_bytes > 0 && container_bytes % (largest_slot_blocks * block_bytes) == 0,
          "a container holds whole slots of the largest class");
  require(container_bytes / block_bytes < UINT32_MAX, "a block number has 32 bits");
}

Status ContainerFiles::format(Disk& disk) {
  if (Status s = disk.make_dir(root); !s.ok()) return s;
  for (unsigned slot_class = 0; slot_class < slot_classes; ++slot_class) {
    if (Status s = disk.make_dir(class_dir(slot_class)); !s.ok()) return s;
    if (Status s = disk.sync_dir(class_dir(slot_class)); !s.ok()) return s;
  }
  return disk.sync_dir(root);
}

struct ContainerFiles::Opening {
  uint32_t container;
  unsigned slot_class;
  std::unique_ptr<File> file;  // null: it is incomplete
  BlockBitmap unwritten;
  BlockBitmap holes;
};

// All are open, and so locked, before they are flushed: until then, requests of a process that was
// killed may be in flight.
Result<std::vector<ContainerFiles::Found>> ContainerFiles::open(unsigned threads) {
  std::vector<Opening> all;
  Status s;
  for (unsigned slot_class = 0; slot_class < slot_classes && s.ok(); ++slot_class)
    s = list_class(slot_class, &all);
  if (s.ok()) s = for_each_in_threads(threads, all, [this](Opening& o) { return open_one(o); });
  for (const Opening& o : all)
    if (!o.file) incomplete_.emplace_back(o.container, o.slot_class);
  std::erase_if(all, [](const Opening& o) { return !o.file; });
  if (s.ok()) s = flush_all(all);
  if (s.ok())
    s = for_each_in_threads(threads, all, [this](Opening& o) {
      o.holes = BlockBitmap(blocks());
      auto unwritten = unwritten_blocks(*o.file, &o.holes);
      if (unwritten.ok()) o.unwritten = unwritten.take();
      return unwritten.status();
    });
  std::vector<Found> found;
  for (Opening& o : all) {
    if (s.ok()) s = add(o);
    found.push_back({o.container, o.slot_class, std::move(o.unwritten), std::move(o.holes)});
  }
  if (s.ok()) return found;
  close();
  return s;
}

Result<std::unique_ptr<File>> ContainerFiles::open_watched(const std::string& path,
                                                          OpenMode mode) {
  auto open = [&] { return disk_.open(path, mode); };
  auto file = mode == OpenMode::create_new ? open() : read_repeatedly(open);
  if (!file.ok()) return file;
  if (auto seen = (*file)->watch(false); !seen.ok()) return seen.status();
  (*file)->let_park();
  return file;
}

Status ContainerFiles::list_class(unsigned slot_class, std::vector<Opening>* found) {
  auto names = disk_.list(class_dir(slot_class));
  if (!names.ok()) return names.status();
  for (const std::string& name : *names)
    if (const auto container = parse_number(name))  // else not ours, and nothing of ours needs it
      found->push_back({*container, slot_class, nullptr, BlockBitmap(0), BlockBitmap(0)});
  return {};
}

Status ContainerFiles::open_one(Opening& found) {
  const std::string path = path_of(found.container, found.slot_class);
  auto file = open_watched(path, OpenMode::read_write);
  if (!file.ok()) return file.status();
  const uint64_t size = (*file)->size_bytes();
  if (size > container_bytes_) {
    return Status(EIO, path + " has " + std::to_string(size) + " bytes, expected " +
                           std::to_string(container_bytes_));
  }
  if (size == container_bytes_) found.file = file.take();
  return {};
}

// One by itself in any case: XFS empties the disk's cache only where its journal has something to
// commit, and what was written over needs no journal.
Status ContainerFiles::flush_all(std::vector<Opening>& found) {
  const auto at_once = disk_.flush_all();
  if (!at_once.ok()) return at_once.status();
  for (const Opening& o : found) {
    const bool is_first = &o == &found.front();
    if (*at_once && !is_first && !o.file->needs_own_flush()) continue;
    if (Status s = o.file->flush(); !s.ok()) return s;
  }
  return {};
}

Status ContainerFiles::add(Opening& found) {
  std::lock_guard lock(mutex_);
  if (files_.try_emplace(found.container, Open{std::move(found.file), found.slot_class}).second)
    return {};
  return Status(EIO, path_of(found.container, found.slot_class) +
                         ": another class has a container of this number; one of the two "
                         "files was put there by hand");
}

Result<BlockBitmap> ContainerFiles::unwritten_blocks(File& file, BlockBitmap* holes) const {
  std::vector<ByteRange> hole_ranges;
  auto ranges = file.unwritten(holes ? &hole_ranges : nullptr);
  if (!ranges.ok()) return ranges.status();
  const auto set_all = [this](const std::vector<ByteRange>& bytes, BlockBitmap* bitmap) {
    for (const ByteRange& range : bytes) {
      const uint64_t first = std::min<uint64_t>(range.offset / block_bytes, blocks());
      const uint64_t end = std::min<uint64_t>(
          (range.offset + range.length + block_bytes - 1) / block_bytes, blocks());
      bitmap->set(first, end - first);
    }
  };
  BlockBitmap bitmap(blocks());
  set_all(*ranges, &bitmap);
  if (holes) set_all(hole_ranges, holes);
  return bitmap;
}

std::vector<uint32_t> ContainerFiles::incomplete() const {
  std::vector<uint32_t> containers;
  for (const auto& [container, slot_class] : incomplete_) containers.push_back(container);
  return containers;
}

bool ContainerFiles::is_incomplete(uint32_t container) const {
  return std::ranges::count(incomplete_, container, &std::pair<uint32_t, unsigned>::first) > 0;
}

Result<ContainerFiles::Found> ContainerFiles::complete(uint32_t container) {
  const auto it = std::ranges::find(incomplete_, container, &std::pair<uint32_t, unsigned>::first);
  require(it != incomplete_.end(), "only what is incomplete is completed");
  const unsigned slot_class = it->second;
  auto file = open_watched(path_of(container, slot_class), OpenMode::read_write);
  if (!file.ok()) return file.status();
  // No more space than that takes: this is a time when there may be none.
  if (Status s = (*file)->allocate(container_bytes_ - block_bytes, block_bytes); !s.ok()) return s;
  if (Status s = flush(**file); !s.ok()) return s;
  BlockBitmap holes(blocks());
  auto unwritten = unwritten_blocks(**file, &holes);
  if (!unwritten.ok()) return unwritten.status();
  Opening opened{container, slot_class, file.take(), unwritten.take(), std::move(holes)};
  if (Status s = add(opened); !s.ok()) return s;
  incomplete_.erase(it);
  return Found{container, slot_class, std::move(opened.unwritten), std::move(opened.holes)};
}

Status ContainerFiles::remove_incomplete() {
  while (!incomplete_.empty()) {
    if (Status s = remove_last_incomplete(); !s.ok()) return s;
  }
  return {};
}

Status ContainerFiles::remove_last_incomplete() {
  const auto [container, slot_class] = incomplete_.back();
  if (Status s = disk_.remove(path_of(container, slot_class)); !s.ok()) return s;
  incomplete_.pop_back();
  return sync_class(slot_class);
}

void ContainerFiles::close() {
  std::lock_guard visit(visit_mutex_);
  std::lock_guard lock(mutex_);
  files_.clear();
  incomplete_.clear();
}

Status ContainerFiles::flushed(const Status& s) {
  if (s.ok()) return s;
  const Status failed(EIO, s.what());
  flush_failed_ = true;
  failed_flush_(failed);
  return failed;
}

Status ContainerFiles::sync_class(unsigned slot_class) {
  const Status s = disk_.sync_dir(class_dir(slot_class));
  // For want of a descriptor nothing was flushed, and nothing is lost.
  return s.code() == EMFILE || s.code() == ENFILE ? s : flushed(s);
}

Status ContainerFiles::fill_new(File& file, Space space) {
  const Status s = space == Space::written ? file.write_zeroes(0, container_bytes_)
                                           : file.allocate(0, container_bytes_);
  if (!s.ok()) return s;
  return flush(file);
}

Result<BlockBitmap> ContainerFiles::create(uint32_t container, unsigned slot_class,
                                           Space space) {
  const std::string path = path_of(container, slot_class);
  auto file = open_watched(path, OpenMode::create_new);
  BlockBitmap unwritten(0);
  const Status status =
      file.ok() ? make_new(**file, slot_class, space, &unwritten) : file.status();
  if (!status.ok()) {
    if (file.ok()) *file = nullptr;
    if (flush_failed_) return status;
    // It may have a name, also where it could not be opened.
    incomplete_.emplace_back(container, slot_class);
    if (Status s = remove_incomplete(); !s.ok() && flush_failed_) return s;
    return status;
  }
  std::lock_guard lock(mutex_);
  const bool added = files_.try_emplace(container, Open{file.take(), slot_class}).second;
  require(added, "a container's number is new");
  return unwritten;
}

Status ContainerFiles::make_new(File& file, unsigned slot_class, Space space,
                                BlockBitmap* unwritten) {
  if (Status s = fill_new(file, space); !s.ok()) return s;
  if (Status s = sync_class(slot_class); !s.ok()) return s;
  auto found = unwritten_blocks(file);
  if (!found.ok()) return found.status();
  *unwritten = found.take();
  return {};
}

unsigned ContainerFiles::close_one(uint32_t container) {
  std::lock_guard visit(visit_mutex_);
  Open closing;
  {
    std::lock_guard lock(mutex_);
    auto it = files_.find(container);
    require(it != files_.end(), "a container that is closed is open");
    closing = std::move(it->second);
    files_.erase(it);
  }
  return closing.slot_class;
}

Status ContainerFiles::remove(uint32_t container) {
  incomplete_.emplace_back(container, close_one(container));
  return remove_last_incomplete();
}

// Closed meanwhile, so that the file knows its new name and messages tell it.
Status ContainerFiles::rename(uint32_t from, uint32_t to, unsigned to_class) {
  require(!exists(to), "a container gets a new number");
  const unsigned from_class = close_one(from);
  const std::string path = path_of(to, to_class);
  const Status renamed = disk_.rename(path_of(from, from_class), path);
  if (!renamed.ok() && !changed_nothing(renamed)) return renamed;
  if (renamed.ok()) {
    Status s = sync_class(to_class);
    if (s.ok()) s = sync_class(from_class);
    if (!s.ok()) return s;
  }
  auto file = open_watched(renamed.ok() ? path : path_of(from, from_class),
                           OpenMode::read_write);
  if (!file.ok()) return file.status();
  // Whoever moved its blocks before is forgotten with the old file. Names that were synced have
  // committed that on ext4 (DiskState::is_ext4), a flush does so on XFS.
  if (!renamed.ok())
    if (const auto all = disk_.flush_all(); !all.ok()) return flushed(all.status());
  if (Status s = flush(**file); !s.ok()) return s;
  std::lock_guard lock(mutex_);
  if (renamed.ok()) {
    files_.try_emplace(to, Open{file.take(), to_class});
  } else {
    files_.try_emplace(from, Open{file.take(), from_class});
  }
  return renamed;
}

File& ContainerFiles::file(uint32_t container) const {
  std::shared_lock lock(mutex_);
  auto it = files_.find(container);
  require(it != files_.end(), "an extent lies in a container that exists");
  return *it->second.file;
}

Status ContainerFiles::visit_files(const std::function<Status(File&)>& visitor) const {
  std::vector<uint32_t> containers;
  {
    std::shared_lock lock(mutex_);
    for (const auto& [container, open] : files_) containers.push_back(container);
  }
  for (uint32_t container : containers) {
    std::lock_guard visit(visit_mutex_);
    if (!exists(container)) continue;
    if (Status s = visitor(file(container)); !s.ok()) return s;
  }
  return {};
}

bool ContainerFiles::exists(uint32_t container) const {
  std::shared_lock lock(mutex_);
  return files_.contains(container);
}

}  // namespace tablestore
