// What ends a step, a life or a history of a simulated store. Thrown.
#pragma once

#include <string>

namespace tablestore::sim {

// The store said "fatal": the process would have ended.
struct Died {
  std::string why;
};

// The oracle has found a difference, or the store does not open.
struct Failure {
  std::string what;
};

// A row that the oracle needs cannot be read: the store said so, and gave no wrong one.
struct Unreadable {
  std::string what;
};

}  // namespace tablestore::sim
