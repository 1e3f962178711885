// The work of an engine without threads (EngineOptions::stepped), one step at a time: a simulator
// decides what happens next, so that one seed gives one history.
#pragma once

#include "os/tablestore/engine/engine.h"

namespace tablestore {

// Everything in the thread that uses the engine. drain(), checkpoint(), abandon() and close() of
// the engine make the steps that they wait for.
class EngineStepper {
 public:
  explicit EngineStepper(Engine& engine) : engine_(engine) {}
  // One round of the commit lane, from the queue to durable. Returns at once where nothing is
  // queued.
  void make_durable();
  // Puts what is durable into the table.
  void apply();
  // Both.
  void commit() {
    make_durable();
    apply();
  }
  // The checkpoint that the log's filling asks for, if it does.
  void checkpoint_if_requested();
  // Flushes the table, as it does of its own accord when a memtable is full: at any moment but
  // during apply(), which is why a write queue's reap() may call it.
  Status flush_table();
  // One step each of Containers' background work; true where there was something to do.
  Result<bool> prepare();
  Result<bool> shrink();

 private:
  Engine& engine_;
};

}  // namespace tablestore
