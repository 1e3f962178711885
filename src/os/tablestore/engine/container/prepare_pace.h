// How fast space is written ahead of use.
#pragma once

#include <chrono>
#include <cstdint>

namespace tablestore {

// One first touch in a group costs as much as many: a commit of the file system's journal. So what
// is prepared is worth something as long as it keeps ahead of those who use it up, and takes the
// disk from them for nothing where it does not. Hence
//
// * in pieces that take some milliseconds, with one flush each, which is such a commit too. Nobody
//   waits longer for a flush of the log, or for the blocks that a piece has in its hands;
// * after a piece the disk is the others' for as long as the piece took, and for up to eight times
//   as long where pieces take long, because the disk is slow or others are busy on it;
// * after four times as much as is kept ahead, with hardly anything ahead all the time, it rests,
//   from 1 s to 16 s as it finds the same again.
//
// A value. One thread.
class PreparePace {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // Never more than so many bytes a second, which is not 0; so many are to be kept ahead.
  PreparePace(uint64_t bytes_per_second, uint64_t ahead_bytes);

  // The most to prepare at once.
  uint64_t piece_bytes() const { return piece_bytes_; }
  // A piece was written. `is_behind`: hardly anything is ahead now. For how long to rest.
  Duration wrote(uint64_t bytes, Duration took, bool is_behind);
  // All is ahead that is to be. When to look again: soon, where it was used up just before.
  Duration nothing_to_do();

  static constexpr uint64_t least_piece_bytes = 1 << 20, most_piece_bytes = 8 << 20;

 private:
  void adapt_piece(uint64_t bytes, Duration took);
  // Zero, where it is not in vain.
  Duration rest_in_vain(uint64_t bytes, bool is_behind);

  const uint64_t bytes_per_second_, in_vain_bytes_;
  uint64_t piece_bytes_ = least_piece_bytes;
  uint64_t behind_bytes_ = 0;  // written since something was ahead, or since the last rest
  Duration long_rest_;         // the next one
  unsigned looks_ = 0;         // in a row with nothing to do
};

}  // namespace tablestore
