#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "os/tablestore/engine/table/rocksdb_status.h"
#include "rocksdb/status.h"

namespace tablestore {
namespace {

using RocksStatus = rocksdb::Status;

int code_of(const RocksStatus& s) { return to_status(s, "write").code(); }

// With too many memtables full, a write waits for a flush, and is told in words why that failed.
TEST(RocksdbStatusTest, AWriteThatWaitedForAFlushSaysWhatThatLacked) {
  const RocksStatus full = RocksStatus::NoSpace("000126.sst", std::strerror(ENOSPC));
  EXPECT_EQ(code_of(full), ENOSPC);
  EXPECT_EQ(code_of(RocksStatus::Incomplete(full.ToString())), ENOSPC);
  EXPECT_EQ(lack_in(RocksStatus::Incomplete(full.ToString())), 0);
  for (const int lack : {EMFILE, EDQUOT, ENOMEM}) {
    const RocksStatus error = RocksStatus::IOError("000126.sst", std::strerror(lack));
    EXPECT_EQ(code_of(error), lack);
    EXPECT_EQ(code_of(RocksStatus::Incomplete(error.ToString())), lack);
  }
  EXPECT_EQ(code_of(RocksStatus::Incomplete(RocksStatus::Corruption("rot").ToString())), EIO);
}

}  // namespace
}  // namespace tablestore
