// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/osd_surroundings.h"

#include <thread>

#include "common/Thread.h"
#include "common/ceph_context.h"
#include "common/config.h"
#include "common/debug.h"
#include "include/ceph_assert.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "rocksdb/env.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

namespace tablestore {

namespace {

// For the merger: OwnThreads of engine/own_threads.h replaces this class.
class StoreThreads : public Threads {
 public:
  bool run_by_themselves() const override { return true; }
  std::unique_ptr<Worker> start(const std::string& name, Urgency, std::function<void()> run,
                                std::function<bool()>) override
  {
    struct ThreadWorker : public Worker {
      ThreadWorker(const std::string& name, std::function<void()> run)
        : thread(make_named_thread(name, std::move(run)))
      {
      }
      ~ThreadWorker() override { thread.join(); }
      std::thread thread;
    };
    return std::make_unique<ThreadWorker>("ts_" + name, std::move(run));
  }
  void advance() override { ceph_abort(); }
  std::unique_ptr<rocksdb::Env> table_env(std::shared_ptr<rocksdb::FileSystem>) override
  {
    return nullptr;
  }
  void adjust_table(rocksdb::DBOptions*, rocksdb::ColumnFamilyOptions*) override {}
  void table_called(rocksdb::DB&) override {}
};

}  // namespace

OsdSurroundings::OsdSurroundings(CephContext* cct, std::string path)
  : cct(cct), path(std::move(path)), own_threads(std::make_shared<StoreThreads>())
{
}

Result<std::shared_ptr<Disk>> OsdSurroundings::open_disk()
{
  FileDiskOptions options;
  options.io_uring = cct->_conf.get_val<bool>("tablestore_io_uring");
  options.log = [this](const std::string& line) { dout(0) << line << dendl; };
  auto opened = open_file_disk(path, options);
  if (!opened.ok())
    return opened.status();
  return std::shared_ptr<Disk>(opened.take());
}

}  // namespace tablestore
