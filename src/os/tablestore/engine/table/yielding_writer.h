// Who writes a file of the table lets others run (the document, under (q)).
#pragma once

#include <functional>
#include <memory>

namespace rocksdb {
class TablePropertiesCollectorFactory;
}

namespace tablestore {

// One for a family's options: `yield` is called for each block of rows or of the index, by the
// thread that makes it, in flushes and compactions alike, and by several at once. What a flush or a
// compaction drops makes no block. It collects nothing.
std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_yielding_writer(
    std::function<void()> yield);

}  // namespace tablestore
