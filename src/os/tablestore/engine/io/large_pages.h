// Memory of large pages, for reads.
//
// A request names each page of its memory that does not lie beside another, and the host of a
// virtual machine does something for each. What one large page in their place saves is more than a
// copy costs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tablestore {

// Pieces of a few large pages, which are made when they are first wanted, and kept. Thread-safe.
class LargePages : public std::enable_shared_from_this<LargePages> {
 public:
  static constexpr size_t page_bytes = 2 << 20;

  // page_bytes, aligned to them, as one page, of memory that is malloc()'s. Null: the system does
  // not give any now.
  using MakePage = std::byte* (*)();
  static std::byte* make_page();
  static void free_page(std::byte* page);

  // At most so much of it, in whole pages. Null: that is none.
  static std::shared_ptr<LargePages> make(size_t bytes_max, MakePage maker = make_page);
  ~LargePages();
  LargePages(const LargePages&) = delete;
  LargePages& operator=(const LargePages&) = delete;

  struct GiveBack {
    std::shared_ptr<LargePages> pages;
    size_t bytes = 0;
    void operator()(std::byte* memory) const { pages->give_back(memory, bytes); }
  };
  using Memory = std::unique_ptr<std::byte, GiveBack>;
  // Aligned to block_bytes, not initialised. Null: all is in use, or it is more than a page, or the
  // system does not give any.
  Memory take(size_t bytes);
  // Of any size, in as few pieces as there can be. Empty: take() has not all of them.
  std::vector<Memory> take_all(size_t bytes);

 private:
  struct Page {
    std::byte* memory = nullptr;
    uint64_t used = 0;  // a bit for each of its 64 units
  };

  LargePages(size_t pages_max, MakePage maker) : pages_max_(pages_max), make_page_(maker) {}
  Memory take_of(Page& page, size_t bytes);
  bool make_another();
  void give_back(std::byte* memory, size_t bytes);

  const size_t pages_max_;
  const MakePage make_page_;
  std::mutex mutex_;
  bool making_ = false;  // one more, without the mutex: the kernel may search for it
  std::chrono::steady_clock::time_point ask_again_;
  std::vector<Page> pages_;
};

}  // namespace tablestore
