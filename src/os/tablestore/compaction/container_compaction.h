// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/Formatter.h"
#include "common/ceph_mutex.h"
#include "os/tablestore/collection/collection.h"
#include "os/tablestore/compaction/object_walk.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/threads.h"
#include "os/tablestore/object/blocks_to_move.h"
#include "os/tablestore/object/onode.h"

namespace tablestore {

class Collections;
class ObjectData;
class Objects;
class TxnQueue;

/// Empties containers of which little is in use: the engine closes the emptiest, and here what
/// objects have in them is moved, until they are empty and their files go.
///
/// One transaction at a time, each of no more than `step_bytes` or of one reference map, in the
/// order of the object's collection; what is read is verified, and what cannot be read stays where
/// it is. It takes space as any writer does and stops where there is none, and rests for as long as
/// it works. Nothing of it is on the disk: after a restart it was never asked for.
///
/// Thread-safe: `mutex` guards `progress` and what is asked for; the rest is of its thread, or of
/// whoever makes the steps.
class ContainerCompaction {
 public:
  struct Parts {
    CephContext* cct;
    Engine& engine;
    Collections& collections;
    Objects& objects;
    ObjectData& data;
    TxnQueue& txns;
    Threads& threads;
  };
  explicit ContainerCompaction(const Parts& parts);
  ~ContainerCompaction();
  ContainerCompaction(const ContainerCompaction&) = delete;
  ContainerCompaction& operator=(const ContainerCompaction&) = delete;

  static constexpr int64_t max_live_percent_default = 25;

  /// Begins with containers that have at most so much of their blocks in use. -EALREADY where it is
  /// under way, -EINVAL where that is no percentage.
  int start(int64_t max_live_percent);
  /// Returns when it has ended. What was moved stays where it is.
  void stop();

  struct Progress {
    bool running = false;
    int64_t max_live_percent = 0;
    uint64_t passes = 0;             ///< over all objects, begun
    uint64_t containers_chosen = 0;
    uint64_t containers_emptied = 0;
    uint64_t containers_opened = 0;  ///< before they were empty: others had no other space
    uint64_t moves = 0;              ///< transactions
    uint64_t moved_bytes = 0;
    uint64_t left_bytes = 0;         ///< in containers that are chosen and not empty
    /// Of these, in the last pass: cannot be read; are shared, and nobody knows by whom.
    uint64_t unreadable_bytes = 0;
    uint64_t unaccounted_bytes = 0;
    std::string result;              ///< why it has ended
  };
  Progress progress() const;
  void dump(ceph::Formatter* f) const;

 private:
  static constexpr uint64_t step_bytes = 1 << 20;

  void run();
  /// False where there is nothing to do.
  bool step();
  void work();
  void begin();
  void begin_pass();
  void end_pass();
  /// Brings up to date which are closed still, and has empty ones removed.
  void look_at_containers();
  void move_object();
  void move_shared(const ReferenceMapName& name);
  /// To read: Objects::find(), under the collection's lock, shared. To change: Objects::load(),
  /// under the unique one, since only that is the onode that everybody else gets.
  enum class For { reading, change };
  /// Null where it is gone, or damaged.
  OnodeRef get(const Collection& c, const ghobject_t& oid, For purpose);
  /// Those of the objects that are there, and not damaged.
  std::vector<OnodeRef> get_all(const Collection& c, const std::vector<ghobject_t>& oids,
                                For purpose);
  std::vector<ghobject_t> objects_with_hash_of(const ghobject_t& oid);
  /// Of TxnQueue::queue_own(), which was asked to move so much.
  void note_move(int r, uint64_t bytes);
  void finish(const std::string& result);

  const Parts parts;
  CephContext* const cct;

  mutable ceph::mutex mutex = ceph::make_mutex("TableStore::ContainerCompaction::mutex");
  ceph::condition_variable cond;
  Progress now;              ///< under mutex, as the next
  bool stop_asked = false;
  bool ending = false;

  // ---- while it runs
  enum class Phase { begin, pass, end_of_pass };
  Phase phase = Phase::begin;
  ObjectWalk walk;
  std::set<uint32_t> closed;
  unsigned moves_since_look = 0;
  uint64_t moved_in_pass = 0;
  std::vector<ghobject_t> found;
  uint64_t next_block = 0;                    ///< of found.back()
  std::vector<ReferenceMapName> shared;       ///< by found.back() and others
  std::set<ReferenceMapName> tried;           ///< in this pass

  std::unique_ptr<Worker> worker;   ///< last
};

}  // namespace tablestore
