#include "test/tablestore/sim/sim_disk.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "os/tablestore/engine/require.h"
#include "test/tablestore/paths.h"

namespace tablestore::sim {

namespace {

std::vector<PagePtr> to_pages(std::span<const iovec> iov) {
  std::vector<PagePtr> pages;
  for (const iovec& v : iov) {
    require(v.iov_len % block_bytes == 0, "direct I/O is in whole blocks");
    for (size_t at = 0; at < v.iov_len; at += block_bytes) {
      auto page = std::make_shared<Page>();
      std::memcpy(page->data(), static_cast<const std::byte*>(v.iov_base) + at, block_bytes);
      pages.push_back(std::move(page));
    }
  }
  return pages;
}

}  // namespace

class SimDisk::SimFile : public File {
 public:
  SimFile(SimDisk& disk, std::string path, DiskImage::InodeId id)
      : disk_(disk), path_(std::move(path)), id_(id) {}

  DiskImage::InodeId id() const { return id_; }
  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override {
    std::lock_guard lock(disk_.mutex_);
    return view().size;
  }
  Status read(uint64_t offset, std::span<std::byte> out) override {
    require(offset % block_bytes == 0 && out.size() % block_bytes == 0, "aligned");
    std::lock_guard lock(disk_.mutex_);
    const double error =
        std::max(disk_.faults_.read_error,
                 path_.starts_with("containers/") ? disk_.faults_.data_read_error : 0);
    if (disk_.fails_for_a_moment(error, &disk_.failed_reads_)) {
      ++disk_.refused_.reads;
      return Status(EIO, path_ + ": read fails");
    }
    if (!disk_.image_.readable(id_, offset, out.size()))
      return Status(EIO, path_ + ": a sector cannot be read");
    if (offset + out.size() > view().size) return Status(EIO, path_ + " ends before");
    if (disk_.image_.in_flight(id_, offset, out.size()) && !disk_.process_ended_)
      disk_.misuse_ = path_ + ": a read of blocks that are being written";
    const uint64_t length = disk_.readable(id_, out.size());
    for (size_t at = 0; at < length; at += block_bytes)
      std::memcpy(out.data() + at, view().page(uint32_t((offset + at) / block_bytes)),
                  std::min<uint64_t>(block_bytes, length - at));
    if (length == out.size()) return {};
    return Status(EIO, path_ + ": only a part could be read");
  }
  Status write(uint64_t offset, std::span<const std::byte> data) override {
    const iovec iov{const_cast<std::byte*>(data.data()), data.size()};
    PendingOp op{.kind = PendingOp::Kind::write, .offset = offset, .length = data.size()};
    op.pages = to_pages({&iov, 1});
    return run(std::move(op));
  }
  Status flush() override {
    std::lock_guard lock(disk_.mutex_);
    return disk_.flush(id_);
  }
  Status allocate(uint64_t offset, uint64_t length) override {
    return run({.kind = PendingOp::Kind::allocate, .offset = offset, .length = length});
  }
  Status write_zeroes(uint64_t offset, uint64_t length) override {
    return run({.kind = PendingOp::Kind::zeroes, .offset = offset, .length = length});
  }
  Status punch(uint64_t offset, uint64_t length) override {
    return run({.kind = PendingOp::Kind::punch, .offset = offset, .length = length});
  }
  Result<std::vector<ByteRange>> unwritten(std::vector<ByteRange>* holes) override {
    std::lock_guard lock(disk_.mutex_);
    const auto in_holes = ranges([](auto extent) { return extent == FileView::Extent::hole; });
    const std::vector<ByteRange> all{{0, view().size}};
    if (holes) *holes = disk_.image_.in_place() || in_holes.empty() ? in_holes : all;
    if (!disk_.image_.in_place()) return all;
    return ranges([](auto extent) { return extent != FileView::Extent::written; });
  }

