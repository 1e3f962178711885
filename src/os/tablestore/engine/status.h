// Status and Result: what can fail in normal life. What cannot fail is asserted.
#pragma once

#include <cassert>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace tablestore {

// An errno (0 = success) and one line for the operator: which file or object, what was
// expected and found, and what can be done. The line is empty when code is 0.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(int error_number, std::string what) : code_(error_number), what_(std::move(what)) {
    assert(error_number > 0);
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

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { assert(ok()); return *value_; }
  const T& operator*() const { assert(ok()); return *value_; }
  T* operator->() { assert(ok()); return &*value_; }
  const T* operator->() const { assert(ok()); return &*value_; }
  T take() { assert(ok()); return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace tablestore
