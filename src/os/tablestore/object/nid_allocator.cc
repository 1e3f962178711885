// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/object/nid_allocator.h"

#include <limits>

#include "include/encoding.h"
#include "os/tablestore/rows/keys.h"

namespace tablestore {

namespace {

constexpr uint64_t batch = 1 << 20;
constexpr std::string_view row_name = "nid_max";

}  // namespace

class NidAllocator::Raise : public Txn {
 public:
  Raise(NidAllocator& nids, uint64_t max) : nids(nids), max(max)
  {
    ceph::buffer::list bl;
    ceph::encode(max, bl);
    put(Family::super, meta_key(row_name), bl.to_str());
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

Result<uint64_t> NidAllocator::load(Engine& engine)
{
  std::string value;
  auto found = engine.get(Family::super, meta_key(row_name), &value);
  if (!found.ok())
    return found.status();
  if (!*found)
    return uint64_t(0);
  ceph::buffer::list bl;
  bl.append(value);
  uint64_t max = 0;
  try {
    auto p = bl.cbegin();
    ceph::decode(max, p);
  } catch (const ceph::buffer::error&) {
    return Status(EIO, "the row nid_max is damaged; run fsck");
  }
  if (max % batch != 0 || max > std::numeric_limits<uint64_t>::max() / 2)
    return Status(EIO, "the row nid_max is damaged: no store has the bound " + std::to_string(max));
  return max;
}

}  // namespace tablestore
