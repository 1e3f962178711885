// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// What an OSD's store stands in, with its disk in a wrapper that fails or counts as a test wants.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "global/global_context.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/home/osd_surroundings.h"

namespace tablestore_test {

/// `Wrapper` is a Disk that is made of the one below and of `args`, anew at each mount.
template <typename Wrapper>
class WrappedSurroundings : public tablestore::OsdSurroundings {
 public:
  template <typename... Args>
  explicit WrappedSurroundings(const std::string& dir, Args... args)
    : OsdSurroundings(g_ceph_context, dir),
      directory(dir),
      wrap([args...](std::unique_ptr<tablestore::Disk> below) {
        return std::make_shared<Wrapper>(std::move(below), args...);
      }) {}
  tablestore::Result<std::shared_ptr<tablestore::Disk>> open_disk(bool) override
  {
    auto opened = tablestore::open_file_disk(directory, {});
    if (!opened.ok())
      return opened.status();
    last = wrap(opened.take());
    return std::shared_ptr<tablestore::Disk>(last);
  }
  Wrapper& disk() { return *last; }   ///< of the last mount

 private:
  const std::string directory;
  const std::function<std::shared_ptr<Wrapper>(std::unique_ptr<tablestore::Disk>)> wrap;
  std::shared_ptr<Wrapper> last;
};

}  // namespace tablestore_test
