#include "os/tablestore/engine/container/prepare_pace.h"

#include <algorithm>

#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

// Of a piece; where it takes longer, the rest is longer than the piece.
constexpr PreparePace::Duration short_piece = 2ms, long_piece = 8ms, usual_piece = 4ms;
constexpr double most_rest = 8;  // times what the piece took
constexpr PreparePace::Duration first_long_rest = 1s, most_long_rest = 16s;
constexpr uint64_t in_vain = 4;  // times what is kept ahead
constexpr PreparePace::Duration soon = 10ms, later = 100ms;
constexpr unsigned looks_soon = 100;

}  // namespace

PreparePace::PreparePace(uint64_t bytes_per_second, uint64_t ahead_bytes)
    : bytes_per_second_(bytes_per_second),
      in_vain_bytes_(in_vain * std::max(ahead_bytes, least_piece_bytes)),
      long_rest_(first_long_rest) {
  require(bytes_per_second > 0, "what is prepared is prepared at some time");
}

PreparePace::Duration PreparePace::wrote(uint64_t bytes, Duration took, bool is_behind) {
  looks_ = 0;
  if (bytes == 0) return {};  // a container was made
  adapt_piece(bytes, took);
  const double times = std::clamp(Seconds(took) / Seconds(usual_piece), 1.0, most_rest);
  const Seconds share = Seconds(took) * times;
  const Seconds rate = Seconds(double(bytes) / double(bytes_per_second_)) - Seconds(took);
  const Seconds rest = std::max({share, rate, Seconds(rest_in_vain(bytes, is_behind))});
  return std::chrono::duration_cast<Duration>(rest);
}

PreparePace::Duration PreparePace::nothing_to_do() {
  looks_ = std::min(looks_ + 1, looks_soon);
  return looks_ < looks_soon ? soon : later;
}

// Less than a whole piece says nothing of larger ones.
void PreparePace::adapt_piece(uint64_t bytes, Duration took) {
  if (took > long_piece)
    piece_bytes_ = std::max(piece_bytes_ / 2, least_piece_bytes);
  else if (took < short_piece && bytes == piece_bytes_)
    piece_bytes_ = std::min(piece_bytes_ * 2, most_piece_bytes);
}

PreparePace::Duration PreparePace::rest_in_vain(uint64_t bytes, bool is_behind) {
  if (!is_behind) {
    behind_bytes_ = 0;
    long_rest_ = first_long_rest;
    return {};
  }
  behind_bytes_ += bytes;
  if (behind_bytes_ < in_vain_bytes_) return {};
  behind_bytes_ = 0;
  const Duration rest = long_rest_;
  long_rest_ = std::min(2 * long_rest_, most_long_rest);
  return rest;
}

}  // namespace tablestore
