/// A store copied into another one, object by object: ceph-objectstore-tool --op dup.
#pragma once

#include <string>

class ObjectStore;

namespace tablestore {

/// Neither is mounted. `dst` is empty, with the fsid of `src`, or a copy of this very store that
/// was interrupted: that goes on where it ended, unless the OSD of `src` has run in between.
/// 0, or an error that was told on standard error: nothing that cannot be read is left out. What
/// was copied until then stays, and the same call goes on from there.
int dup_store(ObjectStore& src, const std::string& src_path, ObjectStore& dst,
              const std::string& dst_path);

}  // namespace tablestore
