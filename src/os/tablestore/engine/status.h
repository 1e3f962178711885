// Status and Result: what can fail in normal life. What cannot fail is required (require.h).
#pragma once

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "os/tablestore/engine/require.h"

namespace tablestore {

// An errno (0 = success) and one line for the operator: which file or object, what was
// expected and found, and what can be done. The line is empty when code is 0.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(int error_number, std::string what) : code_(error_number), what_(std::move(what)) {
    require(error_number > 0, "an error has a number, or it would be taken for success");
  }
  static Status from_errno(int error_number, const std::string& doing) {
    return Status(error_number, doing + ": " + std::strerror(error_number));
  }
  bool ok() const { return code_ == 0; }
  // A positive errno: EIO for a failing disk and for damaged bytes, ENOSPC, EINVAL, ENOENT,
  // EBUSY (somebody else has it open), ENOTSUP (a newer format) ...
  int code() const { return code_; }
  const std::string& what() const { return what_; }

 private:
  int code_ = 0;
  std::string what_;
};

// Errors that say nothing of the disk: what the process, or the file system, has too little of just
// now. Who can wait tries again.
inline bool is_lack(int code) {
  return code == ENOSPC || code == EDQUOT || code == EMFILE || code == ENFILE || code == ENOMEM ||
         code == EAGAIN;
}

// Of these, what a file system has too little of, or does not give to this user.
inline bool is_lack_of_space(int code) { return code == ENOSPC || code == EDQUOT; }

// The end of what a store says that has to stop at once, because of this error of a write or a
// flush. What is written there has its space already, unless somebody below promised too much.
inline std::string why_it_stops(int code) {
  return std::string("; the store stops, nothing acknowledged is lost: ") +
         (is_lack_of_space(code)
              ? "space that this file had is not there: a thin volume below is full, or the file "
                "shares its blocks with a copy; make room there, and start it again"
              : "replace the disk");
}

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    require(!status_.ok(), "a result without a value is an error");
  }
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { require_ok(); return *value_; }
  const T& operator*() const { require_ok(); return *value_; }
  T* operator->() { require_ok(); return &*value_; }
  const T* operator->() const { require_ok(); return &*value_; }
  T take() { require_ok(); return std::move(*value_); }

 private:
  void require_ok() const { require(ok(), "a value is taken only where there is one"); }

  std::optional<T> value_;
  Status status_;
};

}  // namespace tablestore
