#include "os/tablestore/engine/container/prepare_pace.h"

#include <algorithm>

#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;
using Duration = PreparePace::Duration;

// Of a piece's writing.
constexpr Duration short_write = 2ms, long_write = 8ms;
// Of each MiB's: a disk of 1 GB/s. What takes longer rests longer than it took.
constexpr Seconds quick_mebibyte = 1ms;
constexpr double most_times = 8;
constexpr Duration most_rest = 1s;

constexpr Duration window_length = 250ms, rest_window_length = 100ms;
constexpr Duration first_rest = 1s, last_rest = 16s;
// First touches to what was prepared: more is in vain. One of a group of five is such, then.
constexpr double in_vain = 0.25;

constexpr Duration soon = 10ms, later = 100ms, rest_look = 20ms;
constexpr unsigned looks_soon = 10;

Duration whole(Seconds time) { return std::chrono::duration_cast<Duration>(time); }

}  // namespace

PreparePace::PreparePace(uint64_t bytes_per_second)
    : bytes_per_second_(bytes_per_second), next_rest_(first_rest) {
  require(bytes_per_second > 0, "what is prepared is prepared at some time");
}

bool PreparePace::is_due(Time now, uint64_t first_touch_bytes) {
  if (is_resting_ && goes_on_resting(now, first_touch_bytes)) return false;
  if (now < due_) return false;
  if (!is_open_)
    begin_window(now, first_touch_bytes);
  else if (now - window_.begin >= window_length)
    judge(now, first_touch_bytes);
  return !is_resting_;
}

void PreparePace::begin_window(Time now, uint64_t first_touch_bytes) {
  window_ = {now, first_touch_bytes, 0};
  is_open_ = true;
}

// A window in which nothing was prepared, as where a container was made, says nothing.
void PreparePace::judge(Time now, uint64_t first_touch_bytes) {
  const double touched = double(first_touch_bytes - window_.first_touch_bytes);
  const double prepared = double(window_.prepared_bytes);
  if (prepared > 0 && touched > in_vain * prepared) {
    could_ = prepared / Seconds(now - window_.begin).count();
    is_resting_ = true;
    rest_ends_ = now + next_rest_;
    next_rest_ = std::min(2 * next_rest_, last_rest);
  } else if (prepared > 0) {
    next_rest_ = first_rest;
  }
  begin_window(now, first_touch_bytes);
}

bool PreparePace::goes_on_resting(Time now, uint64_t first_touch_bytes) {
  const Duration passed = now - window_.begin;
  if (now < rest_ends_ && passed < rest_window_length) return true;
  const double touched = double(first_touch_bytes - window_.first_touch_bytes);
  is_resting_ = now < rest_ends_ && touched / Seconds(passed).count() > could_;
  begin_window(now, first_touch_bytes);
  return is_resting_;
}

void PreparePace::wrote(Time now, const Piece& piece) {
  looks_ = 0;
  window_.prepared_bytes += piece.bytes;
  adapt_piece(piece);
  due_ = now + rest_after(piece);
}

Duration PreparePace::rest_after(const Piece& piece) const {
  const double mebibytes = double(piece.bytes) / double(least_piece_bytes);
  const double times = std::clamp(Seconds(piece.write) / quick_mebibyte / mebibytes, 1.0,
                                  most_times);
  const Duration share = std::max(whole(Seconds(piece.write) * times), piece.flush);
  const Seconds rate = Seconds(double(piece.bytes) / double(bytes_per_second_));
  return std::max(std::min(share, most_rest), whole(rate - piece.write - piece.flush));
}

// Soon where it was used up just before.
void PreparePace::nothing_to_do(Time now) {
  is_open_ = false;
  next_rest_ = first_rest;
  looks_ = std::min(looks_ + 1, looks_soon);
  due_ = now + (looks_ < looks_soon ? soon : later);
}

Duration PreparePace::wait(Time now) const {
  return is_resting_ ? rest_look : std::clamp<Duration>(due_ - now, 0s, later);
}

// Less than a whole piece says nothing of larger ones. Where flushes take long, there are few.
void PreparePace::adapt_piece(const Piece& piece) {
  const Duration enough = std::clamp(piece.flush, short_write, long_write);
  if (piece.write > long_write)
    piece_bytes_ = std::max(piece_bytes_ / 2, least_piece_bytes);
  else if (piece.write < enough && piece.bytes == piece_bytes_)
    piece_bytes_ = std::min(piece_bytes_ * 2, most_piece_bytes);
}

}  // namespace tablestore
