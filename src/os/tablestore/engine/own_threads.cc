#include "os/tablestore/engine/own_threads.h"

#include <thread>
#include <utility>

#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/thread.h"
#include "rocksdb/env.h"

namespace tablestore {

namespace {

class OwnThread : public Worker {
 public:
  explicit OwnThread(std::function<void()> run) : thread_(std::move(run)) {}
  ~OwnThread() override { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Worker> OwnThreads::start(const std::string& name, Urgency urgency,
                                          std::function<void()> run, std::function<bool()>) {
  return std::make_unique<OwnThread>([name = "ts_" + name, urgency, run = std::move(run)] {
    name_thread(name.c_str());
    if (urgency == Urgency::waited_for) wake_up_soon();
    run();
  });
}

void OwnThreads::advance() { require(false, "threads run by themselves"); }

std::unique_ptr<rocksdb::Env> OwnThreads::table_env(std::shared_ptr<rocksdb::FileSystem> fs) {
  return rocksdb::NewCompositeEnv(fs);
}

}  // namespace tablestore
