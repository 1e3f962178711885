// How fast space is written ahead of use.
#pragma once

#include <chrono>
#include <cstdint>

namespace tablestore {

// One first touch in a group of transactions costs as much as many: a commit of the file system's
// journal. So what is prepared is worth something as long as it keeps ahead of those who use it up,
// and takes the disk from them for nothing where it does not. Hence
//
// * in pieces that take some milliseconds, with one flush each, which is such a commit too;
// * after a piece the disk is the others' for as long as the piece was written where that went at
//   1 GB/s, and up to eight times as long where it was slower, because the disk is or others are
//   busy on it; but no longer than a second;
// * where first touches go on, more than a fifth of what requests take, it rests until they are
//   fewer than could be prepared, and tries again after a while, at first a second, then up to 16.
//
// A value, without a clock of its own. One thread.
class PreparePace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  // Never more than so many bytes a second, which is not 0.
  explicit PreparePace(uint64_t bytes_per_second);

  // Whether to prepare now. `first_touch_bytes`: what requests have ever taken of the kind that is
  // prepared, and was not.
  bool is_due(Time now, uint64_t first_touch_bytes);
  // The most to prepare at once.
  uint64_t piece_bytes() const { return piece_bytes_; }

  struct Piece {
    uint64_t bytes = 0;
    Duration write{}, flush{};  // how long each took
  };
  // A piece has ended; or all is prepared that is to be.
  void wrote(Time now, const Piece& piece);
  void nothing_to_do(Time now);
  // How long to wait before is_due() is asked again. Not long: there is other work to look for.
  Duration wait(Time now) const;

  static constexpr uint64_t least_piece_bytes = 1 << 20, most_piece_bytes = 8 << 20;

 private:
  void adapt_piece(const Piece& piece);
  Duration rest_after(const Piece& piece) const;
  void begin_window(Time now, uint64_t first_touch_bytes);
  // At the end of a window.
  void judge(Time now, uint64_t first_touch_bytes);
  bool goes_on_resting(Time now, uint64_t first_touch_bytes);

  uint64_t bytes_per_second_;
  uint64_t piece_bytes_ = least_piece_bytes;
  Time due_{};
  unsigned looks_ = 0;  // in a row with nothing to do

  // What is compared while there is always something to prepare, and in a long rest.
  struct Window {
    Time begin;
    uint64_t first_touch_bytes;  // at its begin
    uint64_t prepared_bytes;     // since
  };
  Window window_{};
  bool is_open_ = false;         // the window
  bool is_resting_ = false;
  double could_ = 0;             // bytes per second, before the rest
  Time rest_ends_{};
  Duration next_rest_;
};

}  // namespace tablestore
