#pragma once

#include <cstddef>
#include <memory>

namespace rocksdb {
class FlushBlockPolicyFactory;
}  // namespace rocksdb

namespace tablestore {

// Blocks of rows end where they are full, as by default, and where the first `prefix_bytes` of the
// key change: what a block that cannot be read has lost is then behind one prefix alone.
std::shared_ptr<rocksdb::FlushBlockPolicyFactory> make_prefix_blocks(size_t prefix_bytes);

}  // namespace tablestore
