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

// Calls `visit` with each extent of [0, size), in order. 0 or an errno.
template <typename Visit>
int for_each_extent(int fd, uint64_t size, Visit visit) {
  uint64_t mapped = 0;  // all before it has been looked at
  ExtentPage page;
  bool last = false;
  while (mapped < size && !last) {
    if (int error = map_extents(fd, mapped, size - mapped, &page)) return error;
    const unsigned found = page.header().fm_mapped_extents;
    if (found == 0) break;
    for (unsigned i = 0; i < found; ++i) {
      const struct fiemap_extent& extent = page.extent(i);
      const uint64_t begin = std::max<uint64_t>(extent.fe_logical, mapped);
      const uint64_t end = std::min<uint64_t>(extent.fe_logical + extent.fe_length, size);
      if (end > begin) visit(begin, end, extent.fe_flags);
      mapped = std::max(mapped, end);
      last = extent.fe_flags & FIEMAP_EXTENT_LAST;
    }
  }
  return 0;
}

bool has_no_map(int error) {
  return error == EOPNOTSUPP || error == ENOTTY || error == EBADR || error == EINVAL;
}

}  // namespace

int find_unwritten(int fd, uint64_t size, std::vector<ByteRange>* out,
                   std::vector<ByteRange>* holes, bool* has_map) {
  out->clear();
  uint64_t known = 0;
  const auto hole_up_to = [&](uint64_t begin) {
    if (begin <= known) return;
    append(known, begin, out);
    if (holes) append(known, begin, holes);
  };
  const int error = for_each_extent(fd, size, [&](uint64_t begin, uint64_t end, uint32_t flags) {
    hole_up_to(begin);
    if (flags & ~plain_flags) append(begin, end, out);
    known = end;
  });
  *has_map = error == 0;
  if (error && !has_no_map(error)) return error;
  if (error) {
    out->assign(1, {0, size});
  } else {
    hole_up_to(size);
  }
  return 0;
}

int find_shared(int fd, uint64_t size, bool* shared) {
  *shared = false;
  const int error = for_each_extent(fd, size, [&](uint64_t, uint64_t, uint32_t flags) {
    if (flags & FIEMAP_EXTENT_SHARED) *shared = true;
  });
  return has_no_map(error) ? 0 : error;
}

bool is_realtime(int fd) {
  struct fsxattr attributes;
  return ::ioctl(fd, FS_IOC_FSGETXATTR, &attributes) == 0 &&
         (attributes.fsx_xflags & FS_XFLAG_REALTIME);
}

bool direct_is_honoured(int fd) {
  StatxWithAlignment st;
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) == 0 &&
      (st.mask & STATX_DIOALIGN)) {
    return st.dio_mem_align != 0 && st.dio_mem_align <= block_bytes &&
           st.dio_offset_align <= block_bytes;
  }
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return true;
  return !(flags & (FS_ENCRYPT_FL | FS_COMPR_FL | FS_JOURNAL_DATA_FL));
}

}  // namespace tablestore
