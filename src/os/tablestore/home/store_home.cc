// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/store_home.h"

#include "common/debug.h"
#include "common/perf_counters.h"
#include "include/ceph_assert.h"
#include "os/tablestore/home/perf.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

namespace tablestore {

StoreHome::StoreHome(CephContext* cct, const std::string& path,
                     std::shared_ptr<Surroundings> surroundings)
  : cct(cct),
    path(path),
    surroundings(std::move(surroundings)),
    options(cct),
    devices(path),
    dir(cct, path),
    logger(*make_perf_counters(cct))
{
}

StoreHome::~StoreHome()
{
  remove_perf_counters(cct, &logger);
}

Reporter StoreHome::make_reporter() const
{
  Reporter reporter;
  reporter.log = [this](Reporter::Level level, const std::string& line) {
    switch (level) {
    case Reporter::Level::error: derr << line << dendl; break;
    case Reporter::Level::warning: dout(0) << line << dendl; break;
    case Reporter::Level::info: dout(1) << line << dendl; break;
    case Reporter::Level::debug: dout(10) << line << dendl; break;
    }
  };
  reporter.fatal = [this](const std::string& line) {
    derr << line << dendl;
    ceph_abort_msg(line);
  };
  return reporter;
}

EngineOptions StoreHome::engine_options(const std::optional<uuid_d>& fsid) const
{
  EngineOptions engine_options = options.engine_options();
  engine_options.reporter = make_reporter();
  if (fsid)
    engine_options.store_uuid = std::string(fsid->bytes(), 16);
  surroundings->adjust(engine_options);
  return engine_options;
}

int StoreHome::format(uuid_d* fsid) const
{
  auto opened = surroundings->open_disk(false);
  if (!opened.ok()) {
    derr << __func__ << " " << opened.status().what() << dendl;
    return -opened.status().code();
  }
  Disk& disk = **opened;
  // A label without an fsid file: an mkfs that was interrupted between the two.
  if (const auto label = disk.exists("label"); label.ok() && *label) {
    auto engine_there = Engine::open(disk, engine_options(std::nullopt));
    if (!engine_there.ok()) {
      derr << __func__ << " a damaged store is here: " << engine_there.status().what() << dendl;
      return -engine_there.status().code();
    }
    const std::string uuid = (*engine_there)->store_uuid();
    if (fsid->is_zero())
      memcpy(const_cast<char*>(fsid->bytes()), uuid.data(), uuid.size());
    if (std::string(fsid->bytes(), 16) != uuid) {
      uuid_d there;
      memcpy(const_cast<char*>(there.bytes()), uuid.data(), uuid.size());
      derr << __func__ << " the store with the fsid " << there << " is here, whose fsid file is "
           << "empty or missing: ceph-tablestore-tool prime makes that anew; for another store, "
           << "give another directory" << dendl;
      return -EINVAL;
    }
    return 0;
  }
  if (fsid->is_zero())
    fsid->generate_random();
  if (Status s = Engine::format(disk, engine_options(*fsid)); !s.ok()) {
    derr << __func__ << " " << s.what() << dendl;
    return -s.code();
  }
  return 0;
}

}  // namespace tablestore
