// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/space/space_gate.h"

#include <algorithm>
#include <thread>

namespace tablestore {

namespace {

constexpr auto available_lifetime = std::chrono::milliseconds(100);
constexpr auto delay_max = std::chrono::seconds(1);
constexpr auto retry_interval = std::chrono::milliseconds(50);

}  // namespace

SpaceGate::SpaceGate(Engine& engine, uint64_t reserve_bytes, bool waits)
  : engine(engine), reserve_max_bytes(reserve_bytes), waits(waits),
    available(engine.space().available_bytes), available_at(ceph::mono_clock::now())
{
}

uint64_t SpaceGate::available_bytes()
{
  std::lock_guard l{mutex};
  const auto now = ceph::mono_clock::now();
  if (now - available_at > available_lifetime) {
    available = engine.space().available_bytes;
    available_at = now;
  }
  return available;
}

ceph::timespan SpaceGate::delay(uint64_t bytes)
{
  const uint64_t left = available_bytes();
  if (left >= reserve_max_bytes)
    return ceph::timespan::zero();
  // What is left lasts reserve_seconds at this rate, whoever writes and however much.
  const uint64_t rate = std::max<uint64_t>(left / reserve_seconds, 64 << 10);
  std::lock_guard l{mutex};
  const auto now = ceph::mono_clock::now();
  next_write_at = std::max(next_write_at, now) +
      std::chrono::duration_cast<ceph::timespan>(
          std::chrono::duration<double>(double(bytes) / rate));
  next_write_at = std::min(next_write_at, now + delay_max);
  return next_write_at - now;
}

bool SpaceGate::rows_fit(const Claim& claim, std::string* why)
{
  if (claim.row_bytes <= row_bytes_free || claim.removes || claim.removes_rows)
    return true;
  const uint64_t left = engine.space().available_bytes;
  if (left >= claim.data_bytes + claim.row_bytes)
    return true;
  *why = "no space for " + std::to_string(claim.row_bytes) + " bytes of rows: " +
      std::to_string(left) + " are available";
  return false;
}

Status SpaceGate::reserve(const Claim& claim)
{
  if (std::string why; !rows_fit(claim, &why))
    return Status(ENOSPC, why);
  return claim.data_bytes > 0 ? engine.reserve(claim.data_bytes) : Status();
}

Status SpaceGate::reserve_at_last(const Claim& claim)
{
  if (std::string why; !rows_fit(claim, &why))
    return Status(ENOSPC, why);
  return engine.reserve_at_last(claim.data_bytes);
}

Status SpaceGate::admit(const Claim& claim, ceph::timespan* waited)
{
  *waited = ceph::timespan::zero();
  if (!waits)
    return reserve(claim);
  if (claim.is_of_osd) {
    if (reserve(claim).ok() || reserve_at_last(claim).ok())
      return {};
  }
  const auto start = ceph::mono_clock::now();
  const uint64_t bytes = claim.data_bytes + (claim.removes ? 0 : claim.row_bytes);
  if (const auto d = bytes > 0 ? delay(bytes) : ceph::timespan::zero();
      d > ceph::timespan::zero()) {
    std::this_thread::sleep_for(d);
    *waited = ceph::mono_clock::now() - start;
  }
  Status status = reserve(claim);
  bool is_released = false;   // what was freed; not where nothing gets on, as on a full file system
  // A store that only reads waits for nothing.
  while (!status.ok() && status.code() != EROFS) {
    if (ceph::mono_clock::now() - start >= patience) {
      if (reserve_at_last(claim).ok())
        status = {};
      if (status.ok() || (status.code() == ENOSPC && is_released))
        break;
    }
    // What was freed comes back when the transactions that freed it are durable.
    is_released = engine.wait_released();
    std::this_thread::sleep_for(retry_interval);
    status = reserve(claim);
    *waited = ceph::mono_clock::now() - start;
  }
  if (status.ok()) {
    // Until the next look at the engine: a fast writer must not run into the end of a full store
    // before anybody could see it coming.
    std::lock_guard l{mutex};
    available -= std::min(available, bytes);
  }
  return status;
}

}  // namespace tablestore
