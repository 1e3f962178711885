// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/object/nid_allocator.h"

#include <limits>

#include "include/encoding.h"
#include "os/tablestore/home/copied_row.h"
#include "os/tablestore/rows/keys.h"

namespace tablestore {

namespace {

constexpr uint64_t batch = 1 << 20;
constexpr std::string_view row_name = "nid_max";

std::optional<uint64_t> decode_bound(std::string_view value)
{
  ceph::buffer::list bl;
  bl.append(value);
  uint64_t max = 0;
  try {
    auto p = bl.cbegin();
    ceph::decode(max, p);
  } catch (const ceph::buffer::error&) {
    return std::nullopt;
  }
  if (max % batch != 0 || max > std::numeric_limits<uint64_t>::max() / 2)
    return std::nullopt;   // no store has such a bound
  return max;
}

}  // namespace

class NidAllocator::Raise : public Txn {
 public:
  Raise(NidAllocator& nids, uint64_t max) : nids(nids), max(max)
  {
    NidAllocator::put(*this, max);
    sequencer = &nids;
  }
  void durable() noexcept override
  {
    std::lock_guard l{nids.mutex};
    nids.durable_max = max;
    nids.cond.notify_all();
  }

 private:
  NidAllocator& nids;
  const uint64_t max;
};

NidAllocator::NidAllocator(Engine& engine, Threads& threads, uint64_t durable_max)
  : engine(engine),
    threads(threads),
    next(durable_max + 1),
    durable_max(durable_max),
    queued_max(durable_max)
{
}

uint64_t NidAllocator::allocate()
{
  std::unique_lock l{mutex};
  if (next + batch / 2 > queued_max)
    raise_ahead(l);
  const uint64_t nid = next++;
  threads.wait(l, cond, [&] { return nid < durable_max; });
  return nid;
}

void NidAllocator::raise_ahead(std::unique_lock<ceph::mutex>& l)
{
  queued_max += batch;
  auto raise = std::make_shared<Raise>(*this, queued_max);
  l.unlock();
  engine.submit(raise);
  l.lock();
}

uint64_t NidAllocator::bound_above(uint64_t nid) { return (nid / batch + 1) * batch; }

void NidAllocator::put(Txn& txn, uint64_t bound)
{
  ceph::buffer::list bl;
  ceph::encode(bound, bl);
  CopiedRow::put(txn, meta_key(row_name), bl.to_str());
}

Result<NidAllocator::Loaded> NidAllocator::load(Engine& engine, bool has_copies)
{
  const auto is_sound = [](std::string_view value) { return decode_bound(value).has_value(); };
  const auto row = CopiedRow::load(engine, meta_key(row_name), has_copies, is_sound);
  if (!row.ok())
    return row.status();
  Loaded loaded{std::nullopt, row->damage};
  if (row->value)
    loaded.bound = decode_bound(*row->value);
  return loaded;
}

}  // namespace tablestore
