// Reads, of data or of what a file system knows, that are repeated before anything follows from
// their failure: recovery cuts off for good what it takes for the log's end, and a running store
// stops.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "os/tablestore/engine/status.h"

namespace tablestore {

// A cable or a controller may fail for a moment. A bad sector stays bad.
inline constexpr unsigned read_tries = 5;
// A disk that takes seconds to fail has tried by itself, and a thread of an OSD that waits for
// minutes ends it: after so long a running store takes the last failure for the verdict.
inline constexpr std::chrono::seconds read_patience{10};

// Of a running store: how often a read that fails is repeated (0: never), and who is told where
// that helped, with what had failed and why. Both are called from any thread, also one that is
// within RocksDB, until the engine is gone, and must not call the engine.
struct ReadRetries {
  std::function<unsigned()> max = [] { return read_tries - 1; };
  std::function<void(const std::string& what)> helped = [](const std::string&) {};
};

// `read()` returns a Status, or a Result. The last one, where none succeeds.
template <typename Read>
auto read_repeatedly(Read read) {
  for (unsigned tries = 1;; ++tries) {
    auto outcome = read();
    if (outcome.ok() || tries == read_tries) return outcome;
  }
}

}  // namespace tablestore
