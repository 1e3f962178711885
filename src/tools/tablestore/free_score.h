// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tablestore_tool {

/// How fragmented free space is, as BlueStore's allocators count it: a run of twice the length is
/// worth 2.2 times as much, and the score is where the sum lies between one run of all and single
/// blocks.
class FreeScore {
 public:
  void add(uint64_t blocks)
  {
    sum += worth(blocks);
    total += blocks;
    ++count;
    longest = std::max(longest, blocks);
  }
  uint64_t free_blocks() const { return total; }
  uint64_t runs() const { return count; }
  uint64_t largest() const { return longest; }
  /// From 0, one run, to 1, none longer than a block.
  double value() const
  {
    if (total <= 1)
      return 0;
    const double best = worth(total), worst = double(total) * worth(1);
    return std::clamp((best - sum) / (best - worst), 0.0, 1.0);
  }

 private:
  static constexpr double worth_of_twice = 1.1;   ///< beside being twice as much

  static double worth(uint64_t blocks)
  {
    const unsigned power = std::bit_width(blocks) - 1;
    const double below = double(uint64_t(1) << power);
    const double above_part = (double(blocks) - below) / below;
    const double scale = std::pow(worth_of_twice, power);
    return below * scale * (1 - above_part) + 2 * below * scale * worth_of_twice * above_part;
  }

  double sum = 0;
  uint64_t total = 0, count = 0, longest = 0;
};

}  // namespace tablestore_tool
