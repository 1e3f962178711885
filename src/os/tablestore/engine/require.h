// Assertions that stay on in every build: a broken invariant of the store must stop the process
// before it reaches the disk.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace tablestore {

// Aborts where `holds` is false. `what` says what should have been true.
inline void require(bool holds, const char* what,
                    std::source_location where = std::source_location::current()) {
  if (holds) [[likely]] return;
  std::fprintf(stderr, "%s:%u: %s: broken invariant: %s\n", where.file_name(),
               static_cast<unsigned>(where.line()), where.function_name(), what);
  std::fflush(stderr);
  std::abort();
}

}  // namespace tablestore
