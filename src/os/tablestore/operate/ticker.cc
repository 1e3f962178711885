// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/operate/ticker.h"

#include <chrono>

namespace tablestore {

Ticker::Ticker(Threads& threads, std::function<void()> f) : tick(std::move(f))
{
  // Nobody waits for what a tick does, so a step of it gets nobody on.
  worker = threads.start("tick", Threads::Urgency::usual, [this] { run(); },
                         [this] { tick(); return false; });
}

Ticker::~Ticker()
{
  {
    std::lock_guard l{mutex};
    stopping = true;
    cond.notify_all();
  }
  worker.reset();
}

void Ticker::run()
{
  std::unique_lock l{mutex};
  while (!stopping) {
    l.unlock();
    tick();
    l.lock();
    cond.wait_for(l, std::chrono::seconds(1), [this] { return stopping; });
  }
}

}  // namespace tablestore
