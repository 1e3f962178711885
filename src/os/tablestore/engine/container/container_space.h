// The ways in which containers grow, are prepared and give space back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/container/container_files.h"
#include "os/tablestore/engine/container/growth_memory.h"
#include "os/tablestore/engine/container/growth_policy.h"
#include "os/tablestore/engine/container/prepare_pace.h"
#include "os/tablestore/engine/counters.h"
#include "os/tablestore/engine/io/disk.h"

namespace tablestore {

// no_room: there is nothing to be had in this way, the file system is full, or something else makes
// growing fail, which is told to GrowthTold.
enum class Grown { yes, no_room };
enum class Worked { yes, nothing_to_do };

// What an attempt to grow, or to give space back, came to; an error that is not just a full file
// system stays until one succeeds.
using GrowthTold = std::function<void(const Status&)>;

inline bool no_room(const Result<Grown>& grown) { return grown.ok() && *grown == Grown::no_room; }
inline bool nothing_to_do(const Result<Worked>& worked) {
  return worked.ok() && *worked == Worked::nothing_to_do;
}

// Owns the files and the allocator, and changes both together: what the allocator calls free has
// its space. It decides only how much is done at once. Containers has the locks: one thread at a
// time changes the set of files (growth_mutex_), and one background step runs at a time
// (background_mutex_). Where it reports an error, the disk fails: a flush has, or a write of zeros.
class ContainerSpace {
 public:
  ContainerSpace(Disk& disk, const GrowthPolicy& policy, Counters& counters);
  ContainerSpace(const ContainerSpace&) = delete;
  ContainerSpace& operator=(const ContainerSpace&) = delete;

  // See Containers.
  Status open();
  void close() { files_.close(); }
  void on_failed_flush(std::function<void(const Status&)> f) {
    files_.on_failed_flush(std::move(f));
  }

  Allocator& allocator() { return allocator_; }
  const ContainerFiles& files() const { return files_; }
  GrowthMemory& memory() { return memory_; }
  // Asks the file system.
  Result<SpaceState> state() const;
  // Before any other thread is there. `others`: any thread calls it, which may hold growth_mutex_.
  void set_others(std::function<OtherSpace()> others) { others_ = std::move(others); }
  void on_growth(GrowthTold told) { told_ = std::move(told); }
  // Of the last attempt to grow, where it was not just a full file system.
  Status growth_error() const;
  // As of the last state(): see SpaceState::short_bytes.
  bool is_short() const { return is_short_; }

  // See Containers.
  Status make_again(uint32_t container);
  void fill_owned();

  // --- to grow; one thread at a time

  // Files that were being made at a crash, or could not be made.
  Status remove_incomplete();
  // Gives a punched run (of a class, or of any) its space again.
  Result<Grown> restore(std::optional<unsigned> slot_class, const SpaceState& state);
  // A new file.
  Result<Grown> create(unsigned slot_class);
  // The same for nobody yet: where there is not enough of something, nobody is told.
  Result<Grown> create_unasked(unsigned slot_class);
  // An entirely free container of another class; its class is only a name.
  Result<Grown> reclass(unsigned slot_class, Allocator::LastFree last);

  // --- background steps; `bytes_done` is what they moved

  // Writes zeros to free blocks of a class.
  Result<Worked> prepare(unsigned slot_class, uint64_t most_blocks, PreparePace::Piece* piece) {
    const auto run = allocator_.begin_prepare(slot_class, most_blocks);
    return run ? prepare(*run, piece) : Worked::nothing_to_do;
  }
  // To a run that begin_prepare() or its like has given. Nothing to do: there is no space for it.
  Result<Worked> prepare(const Run& run, PreparePace::Piece* piece);
  // Changes the set of files.
  Result<Worked> remove_idle(const QuietRule& rule, uint64_t* bytes_done);
  // In which nothing is held. It stays where a reservation needs it.
  Result<Worked> remove(uint32_t container, uint64_t* bytes_done);
  Result<Worked> punch(const QuietRule& rule, GrowthPolicy::PunchSize size,
                       uint64_t* bytes_done);

 private:
  void add(ContainerFiles::Found found);
  Status make(unsigned slot_class);
  // Where a flush has failed: that; else it is told, and there is no room.
  Result<Grown> failed(const Status& s);
  void tell(const Status& s);
  // A number for a container that is about to be made.
  uint32_t take_container_id();

  Disk& disk_;
  const GrowthPolicy& policy_;
  Counters& counters_;
  Allocator allocator_;
  ContainerFiles files_;
  GrowthMemory memory_;
  std::function<OtherSpace()> others_ = [] { return OtherSpace(); };
  GrowthTold told_ = [](const Status&) {};
  mutable std::mutex error_mutex_;
  Status growth_error_;  // guarded by error_mutex_
  mutable std::atomic<bool> is_short_{false};
};

}  // namespace tablestore
