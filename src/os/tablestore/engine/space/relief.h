// Gives the table, and the log, the space that they are short of.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "os/tablestore/engine/container/containers.h"
#include "os/tablestore/engine/space/ballast.h"
#include "os/tablestore/engine/threads.h"
#include "os/tablestore/engine/troubles.h"

namespace tablestore {

// The work "relieve" looks after the reserve: while it is not whole, free space of containers goes
// back to the file system, without pause. make_room() is for who has met a full file system: any
// thread that holds no lock of containers.
//
// `mutex_` guards `stopping_`, and is not held over a step.
class Relief {
 public:
  struct Parts {
    Disk& disk;
    Threads& threads;
    Containers& containers;
    Ballast& ballast;
    Ballast& last;  // of a start alone: made again, as the other is
    Troubles& troubles;
    const std::atomic<bool>& free_is_free;  // else containers give nothing back
    std::function<bool()> compaction_lacked_space;  // since the last call
    std::function<void()> look_at_erasures;         // about once a second
    std::function<void(const std::string&)> warn;
    std::function<void(const Status&)> failed;  // the disk does
  };
  explicit Relief(Parts parts);
  ~Relief() { stop(); }
  Relief(const Relief&) = delete;
  Relief& operator=(const Relief&) = delete;

  void start();
  // Returns when the step in hand has ended.
  void stop();

  // Whatever is free goes back to the file system, until the reserve is whole, and then the
  // ballast. False: there was nothing that could be given.
  bool make_room();

  // What the last attempt of containers to grow came to.
  void growth_told(const Status& s);

 private:
  void run();
  // False where there is nothing to do.
  bool step();
  bool make_ballasts();
  void tell(const SpaceState& state, bool helpless);

  Parts parts_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  unsigned idle_steps_ = 0;  // of step(), since refusals were forgotten
  std::atomic<unsigned> rest_steps_{0};  // until the ballast is made again
  std::unique_ptr<Worker> worker_;
};

}  // namespace tablestore
