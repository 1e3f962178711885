// Questions to the file system about one open file.
#pragma once

#include <cstdint>
#include <vector>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// The parts of [0, size) whose first write makes the file system allocate or convert: holes,
// unwritten extents, extents shared with a reflinked copy, and all that is not plain. In whole
// blocks, ascending; all of it where the file system has no extent map (`has_map`). Into `holes`,
// which may be null, those that have no space. 0 or an errno.
int find_unwritten(int fd, uint64_t size, std::vector<ByteRange>* out,
                   std::vector<ByteRange>* holes, bool* has_map);

// Whether another file has blocks of this one, too. 0 or an errno; success with false where the
// file system has no extent map.
int find_shared(int fd, uint64_t size, bool* shared);

// On XFS's realtime device: a flush of files on the other one does not reach it, nor the reverse.
bool is_realtime(int fd);

// False where the file system says that it passes direct I/O on this file through its page cache,
// or that it needs a larger alignment than a block. Where the kernel cannot say (before 6.1), false
// for files that are encrypted, compressed or journalled with their data.
bool direct_is_honoured(int fd);

}  // namespace tablestore
