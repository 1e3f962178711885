#include "os/tablestore/engine/container/pace.h"

#include <algorithm>

#include "os/tablestore/engine/require.h"

namespace tablestore {

Pace::Pace(uint64_t least, uint64_t most) : least_(least), most_(most), rate_(most / 4) {
  require(0 < least && least <= most, "background work gets on");
  rate_ = std::max(rate_, least_);
}

Pace::Duration Pace::wrote(uint64_t bytes, Duration took) {
  if (bytes >= telling_bytes)
    judge(std::chrono::duration<double, std::nano>(took).count() / double(bytes));
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(double(bytes) / double(rate_)));
}

void Pace::judge(double ns_per_byte) {
  quickest_ = pieces_ == 0 ? ns_per_byte : std::min(quickest_, ns_per_byte);
  const double alone =
      quickest_before_ > 0 ? std::min(quickest_, quickest_before_) : quickest_;
  if (ns_per_byte > 2 * alone)
    rate_ = std::max(least_, rate_ - rate_ / 4);
  else
    rate_ = std::min(most_, rate_ + rate_ / 4);
  if (++pieces_ < window_pieces) return;
  pieces_ = 0;
  quickest_before_ = quickest_;
}

}  // namespace tablestore
