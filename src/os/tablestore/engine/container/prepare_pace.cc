#include "os/tablestore/engine/container/prepare_pace.h"

#include <algorithm>

#include "os/tablestore/engine/require.h"

namespace tablestore {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

// Of a piece's writing.
constexpr PreparePace::Duration short_write = 2ms, long_write = 8ms;
// Of each MiB's: a disk of 1 GB/s. What takes longer rests longer than it took.
constexpr Seconds quick_mebibyte = 1ms;
constexpr double most_times = 8;
constexpr PreparePace::Duration most_rest = 1s;

constexpr PreparePace::Duration window_length = 250ms, rest_look = 100ms;
constexpr PreparePace::Duration first_rest = 1s, last_rest = 16s;
// Taken to prepared: more is in vain. Of eight writes of a group one is then a first touch, mostly.
constexpr double in_vain = 1.25;

constexpr PreparePace::Duration soon = 10ms, later = 100ms;
constexpr unsigned looks_soon = 100;

PreparePace::Duration whole(Seconds time) {
  return std::chrono::duration_cast<PreparePace::Duration>(time);
}

}  // namespace

PreparePace::PreparePace(uint64_t bytes_per_second)
    : bytes_per_second_(bytes_per_second), next_rest_(first_rest) {
  require(bytes_per_second > 0, "what is prepared is prepared at some time");
}

PreparePace::Duration PreparePace::before(Time now, uint64_t taken_bytes) {
  if (is_resting_) {
    if (goes_on_resting(now, taken_bytes)) return rest_look;
    is_resting_ = false;
    is_open_ = false;
  }
  if (!is_open_)
    begin_window(now, taken_bytes);
  else if (now - window_.begin >= window_length)
    judge(now, taken_bytes);
  return is_resting_ ? rest_look : Duration{};
}

void PreparePace::begin_window(Time now, uint64_t taken_bytes) {
  window_ = {now, taken_bytes, 0};
  is_open_ = true;
}

void PreparePace::judge(Time now, uint64_t taken_bytes) {
  const double taken = double(taken_bytes - window_.taken_bytes);
  const double prepared = double(window_.prepared_bytes);
  if (taken > in_vain * prepared) {
    could_ = prepared / Seconds(now - window_.begin).count();
    is_resting_ = true;
    rest_ends_ = now + next_rest_;
    next_rest_ = std::min(2 * next_rest_, last_rest);
  } else {
    next_rest_ = first_rest;
  }
  begin_window(now, taken_bytes);
}

bool PreparePace::goes_on_resting(Time now, uint64_t taken_bytes) {
  if (now >= rest_ends_) return false;
  if (now - window_.begin < rest_look) return true;
  const double taken = double(taken_bytes - window_.taken_bytes);
  const double rate = taken / Seconds(now - window_.begin).count();
  begin_window(now, taken_bytes);
  return rate > could_;
}

PreparePace::Duration PreparePace::wrote(const Piece& piece) {
  looks_ = 0;
  if (piece.bytes == 0) return {};  // a container was made
  window_.prepared_bytes += piece.bytes;
  adapt_piece(piece);
  const double mebibytes = double(piece.bytes) / double(least_piece_bytes);
  const double times = std::clamp(Seconds(piece.write) / quick_mebibyte / mebibytes, 1.0,
                                  most_times);
  const Duration share =
      std::min(std::max(whole(Seconds(piece.write) * times), piece.flush), most_rest);
  const Seconds rate = Seconds(double(piece.bytes) / double(bytes_per_second_));
  return std::max(share, whole(rate - piece.write - piece.flush));
}

PreparePace::Duration PreparePace::nothing_to_do() {
  is_open_ = false;
  next_rest_ = first_rest;
  looks_ = std::min(looks_ + 1, looks_soon);
  return looks_ < looks_soon ? soon : later;
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
