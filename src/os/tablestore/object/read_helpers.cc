// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab

#include "os/tablestore/object/read_helpers.h"

#include <algorithm>

#include "common/Thread.h"

namespace tablestore {

ReadHelpers::ReadHelpers(unsigned threads_max) : threads_max(threads_max) {}

ReadHelpers::~ReadHelpers()
{
  {
    std::lock_guard l{mutex};
    stopping = true;
  }
  wanted.notify_all();
  for (std::thread& thread : threads)
    thread.join();
}

void ReadHelpers::run(size_t count, const std::function<void(size_t)>& f)
{
  if (count <= 1) {
    if (count == 1)
      f(0);
    return;
  }
  auto job = std::make_shared<Job>();
  job->f = &f;
  job->count = count;
  std::unique_lock l{mutex};
  while (threads.size() < std::min<size_t>(threads_max, count - 1))
    threads.push_back(make_named_thread("tstore_read", &ReadHelpers::work, this));
  jobs.push_back(job);
  wanted.notify_all();
  take_part(*job, l);
  // Helpers may still be at what they have begun.
  job->finished.wait(l, [&job] { return job->running == 0; });
  std::erase(jobs, job);
}

void ReadHelpers::take_part(Job& job, std::unique_lock<std::mutex>& l)
{
  while (job.next < job.count) {
    const size_t mine = job.next++;
    ++job.running;
    l.unlock();
    (*job.f)(mine);
    l.lock();
    if (--job.running == 0 && job.next == job.count)
      job.finished.notify_all();
  }
}

void ReadHelpers::work()
{
  std::unique_lock l{mutex};
  while (true) {
    wanted.wait(l, [this] { return stopping || !jobs.empty(); });
    if (jobs.empty())
      return;
    const std::shared_ptr<Job> job = jobs.front();
    if (job->next == job->count) {
      jobs.pop_front();
      continue;
    }
    take_part(*job, l);
  }
}

}  // namespace tablestore
