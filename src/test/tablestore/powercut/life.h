// One life of a store on a real file system: it is opened, judged by what the life before it has
// acknowledged, and written to until somebody ends it.
#pragma once

#include <cstdint>
#include <string>

#include "os/tablestore/engine/engine.h"
#include "test/tablestore/powercut/journal.h"

namespace tablestore::powercut {

struct LifeOptions {
  std::string dir;
  int previous_fd = -1;  // the journal of the life before
  int journal_fd = -1;   // of this life; its report says what to do
};

// The exit status of a process that lives; anything else is a failure, which standard error names.
inline constexpr int lived = 0;

// mkfs.
int make_store(const LifeOptions& options);
// Returns when SIGTERM asks for an orderly end, or when it has only judged.
int live(const LifeOptions& options);

// Why the store is not what it may be after the life of `previous`; empty: it is. Then `state`
// is what it holds, after transaction `lsn`.
//
// It must be what some prefix of that life's transactions in log order makes, with all that were
// acknowledged.
std::string judge(Engine& engine, const Journal& previous, uint64_t acknowledged,
                  sim::State* state, uint64_t* lsn);

}  // namespace tablestore::powercut
