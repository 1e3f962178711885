// What an errno of a read says of the bytes that were to be read.
#pragma once

#include <cerrno>

namespace tablestore {

// Errors of the way to the disk: a path of it, a fabric, a file server. Nobody has looked at what
// lies there, and it may be reached again later.
inline bool is_path_error(int error) {
  return error == ETIMEDOUT || error == ENOLINK || error == ENODEV || error == EBADE ||
         error == ESTALE || error == EHOSTDOWN || error == ENOTCONN || error == ESHUTDOWN;
}

// Direct I/O passes on what the device says: a sector that cannot be read is ENODATA, others are
// EREMOTEIO, EILSEQ, EUCLEAN of the file system. All of these are EIO. What says nothing of the
// bytes stays what it is.
inline int code_of_failed_read(int error) {
  return error == ENOMEM || is_path_error(error) ? error : EIO;
}

}  // namespace tablestore
