// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/check/deep_reads.h"

#include <algorithm>

#include "common/Thread.h"

namespace tablestore {

namespace {

constexpr uint64_t piece_bytes = 4 << 20;
constexpr uint64_t bytes_ahead = 64 << 20;
constexpr size_t pieces_ahead = 1024;

}  // namespace

DeepReads::DeepReads(unsigned threads, Read read, Told told)
  : threads_max(threads), read(std::move(read)), told(std::move(told))
{
}

DeepReads::~DeepReads()
{
  {
    std::lock_guard l{mutex};
    stopping = true;
  }
  wanted.notify_all();
  for (std::thread& thread : threads)
    thread.join();
}

Status DeepReads::add(const OnodeRef& o)
{
  for (uint64_t offset = 0; offset < o->size; offset += piece_bytes) {
    if (Status s = add({o, offset, std::min(piece_bytes, o->size - offset)}); !s.ok())
      return s;
  }
  return {};
}

Status DeepReads::add(Piece piece)
{
  if (threads_max == 0) {
    piece.good = read(piece);
    return told(piece);
  }
  {
    std::lock_guard l{mutex};
    bytes += piece.length;
    pieces.push_back(std::move(piece));
    if (idle == 0 && threads.size() < threads_max)
      threads.push_back(make_named_thread("tstore_fsck", &DeepReads::work, this));
  }
  wanted.notify_one();
  return tell(bytes_ahead, pieces_ahead);
}

Status DeepReads::finish() { return tell(0, 0); }

Status DeepReads::tell(uint64_t bytes_max, size_t pieces_max)
{
  std::unique_lock l{mutex};
  while (!pieces.empty()) {
    if (!pieces.front().done) {
      if (bytes <= bytes_max && pieces.size() <= pieces_max)
        return {};
      first_is_done.wait(l, [this] { return pieces.front().done; });
    }
    const Piece piece = std::move(pieces.front());
    pieces.pop_front();
    --begun;
    bytes -= piece.length;
    l.unlock();
    if (Status s = told(piece); !s.ok())
      return s;
    l.lock();
  }
  return {};
}

void DeepReads::work()
{
  std::unique_lock l{mutex};
  while (true) {
    ++idle;
    wanted.wait(l, [this] { return stopping || begun < pieces.size(); });
    --idle;
    if (stopping)
      return;
    Piece& mine = pieces[begun++];
    l.unlock();
    mine.good = read(mine);
    l.lock();
    mine.done = true;
    if (&mine == &pieces.front())
      first_is_done.notify_one();
  }
}

}  // namespace tablestore
