// What attempts to grow have shown.
#pragma once

#include <atomic>
#include <optional>

namespace tablestore {

// Thread-safe without a lock: allocate() asks it before it waits for its turn to grow. These are
// hints, and one that is out of date for a moment does no harm.
class GrowthMemory {
 public:
  // allocate() found no free slot of this class. Forgotten when that class gets a container.
  void note_lacked(unsigned slot_class) {
    lacked_.store(int(slot_class), std::memory_order_relaxed);
  }
  void note_container_for(unsigned slot_class) {
    int lacked = int(slot_class);
    lacked_.compare_exchange_strong(lacked, -1);
  }
  std::optional<unsigned> lacked_class() const {
    const int lacked = lacked_.load(std::memory_order_relaxed);
    return lacked < 0 ? std::nullopt : std::optional<unsigned>(lacked);
  }

  // The last file could not be made: only reservations try again, and nobody is promised what it
  // would have held. Forgotten when one was made, when space was given back, and after a while.
  void note_file(bool made) { file_refused_ = !made; }
  bool file_refused() const { return file_refused_; }

  // There was no space for a container's new name, or no descriptor: nobody tries again. Forgotten
  // when space was given back, and after a while.
  void note_name_refused() { name_refused_ = true; }
  bool name_refused() const { return name_refused_; }

  // There was no space to punch, which needs some: nobody tries again for so many steps.
  static constexpr unsigned punch_pause = 60;
  void note_punch_refused() { punch_pause_ = punch_pause; }
  // Of one step.
  bool may_punch() { return punch_pause_ == 0 || --punch_pause_ == 0; }

  void note_space_given_back() {
    file_refused_ = name_refused_ = false;
    punch_pause_ = 0;
  }

 private:
  std::atomic<int> lacked_{-1};
  std::atomic<bool> file_refused_{false};
  std::atomic<bool> name_refused_{false};
  std::atomic<unsigned> punch_pause_{0};  // changed by background steps, one at a time
};

}  // namespace tablestore
