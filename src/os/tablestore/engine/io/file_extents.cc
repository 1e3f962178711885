#include "os/tablestore/engine/io/file_extents.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "os/tablestore/engine/io/system_call.h"

#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x2000U
#endif

namespace tablestore {
namespace {

constexpr unsigned extents_per_call = 128;

// The header, and room behind it for the kernel's answer.
class ExtentPage {
 public:
  struct fiemap& header() { return *reinterpret_cast<struct fiemap*>(memory_); }
  const struct fiemap_extent& extent(unsigned i) const {
    return reinterpret_cast<const struct fiemap_extent*>(memory_ + sizeof(struct fiemap))[i];
  }

 private:
  alignas(struct fiemap) alignas(struct fiemap_extent)
      std::byte memory_[sizeof(struct fiemap) + extents_per_call * sizeof(struct fiemap_extent)];
};

// Flags of an extent that is overwritten in place.
constexpr uint32_t plain_flags = FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_MERGED;

// Appends [begin, end), grown to whole blocks, joined with its neighbour.
void append(uint64_t begin, uint64_t end, std::vector<ByteRange>* out) {
  begin = begin / block_bytes * block_bytes;
  end = (end + block_bytes - 1) / block_bytes * block_bytes;
  if (!out->empty() && out->back().offset + out->back().length >= begin) {
    begin = out->back().offset;
    end = std::max(end, begin + out->back().length);
    out->pop_back();
  }
  if (begin < end) out->push_back({begin, end - begin});
}

int map_extents(int fd, uint64_t from, uint64_t length, ExtentPage* page) {
  struct fiemap& header = page->header();
  std::memset(&header, 0, sizeof(header));
  header.fm_start = from;
  header.fm_length = length;
  header.fm_flags = FIEMAP_FLAG_SYNC;
  header.fm_extent_count = extents_per_call;
  return uninterrupted([&] { return ::ioctl(fd, FS_IOC_FIEMAP, &header); }) == 0 ? 0 : errno;
}

// The start of struct statx, as far as the alignment of direct I/O, which older C libraries do not
// have.
struct StatxWithAlignment {
  uint32_t mask;
  std::byte before[148];
  uint32_t dio_mem_align;
  uint32_t dio_offset_align;
  std::byte after[96];
};
static_assert(sizeof(StatxWithAlignment) == 256);
static_assert(offsetof(StatxWithAlignment, dio_mem_align) == 0x98);

}  // namespace

int find_unwritten(int fd, uint64_t size, std::vector<ByteRange>* out) {
  out->clear();
  uint64_t mapped = 0;  // all before it has been looked at
  ExtentPage page;
  bool last = false;
  while (mapped < size && !last) {
    if (int error = map_extents(fd, mapped, size - mapped, &page)) {
      if (error != EOPNOTSUPP && error != ENOTTY && error != EBADR && error != EINVAL) return error;
      out->assign(1, {0, size});
      return 0;
    }
    const unsigned found = page.header().fm_mapped_extents;
    if (found == 0) break;
    for (unsigned i = 0; i < found; ++i) {
      const struct fiemap_extent& extent = page.extent(i);
      const uint64_t begin = std::max<uint64_t>(extent.fe_logical, mapped);
      const uint64_t end = std::min<uint64_t>(extent.fe_logical + extent.fe_length, size);
      if (begin > mapped) append(mapped, begin, out);
      if (end > begin && (extent.fe_flags & ~plain_flags)) append(begin, end, out);
      mapped = std::max(mapped, end);
      last = extent.fe_flags & FIEMAP_EXTENT_LAST;
    }
  }
  if (mapped < size) append(mapped, size, out);
  return 0;
}

bool direct_is_honoured(int fd) {
  StatxWithAlignment st;
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) != 0) return true;
  if (!(st.mask & STATX_DIOALIGN)) return true;
  return st.dio_mem_align != 0 && st.dio_mem_align <= block_bytes &&
         st.dio_offset_align <= block_bytes;
}

}  // namespace tablestore
