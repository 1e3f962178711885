#include "os/tablestore/engine/table/rocksdb_status.h"

#include <cerrno>
#include <cstring>

#include "rocksdb/status.h"

namespace tablestore {

namespace {

// A write that had to wait for a flush, which failed: RocksDB keeps only the text of why.
bool is_of_a_stall(const rocksdb::Status& s) { return s.IsIncomplete(); }

bool is_no_space(const rocksdb::Status& s) {
  return s.IsNoSpace() || (is_of_a_stall(s) &&
                           s.ToString().find(std::strerror(ENOSPC)) != std::string::npos);
}

}  // namespace

int lack_in(const rocksdb::Status& s) {
  if ((!s.IsIOError() && !s.IsTimedOut() && !is_of_a_stall(s)) || is_no_space(s)) return 0;
  const std::string text = s.ToString();
  // ENFILE first: its text begins with that of EMFILE.
  for (const int lack : {ENFILE, EMFILE, ENOMEM, EAGAIN, EACCES, EPERM, EDQUOT, ETIMEDOUT, ENOLINK,
                         ENODEV, EBADE, ESTALE, EHOSTDOWN, ENOTCONN, ESHUTDOWN})
    if (text.find(std::strerror(lack)) != std::string::npos) return lack;
  return 0;
}

Status to_status(const rocksdb::Status& s, const std::string& doing) {
  if (s.ok()) return {};
  int code = is_no_space(s) ? ENOSPC : s.IsInvalidArgument() ? EINVAL : EIO;
  if (const int lack = lack_in(s)) code = lack;
  return Status(code, "table: " + doing + ": " + s.ToString());
}

bool is_damage(const rocksdb::Status& s) {
  if (s.IsCorruption() || s.IsPathNotFound()) return true;
  return s.IsIOError() && !s.IsNoSpace() && !lack_in(s);
}

}  // namespace tablestore
