// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "tools/tablestore/open_label.h"

#include "include/stringify.h"
#include "os/tablestore/engine/io/file_disk.h"

namespace tablestore_tool {

using namespace tablestore;

Label read_label_of(const std::string& path, bool* is_damaged)
{
  FileDiskOptions options;
  options.read_only = true;
  const auto disk = open_file_disk(path, options);
  if (!disk.ok())
    throw Failure(exit_no_store, disk.status().what());
  auto label = read_label(**disk, is_damaged);
  require_ok(label.status());
  return label.take();
}

std::string as_text(const StoreUuid& bytes)
{
  uuid_d uuid;
  memcpy(const_cast<char*>(uuid.bytes()), bytes.data(), bytes.size());
  return stringify(uuid);
}

void require_ok(const Status& s)
{
  if (!s.ok())
    throw Failure(exit_of(-s.code()), s.what());
}

LockedStore::LockedStore(const Call& call, StoreDir::Open how)
  : lock(call.cct, call.options.path)
{
  refuse_in_use(call, Mount::For::use);
  require(lock.open(how), "cannot lock " + call.options.path);
  FileDiskOptions options;
  options.lock_wait_ms = 0;
  auto disk = open_file_disk(call.options.path, options);
  require_ok(disk.status());
  opened = disk.take();
  auto first_segment = opened->open("log/0", OpenMode::read_write);
  if (first_segment.status().code() == EBUSY)
    throw Failure(exit_in_use, first_segment.status().what());
  if (first_segment.ok())
    log = first_segment.take();
}

void LockedStore::disown()
{
  require(lock.clear_fsid(), "cannot write the fsid file");
  log = nullptr;
}

}  // namespace tablestore_tool