 private:
  const FileView& view() const { return disk_.image_.inode(id_).current; }
  template <typename Is>
  std::vector<ByteRange> ranges(Is is) const {
    std::vector<ByteRange> ranges;
    for (uint64_t b = 0; b < view().extents.size(); ++b) {
      if (!is(view().extents[b])) continue;
      if (!ranges.empty() && ranges.back().offset + ranges.back().length == b * block_bytes)
        ranges.back().length += block_bytes;
      else
        ranges.push_back({b * block_bytes, block_bytes});
    }
    return ranges;
  }
  Status run(PendingOp op) {
    std::lock_guard lock(disk_.mutex_);
    auto submitted = disk_.submit(id_, std::move(op));
    if (!submitted.ok()) return submitted.status();
    return disk_.finish(id_, *submitted);
  }

  SimDisk& disk_;
  const std::string path_;
  const DiskImage::InodeId id_;
};

// Completes in the order of SimDisk::set_completions(): where none was set in any, chosen by the
// seed.
class SimDisk::SimQueue : public WriteQueue {
 public:
  explicit SimQueue(SimDisk& disk) : disk_(disk) {}

  void submit(std::span<WriteOp* const> ops, Begin begin) override {
    posted_.insert(posted_.end(), ops.begin(), ops.end());
    if (begin != Begin::at_next_reap) begin_posted();
  }
  size_t reap(bool wait) override {
    begin_posted();
    try {
      if (disk_.meanwhile_ && !disk_.process_ended_) disk_.meanwhile_();
    } catch (...) {
      forget_all();
      throw;
    }
    size_t reaped = 0;
    ++reaps_;
    while (!waiting_.empty()) {
      std::optional<size_t> index;
      {
        std::lock_guard lock(disk_.mutex_);
        if (reaped && disk_.completions_ != Completions::by_seed) break;
        if (disk_.completions_ == Completions::by_seed && (!wait || reaped) &&
            (disk_.random_() % 2 || disk_.happens(disk_.faults_.slow)))
          break;
        index = choose();
      }
      if (!index && (!wait || reaped)) break;
      complete(index.value_or(0));  // who waits has nothing else to wait for
      ++reaped;
    }
    return reaped;
  }
  void wake() override {}
  uint64_t requests() const override { return requests_; }

 private:
  struct Waiting {
    WriteOp* op;
    DiskImage::InodeId id;
    uint64_t change;
    int error;
    uint64_t not_before;  // in reaps_
  };
  void begin_posted() {
    for (WriteOp* op : std::exchange(posted_, {})) {
      auto& file = static_cast<SimFile&>(*op->file);
      PendingOp change{.kind = PendingOp::Kind::write, .offset = op->offset};
      change.pages = to_pages(op->iov);
      change.length = change.pages.size() * block_bytes;
      std::lock_guard lock(disk_.mutex_);
      auto submitted = disk_.submit(file.id(), std::move(change));
      const bool late = disk_.happens(disk_.faults_.late);
      disk_.late_writes_ += late;
      waiting_.push_back({op, file.id(), submitted.ok() ? *submitted : 0,
                          submitted.ok() ? 0 : submitted.status().code(),
                          late ? reaps_ + 2 + disk_.random_() % 40 : 0});
      ++requests_;
    }
  }
  // By the seed, any that is not late.
  std::optional<size_t> choose() {
    if (disk_.completions_ == Completions::in_order) return 0;
    if (disk_.completions_ == Completions::newest_first) return waiting_.size() - 1;
    std::vector<size_t> ready;
    for (size_t i = 0; i < waiting_.size(); ++i)
      if (waiting_[i].not_before <= reaps_) ready.push_back(i);
    if (ready.empty()) return std::nullopt;
    return ready[disk_.random_() % ready.size()];
  }
  void complete(size_t index) {
    Waiting w = waiting_[index];
    waiting_.erase(waiting_.begin() + ptrdiff_t(index));
    if (!w.error) {
      std::lock_guard lock(disk_.mutex_);
      w.error = disk_.finish(w.id, w.change).code();
    }
    try {
      w.op->done(*w.op, disk_.process_ended_ ? 0 : w.error);
    } catch (...) {
      w.op->done(*w.op, 0);
      forget_all();
      throw;
    }
  }
  // The engine dies, and is taken apart: as if nothing were in flight.
  void forget_all() {
    for (const Waiting& w : std::exchange(waiting_, {})) w.op->done(*w.op, 0);
    for (WriteOp* op : std::exchange(posted_, {})) op->done(*op, 0);
  }

