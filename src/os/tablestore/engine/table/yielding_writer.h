// Who writes a file of the table lets others run (the document, under (q)).
#pragma once

#include <functional>
#include <memory>

namespace rocksdb {
class TablePropertiesCollectorFactory;
}

namespace tablestore {

// One for a family's options: `yield` is called by the thread that writes a file, flush and
// compaction alike, after each block of rows; by several threads at once where several files are
// written. It collects nothing.
std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_yielding_writer(
    std::function<void()> yield);

}  // namespace tablestore
