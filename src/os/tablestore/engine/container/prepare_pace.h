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
// * where requests take more than is prepared meanwhile, by far, it rests until they take less than
//   could be prepared, and tries again after a while, at first a second, then up to 16.
//
// A value, without a clock of its own. One thread.
class PreparePace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  // Never more than so many bytes a second, which is not 0.
  explicit PreparePace(uint64_t bytes_per_second);

  // Before a piece, and again after what it returns: how long to do nothing yet; 0: none.
  // `taken_bytes`: what requests have ever taken of the kind that is prepared.
  Duration before(Time now, uint64_t taken_bytes);
  // The most to prepare at once.
  uint64_t piece_bytes() const { return piece_bytes_; }

  struct Piece {
    uint64_t bytes = 0;
    Duration write{}, flush{};  // how long each took
  };
  // For how long to rest, from its end.
  Duration wrote(const Piece& piece);
  // All is prepared that is to be. When to look again: soon, where it was used up just before.
  Duration nothing_to_do();

  static constexpr uint64_t least_piece_bytes = 1 << 20, most_piece_bytes = 8 << 20;

 private:
  void adapt_piece(const Piece& piece);
  void begin_window(Time now, uint64_t taken_bytes);
  // At the end of a window.
  void judge(Time now, uint64_t taken_bytes);
  bool goes_on_resting(Time now, uint64_t taken_bytes);

  uint64_t bytes_per_second_;
  uint64_t piece_bytes_ = least_piece_bytes;
  unsigned looks_ = 0;  // in a row with nothing to do

  // What is compared while there is always something to prepare, and in a rest.
  struct Window {
    Time begin;
    uint64_t taken_bytes;     // at its begin
    uint64_t prepared_bytes;  // since
  };
  Window window_{};
  bool is_open_ = false;      // the window
  double could_ = 0;          // bytes per second, of the last window
  bool is_resting_ = false;
  Time rest_ends_{};
  Duration next_rest_;
};

}  // namespace tablestore