  SimDisk& disk_;
  std::vector<WriteOp*> posted_;
  std::vector<Waiting> waiting_;
  uint64_t reaps_ = 0;
  uint64_t requests_ = 0;
};

SimDisk::SimDisk(DiskImage image, uint64_t capacity_bytes, uint64_t seed)
    : capacity_bytes_(capacity_bytes), image_(std::move(image)), random_(seed) {}
SimDisk::~SimDisk() = default;

void SimDisk::watch(std::function<void(const DiskImage&, const char*)> watcher) {
  std::lock_guard lock(mutex_);
  watcher_ = std::move(watcher);
}

Faults SimDisk::set_faults(const Faults& faults) {
  std::lock_guard lock(mutex_);
  return std::exchange(faults_, faults);
}

void SimDisk::set_completions(Completions order) {
  std::lock_guard lock(mutex_);
  completions_ = order;
}

void SimDisk::end_of_process() {
  std::lock_guard lock(mutex_);
  faults_ = {};
  watcher_ = nullptr;
  process_ended_ = true;
}

void SimDisk::set_other_bytes(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  other_bytes_ = bytes;
}

DiskImage SimDisk::image() const {
  std::lock_guard lock(mutex_);
  return image_;
}

void SimDisk::change(const std::function<void(DiskImage* image)>& work) {
  std::lock_guard lock(mutex_);
  work(&image_);
}

void SimDisk::io(const char* what) {
  ++ios_;
  if (watcher_) watcher_(image_, what);
}

void SimDisk::watch_calls(std::function<void(const std::string&)> watcher) {
  std::lock_guard lock(mutex_);
  call_watcher_ = std::move(watcher);
}

void SimDisk::meanwhile(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  meanwhile_ = std::move(work);
}

void SimDisk::tell(const char* what, DiskImage::InodeId id, uint64_t offset, uint64_t length) {
  if (!call_watcher_) return;
  std::string path = "#" + std::to_string(id);
  for (const auto& [name, inode] : image_.names())
    if (inode == id) path = name;
  call_watcher_(std::string(what) + " " + path + " " + std::to_string(offset / block_bytes) + "+" +
                std::to_string(length / block_bytes));
}

bool SimDisk::happens(double probability) {
  return probability > 0 && double(random_() >> 11) * 0x1p-53 < probability;
}

uint64_t SimDisk::readable(DiskImage::InodeId id, uint64_t length) {
  if (length == 0 || !happens(faults_.short_read)) return length;
  ++short_reads_;
  count_refused_read(id);
  return random_() % length;
}

void SimDisk::count_refused_read(DiskImage::InodeId id) {
  ++(new_table_files_.contains(id) ? refused_.writes : refused_.reads);
}

bool SimDisk::is_full() const {
  return image_.taken_bytes() + other_bytes_ + (64 << 10) > capacity_bytes_;
}

Status SimDisk::check_space(uint64_t more_blocks) {
  const uint64_t taken = image_.taken_bytes() + other_bytes_;
  if (taken + more_blocks * block_bytes <= capacity_bytes_) return {};
  ++no_spaces_;
  return Status(ENOSPC, "the simulated disk is full");
}

Result<uint64_t> SimDisk::submit(DiskImage::InodeId id, PendingOp op) {
  static constexpr const char* kinds[] = {"write", "zeroes", "allocate", "punch"};
  io(kinds[unsigned(op.kind)]);
  tell(kinds[unsigned(op.kind)], id, op.offset, op.length);
  if (image_.in_flight(id, op.offset, op.length) && !process_ended_)
    misuse_ = "two writes of the same blocks at the same time";
  if (op.kind != PendingOp::Kind::punch) {
    const FileView& view = image_.inode(id).current;
    uint64_t more = 0;
    for (uint64_t b = op.offset / block_bytes; b < (op.offset + op.length) / block_bytes; ++b)
      more += b >= view.extents.size() || view.extents[b] == FileView::Extent::hole;
    if (more)
      if (auto s = check_space(more); !s.ok()) return s;
  }
  return image_.submit(id, std::move(op));
}

Status SimDisk::finish(DiskImage::InodeId id, uint64_t op) {
  io("completion");
  const auto& pending = image_.inode(id).pending;
  const auto it = std::ranges::find(pending, op, &PendingOp::id);
  require(it != pending.end(), "a write that completes is pending");
  const auto [offset, length] = image_.range(id, op);
  tell("complete", id, offset, length);
  if (happens(faults_.write_error)) {
    ++refused_.writes;
    image_.fail(id, op);
    return Status(EIO, "write fails");
  }
  if (it->first_touch && happens(faults_.first_touch_error)) {
    ++refused_.writes;
    image_.fail(id, op);
    return Status(random_() % 2 ? ENOSPC : EIO, "the extent cannot be converted");
  }
  if (it->kind != PendingOp::Kind::write)
    image_.complete(id, op);
  else if (happens(faults_.lost_write))
    image_.lose(id, op);
  else if (happens(faults_.misdirected_write))
    misdirect(id, op, PendingOp(*it));
  else
    image_.complete(id, op);
  return {};
}

// Of `op`, the piece `write` lands elsewhere: in the same file half of the time.
void SimDisk::misdirect(DiskImage::InodeId id, uint64_t op, const PendingOp& write) {
  std::vector<DiskImage::InodeId> files = {id};
  if (random_() % 2)
    for (const auto& [path, other] : image_.names())
      if (!image_.inode(other).directory) files.push_back(other);
  const DiskImage::InodeId target = files[random_() % files.size()];
  image_.lose(id, op);
  const uint64_t blocks = write.pages.size(), most = image_.inode(target).current.extents.size();
  if (most <= blocks) return;
  const uint64_t first = random_() % (most - blocks);
  if (image_.inode(target).buffered) {
    for (uint64_t i = 0; i < blocks; ++i)
      image_.overwrite(target, uint32_t(first + i), write.pages[i]);
  } else if (!image_.in_flight(target, first * block_bytes, blocks * block_bytes)) {
    PendingOp elsewhere = write;
    elsewhere.offset = first * block_bytes;
    elsewhere.length = blocks * block_bytes;
    elsewhere.stray = true;
    image_.complete(target, image_.submit(target, std::move(elsewhere)));
  }
}

// Where the file system is not in place, it keeps the promise of Disk as FileDisk does: with a
// flush of each file that has been written to.
Status SimDisk::flush(DiskImage::InodeId id) {
  const bool buffered = image_.inode(id).buffered;
  io(buffered ? "table sync" : "flush");
  tell("flush", id, 0, 0);
  if (happens(faults_.flush_error)) {
    ++refused_.flushes;
    if (happens(faults_.drops)) image_.drop_flush(id, DiskImage::Covered::all);
    return Status(EIO, "flush fails");
  }
  if (happens(faults_.flush_no_space)) {
    ++refused_.full_flushes;
    ++no_spaces_;
    image_.drop_flush(id, DiskImage::Covered::own);
    return Status(ENOSPC, "flush fails: no space");
  }
  if (faults_.flushes_lie) {
    image_.pretend_flush(id);
    if (!image_.in_place() && !buffered)
      for (const DiskImage::InodeId other : image_.dirty()) image_.pretend_flush(other);
    return {};
  }
  image_.flush(id);
  if (image_.in_place() || buffered) return {};
  for (const DiskImage::InodeId other : image_.dirty()) {
    io("flush");
    image_.flush(other);
  }
  return {};
}

bool SimDisk::fails_for_a_moment(double probability, unsigned* in_a_row) {
  const bool fails = happens(probability) && *in_a_row < in_a_row_max;
  *in_a_row = fails ? *in_a_row + 1 : 0;
  return fails;
}

Status SimDisk::call(const std::string& what) {
  if (!fails_for_a_moment(faults_.call_error, &failed_calls_)) return {};
  ++refused_.calls;
  return Status(EIO, what + " fails");
}

Status SimDisk::change_of_name(const std::string& what) {
  if (!happens(faults_.call_error)) return {};
  ++refused_.writes;
  return Status(EIO, what + " fails");
}

bool SimDisk::is_new_table_file_damaged() const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(image_.all_names(), [this](const auto& name) {
    return new_table_files_.contains(name.second) && !image_.inode(name.second).damaged.empty();
  });
}

