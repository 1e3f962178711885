// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/osd_surroundings.h"

#include "common/ceph_context.h"
#include "common/config.h"
#include "common/debug.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/engine/io/large_pages.h"
#include "os/tablestore/home/descriptors.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

namespace tablestore {

Result<std::shared_ptr<Disk>> OsdSurroundings::open_disk(bool for_reading)
{
  FileDiskOptions options;
  options.parkable_open_max = open_files_limits(raise_descriptors()).containers;
  options.large_pages =
      LargePages::make(cct->_conf.get_val<Option::size_t>("tablestore_large_pages"));
  options.io_uring = cct->_conf.get_val<bool>("tablestore_io_uring");
  options.read_only = for_reading;
  options.log = [this](const std::string& line) { dout(0) << line << dendl; };
  auto opened = open_file_disk(path, options);
  if (!opened.ok())
    return opened.status();
  return std::shared_ptr<Disk>(opened.take());
}

void OsdSurroundings::adjust(EngineOptions& options)
{
  options.threads = own_threads;
  options.table_open_files = open_files_limits(raise_descriptors()).table;
}

}  // namespace tablestore
