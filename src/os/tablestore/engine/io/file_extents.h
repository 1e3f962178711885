// Questions to the file system about one open file.
#pragma once

#include <cstdint>
#include <vector>

#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// The parts of [0, size) whose first write makes the file system allocate or convert: holes,
// unwritten extents, extents shared with a reflinked copy, and all that is not plain. In whole
// blocks, ascending; all of it where the file system has no extent map. 0 or an errno.
int find_unwritten(int fd, uint64_t size, std::vector<ByteRange>* out);

// False where the file system says that it passes direct I/O on this file through its page cache,
// or that it needs a larger alignment than a block. True where it does not say.
bool direct_is_honoured(int fd);

}  // namespace tablestore