bool SimDisk::is_damaged() const {
  std::lock_guard lock(mutex_);
  return image_.is_damaged();
}

SimDisk::Damage SimDisk::damage() const {
  std::lock_guard lock(mutex_);
  Damage all;
  for (const auto& [path, id] : image_.all_names())
    for (const auto& [block, damaged] : image_.inode(id).damaged) all.insert({id, block});
  return all;
}

Result<std::unique_ptr<File>> SimDisk::open(const std::string& path, OpenMode mode) {
  std::lock_guard lock(mutex_);
  DiskImage::InodeId id = image_.lookup(path);
  const bool creates = mode == OpenMode::create_new;
  if (auto s = creates ? change_of_name("creation of " + path) : call("open of " + path); !s.ok())
    return s;
  if (creates) {
    if (id) return Status(EEXIST, path + " exists");
    io("create");
    id = image_.create(path, false);
  } else if (!id) {
    return Status(ENOENT, path + ": there is no such file");
  }
  return std::unique_ptr<File>(new SimFile(*this, path, id));
}

Result<bool> SimDisk::exists(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (auto s = call("stat of " + path); !s.ok()) return s;
  return image_.lookup(path) != 0;
}

Result<std::vector<std::string>> SimDisk::list(const std::string& dir) {
  std::lock_guard lock(mutex_);
  if (auto s = call("listing of " + dir); !s.ok()) return s;
  if (!dir.empty() && !image_.lookup(dir)) return Status(ENOENT, dir + ": no such directory");
  return names_in(image_.names(), dir);
}

