// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "os/tablestore/engine/status.h"
#include "os/tablestore/object/onode.h"

namespace tablestore {

/// Reads and verifies the data of objects for a deep fsck, many pieces at a time: the disk works
/// on while fsck looks at rows.
///
/// What came of it is told in the thread that calls, in the order of the objects and of their
/// pieces, however the reads end. The extent maps of the objects are loaded, and nothing changes
/// them. Without threads a piece is read when it is added.
class DeepReads {
 public:
  /// Each waits for the disk most of the time.
  static constexpr unsigned threads_default = 16;

  /// A part of one object, and whether it could be read.
  struct Piece {
    OnodeRef o;
    uint64_t offset;
    uint64_t length;
    bool done = false;
    bool good = false;
  };
  /// Whether a piece is good. Called by all threads.
  using Read = std::function<bool(const Piece&)>;
  /// An error ends add() or finish(), and is what they return.
  using Told = std::function<Status(const Piece&)>;

  DeepReads(unsigned threads, Read read, Told told);
  /// What is not begun is not read.
  ~DeepReads();
  DeepReads(const DeepReads&) = delete;
  DeepReads& operator=(const DeepReads&) = delete;

  /// All of its data. Waits where much is to be read already.
  Status add(const OnodeRef& o);
  /// Returns when all has been told.
  Status finish();

 private:
  Status add(Piece piece);
  /// Tells of what is done, up to the first piece that is not; waits for as much as is more than
  /// `bytes_max` and `pieces_max`.
  Status tell(uint64_t bytes_max, size_t pieces_max);
  void work();

  const unsigned threads_max;
  const Read read;
  const Told told;

  std::mutex mutex;                 ///< guards all below
  std::condition_variable wanted;
  std::condition_variable first_is_done;
  std::deque<Piece> pieces;         ///< neither end moves the others
  size_t begun = 0;                 ///< of these
  unsigned idle = 0;                ///< threads
  uint64_t bytes = 0;               ///< of all pieces
  bool stopping = false;
  std::vector<std::thread> threads;
};

}  // namespace tablestore
