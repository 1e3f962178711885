// How fast background work may write to a disk that others use too.
#pragma once

#include <chrono>
#include <cstdint>

namespace tablestore {

// As LEDBAT (RFC 6817) finds its place on a network: how long a byte takes alone is the least that
// it took of late, and where it takes twice as long somebody else wants the disk. So the rate goes
// up by a quarter with each piece that is quick, and down by a quarter with each that is not.
//
// A value. One thread.
class Pace {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // Bytes per second; 0 < least <= most.
  Pace(uint64_t least, uint64_t most);

  // A piece was written. For how long, from its begin, there is to be no other one.
  Duration wrote(uint64_t bytes, Duration took);

 private:
  static constexpr unsigned window_pieces = 64;
  // Less says more of the call than of the disk.
  static constexpr uint64_t telling_bytes = 256 << 10;

  void judge(double ns_per_byte);

  const uint64_t least_, most_;
  uint64_t rate_;
  // The least of this window of pieces, and of the one before; 0: of none yet.
  double quickest_ = 0, quickest_before_ = 0;
  unsigned pieces_ = 0;
};

}  // namespace tablestore
