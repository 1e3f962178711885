// Bytes as RocksDB takes them.
#pragma once

#include <string_view>

#include "rocksdb/slice.h"

namespace tablestore {

inline rocksdb::Slice slice(std::string_view s) { return {s.data(), s.size()}; }

}  // namespace tablestore
