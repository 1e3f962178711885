#include "os/tablestore/engine/io/large_pages.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>

#include "os/tablestore/engine/require.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace tablestore {
namespace {

constexpr std::chrono::seconds time_between_refusals(60);
constexpr unsigned units_per_page = 64;
constexpr size_t unit_bytes = LargePages::page_bytes / units_per_page;

unsigned units_of(size_t bytes) { return unsigned((bytes + unit_bytes - 1) / unit_bytes); }

uint64_t bits(unsigned count, unsigned at) {
  return (count == units_per_page ? ~uint64_t(0) : (uint64_t(1) << count) - 1) << at;
}

// Where so many in a row are clear; units_per_page: nowhere.
unsigned find_clear(uint64_t used, unsigned count) {
  for (unsigned at = 0; at + count <= units_per_page;) {
    const uint64_t taken = used & bits(count, at);
    if (!taken) return at;
    at = unsigned(std::bit_width(taken));
  }
  return units_per_page;
}

// The kernel knows more words; those for all and for who asks are not this one.
bool system_has_them() {
  const std::string directory = "/sys/kernel/mm/transparent_hugepage/";
  std::ifstream enabled(directory + "enabled"), size(directory + "hpage_pmd_size");
  std::string words;
  size_t bytes;
  return std::getline(enabled, words) && words.find("[never]") == std::string::npos &&
         size >> bytes && bytes == LargePages::page_bytes;
}

// Ceph forbids large pages to its daemons: an allocator that gets them unasked keeps more memory.
// While this lives, whoever asks gets them. Never two at once.
class Allowed {
 public:
  Allowed() : forbidden_(::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0)) {
    if (forbidden_ > 0) ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  }
  bool done() const { return ::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0; }
  ~Allowed() {
    // Above the first bit, from Linux 6.18 on: for whom.
    if (forbidden_ > 0) ::prctl(PR_SET_THP_DISABLE, 1, forbidden_ & ~1, 0, 0);
  }
  Allowed(const Allowed&) = delete;
  Allowed& operator=(const Allowed&) = delete;

 private:
  const int forbidden_;
};

// Memory that the allocator has had in use before would stay the small pages that it is.
bool map_anew(std::byte* memory) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  return ::mmap(memory, LargePages::page_bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == memory;
}

bool become_one_page(std::byte* memory) {
  constexpr size_t bytes = LargePages::page_bytes;
  const Allowed allowed;
  if (!allowed.done() || ::madvise(memory, bytes, MADV_HUGEPAGE) != 0) return false;
  *memory = std::byte(0);
  // Kernels before 6.1 do not tell whether it is one.
  const bool kernel_tells = ::madvise(memory, 0, MADV_COLLAPSE) == 0 || errno != EINVAL;
  if (kernel_tells && ::madvise(memory, bytes, MADV_COLLAPSE) != 0) return false;
  // A child would share it, and the next write would break it up.
  return ::madvise(memory, bytes, MADV_DONTFORK) == 0;
}

}  // namespace

std::byte* LargePages::make_page() {
  static std::mutex one_at_a_time;
  std::lock_guard lock(one_at_a_time);
  if (!system_has_them()) return nullptr;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(page_bytes, page_bytes));
  // Where it could not be mapped nobody knows what is there now, and it is not given back.
  if (!memory || !map_anew(memory)) return nullptr;
  if (become_one_page(memory)) return memory;
  free_page(memory);
  return nullptr;
}

void LargePages::free_page(std::byte* page) {
  ::madvise(page, page_bytes, MADV_DOFORK);
  std::free(page);
}

std::shared_ptr<LargePages> LargePages::make(size_t bytes_max, MakePage maker) {
  if (bytes_max < page_bytes) return nullptr;
  return std::shared_ptr<LargePages>(new LargePages(bytes_max / page_bytes, maker));
}

LargePages::~LargePages() {
  for (const Page& page : pages_) free_page(page.memory);
}

std::vector<LargePages::Memory> LargePages::take_all(size_t bytes) {
  std::vector<Memory> pieces;
  for (size_t piece; bytes > 0; bytes -= piece) {
    piece = std::min(bytes, page_bytes);
    pieces.push_back(take(piece));
    if (!pieces.back()) return {};
  }
  return pieces;
}

LargePages::Memory LargePages::take(size_t bytes) {
  if (bytes == 0 || bytes > page_bytes) return nullptr;
  do {
    std::lock_guard lock(mutex_);
    for (Page& page : pages_)
      if (Memory memory = take_of(page, bytes)) return memory;
  } while (make_another());
  return nullptr;
}

LargePages::Memory LargePages::take_of(Page& page, size_t bytes) {
  const unsigned units = units_of(bytes), at = find_clear(page.used, units);
  if (at == units_per_page) return nullptr;
  page.used |= bits(units, at);
  return Memory(page.memory + at * unit_bytes, {shared_from_this(), bytes});
}

bool LargePages::make_another() {
  std::unique_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (making_ || pages_.size() == pages_max_ || now < ask_again_) return false;
  making_ = true;
  lock.unlock();
  std::byte* const page = make_page_();
  lock.lock();
  making_ = false;
  if (page)
    pages_.push_back(Page{page});
  else
    ask_again_ = now + time_between_refusals;
  return page;
}

void LargePages::give_back(std::byte* memory, size_t bytes) {
  std::lock_guard lock(mutex_);
  for (Page& page : pages_) {
    if (memory < page.memory || memory >= page.memory + page_bytes) continue;
    const uint64_t mask = bits(units_of(bytes), unsigned((memory - page.memory) / unit_bytes));
    require((page.used & mask) == mask, "what is given back was taken");
    page.used &= ~mask;
    return;
  }
  require(false, "memory is given back to whom it was taken from");
}

}  // namespace tablestore
