// What an error of RocksDB says, and does not say.
#pragma once

#include <string>

#include "os/tablestore/engine/status.h"

namespace rocksdb {
class Status;
}

namespace tablestore {

// ENOSPC, EINVAL, EIO, or what the process lacks (see lack_in()).
Status to_status(const rocksdb::Status& s, const std::string& doing);

// The errno of what is no fault of a file: descriptors, memory, permission, a path to the disk ...
// 0: it is none of these. RocksDB keeps only the text of it.
int lack_in(const rocksdb::Status& s);

// Says that bytes are lost, as far as one read can: not that there is no space, nor that the
// process lacks something.
bool is_damage(const rocksdb::Status& s);

}  // namespace tablestore
