#include "test/tablestore/powercut/cut_disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "os/tablestore/engine/require.h"

namespace tablestore::powercut {

void Image::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const uint64_t at = offset % page_bytes;
    const uint64_t n = std::min<uint64_t>(page_bytes - at, out.size());
    const auto& page = pages_[offset / page_bytes];
    if (page)
      std::memcpy(out.data(), page->data() + at, n);
    else
      std::memset(out.data(), 0, n);
    offset += n;
    out = out.subspan(n);
  }
}

Image::Page& Image::page_to_change(uint64_t number) {
  auto& page = pages_[number];
  if (!page) {
    page = std::make_shared<Page>();
  } else if (page.use_count() > 1) {
    page = std::make_shared<Page>(*page);
  } else {
    // Who shared it until now has read it before letting go.
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  return *page;
}

void Image::write(uint64_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const uint64_t at = offset % page_bytes;
    const uint64_t n = std::min<uint64_t>(page_bytes - at, data.size());
    std::memcpy(page_to_change(offset / page_bytes).data() + at, data.data(), n);
    offset += n;
    data = data.subspan(n);
  }
}

void Image::zero(uint64_t offset, uint64_t length) {
  while (length > 0) {
    const uint64_t at = offset % page_bytes;
    const uint64_t n = std::min(page_bytes - at, length);
    if (n == page_bytes)
      pages_[offset / page_bytes].reset();
    else if (pages_[offset / page_bytes])
      std::memset(page_to_change(offset / page_bytes).data() + at, 0, n);
    offset += n;
    length -= n;
  }
}

bool Image::save(const char* path) const {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool ok = fd >= 0 && ::ftruncate(fd, off_t(size_bytes())) == 0;
  for (uint64_t i = 0; ok && i < pages_.size(); ++i)
    if (pages_[i])
      ok = ::pwrite(fd, pages_[i]->data(), page_bytes, off_t(i * page_bytes)) == page_bytes;
  if (fd >= 0) ::close(fd);
  return ok;
}

const char* fate_name(Fate fate) {
  static constexpr const char* names[fates] = {"none", "all", "writes", "sectors", "newest",
                                               "oldest", "mixed"};
  return names[unsigned(fate)];
}

CutDisk::CutDisk(Image image, CutDiskOptions options)
    : options_(options),
      size_bytes_(image.size_bytes()),
      now_(image),
      durable_(std::move(image)),
      random_(options.seed) {}

// With the mutex held.
void CutDisk::before_change() {
  if (changes_left_ == 0 || --changes_left_ > 0) return;
  const auto cut = std::exchange(cut_, nullptr);
  cut(*this);
}

void CutDisk::be_slow(std::unique_lock<std::mutex>& lock, unsigned most_us) {
  if (most_us == 0 || random_() % 4) return;
  const std::chrono::microseconds pause(random_() % most_us);
  lock.unlock();
  std::this_thread::sleep_for(pause);
  lock.lock();
}

void CutDisk::read(uint64_t offset, std::span<std::byte> out) {
  std::lock_guard lock(mutex_);
  ++counts_.reads;
  now_.read(offset, out);
}

void CutDisk::write(uint64_t offset, std::span<const std::byte> data) {
  Write w{.id = 0, .offset = offset, .length = data.size(), .data = {}};
  // Zeros take no space.
  if (std::ranges::any_of(data, [](std::byte b) { return b != std::byte(0); }))
    w.data.assign(data.begin(), data.end());
  std::unique_lock lock(mutex_);
  add(lock, std::move(w));
}

void CutDisk::zero(uint64_t offset, uint64_t length) {
  std::unique_lock lock(mutex_);
  add(lock, {.id = 0, .offset = offset, .length = length, .data = {}});
}

void CutDisk::add(std::unique_lock<std::mutex>& lock, Write w) {
  before_change();
  ++counts_.writes;
  counts_.written_bytes += w.length;
  w.id = ++next_id_;
  apply(w, w.offset, w.length, &now_);
  const uint64_t id = w.id;
  pending_.push_back(std::move(w));
  be_slow(lock, options_.slow_write_us);
  const auto found = std::ranges::find(pending_, id, &Write::id);
  require(found != pending_.end(), "only complete writes are flushed");
  found->complete = true;
}

void CutDisk::flush() {
  std::unique_lock lock(mutex_);
  before_change();
  ++counts_.flushes;
  std::vector<uint64_t> covered;
  for (const Write& w : pending_)
    if (w.complete) covered.push_back(w.id);
  be_slow(lock, options_.slow_flush_us);
  for (auto w = pending_.begin(); w != pending_.end();) {
    if (!std::ranges::binary_search(covered, w->id)) {
      ++w;
      continue;
    }
    apply(*w, w->offset, w->length, &durable_);
    w = pending_.erase(w);
  }
}

void CutDisk::cut_after(uint64_t requests, std::function<void(CutDisk&)> cut) {
  std::lock_guard lock(mutex_);
  changes_left_ = requests + 1;
  cut_ = std::move(cut);
}

void CutDisk::cancel() {
  std::lock_guard lock(mutex_);
  changes_left_ = 0;
  cut_ = nullptr;
}

CutDiskCounts CutDisk::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

void CutDisk::apply(const Write& w, uint64_t at, uint64_t length, Image* image) {
  if (w.data.empty())
    image->zero(at, length);
  else
    image->write(at, std::span(w.data).subspan(at - w.offset, length));
}

std::vector<uint64_t> CutDisk::sector_ends(const Write& w) const {
  const uint64_t sector = options_.sector_bytes, end = w.offset + w.length;
  std::vector<uint64_t> ends;
  for (uint64_t at = w.offset; at < end; at = ends.back())
    ends.push_back(std::min(end, at < options_.first_sector_bytes ? options_.first_sector_bytes
                                                                  : (at / sector + 1) * sector));
  return ends;
}

// Some of the sectors of one write.
void CutDisk::keep_part(const Write& w, Fate fate, Random& random, Image* image) const {
  const std::vector<uint64_t> ends = sector_ends(w);
  size_t from = 0, to = ends.size();  // of those, which
  if (fate == Fate::newest) from = random() % (ends.size() + 1);
  if (fate == Fate::oldest) to = random() % (ends.size() + 1);
  for (size_t s = from; s < to; ++s) {
    if (fate == Fate::sectors && random() % 2) continue;
    const uint64_t at = s == 0 ? w.offset : ends[s - 1];
    apply(w, at, ends[s] - at, image);
  }
}

Image CutDisk::cut(Fate fate, Random& random) const {
  Image image = durable_;
  // For newest and oldest: which write is the last to be lost or kept, and itself in part.
  const uint64_t middle = random() % (pending_.size() + 1);
  uint64_t i = 0;
  for (const Write& w : pending_) {
    Fate own = fate;
    if (fate == Fate::mixed) own = Fate(random() % (fates - 1));
    if (fate == Fate::newest || fate == Fate::oldest) {
      const bool kept = fate == Fate::newest ? i > middle : i < middle;
      own = i == middle ? fate : kept ? Fate::all : Fate::none;
    }
    ++i;
    if (own == Fate::none || (own == Fate::writes && random() % 2)) continue;
    keep_part(w, own, random, &image);
  }
  return image;
}

}  // namespace tablestore::powercut