Status SimDisk::make_dir(const std::string& dir) {
  std::lock_guard lock(mutex_);
  io("make_dir");
  image_.make_dir(dir);
  return {};
}

Status SimDisk::remove(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (auto s = change_of_name("removal of " + path); !s.ok()) return s;
  io("remove");
  image_.remove(path);
  return {};
}

Status SimDisk::rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(mutex_);
  if (auto s = change_of_name("renaming of " + from); !s.ok()) return s;
  if (!image_.lookup(from)) return Status(ENOENT, from + ": there is no such file");
  if (image_.lookup(to)) return Status(EEXIST, to + " exists");
  io("rename");
  image_.rename(from, to);
  return {};
}

Status SimDisk::remove_tree(const std::string& dir) {
  std::lock_guard lock(mutex_);
  const auto paths = tree_of(image_.names(), dir);
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
    io("remove");
    image_.remove(*path);
  }
  return {};
}

Status SimDisk::sync_dir(const std::string& dir) {
  std::lock_guard lock(mutex_);
  io("sync_dir");
  if (happens(faults_.flush_error)) {
    ++refused_.flushes;
    if (happens(faults_.drops)) image_.drop_flush(0, DiskImage::Covered::all);
    return Status(EIO, "sync of directory fails");
  }
  if (faults_.flushes_lie)
    image_.pretend_sync_dir();
  else
    image_.sync_dir(dir);
  return {};
}

// What cannot be written in place has to be flushed file by file.
Result<bool> SimDisk::flush_all() {
  std::lock_guard lock(mutex_);
  if (!image_.in_place()) return false;
  for (const DiskImage::InodeId id : image_.dirty())
    if (Status s = flush(id); !s.ok()) return s;
  return true;
}

Result<DiskSpace> SimDisk::space() {
  std::lock_guard lock(mutex_);
  if (auto s = call("statvfs"); !s.ok()) return s;
  const uint64_t taken = image_.taken_bytes() + other_bytes_;
  return DiskSpace{capacity_bytes_, capacity_bytes_ - std::min(capacity_bytes_, taken)};
}

std::unique_ptr<WriteQueue> SimDisk::make_write_queue() {
  return std::make_unique<SimQueue>(*this);
}
std::shared_ptr<rocksdb::FileSystem> SimDisk::table_fs() { return make_sim_table_fs(*this); }

}  // namespace tablestore::sim
