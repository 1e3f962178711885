// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/check/fsck.h"

#include "common/debug.h"
#include "common/pretty_binary.h"
#include "include/stringify.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/space/pool_totals.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.fsck "

namespace tablestore {

namespace {

constexpr size_t fix_bytes_max = 1 << 20;

}  // namespace

Fsck::Fsck(CephContext* cct, Engine& engine, ObjectData& data,
           const LostNames& lost_names, const std::vector<CollectionRef>& collections,
           CollectionRows collection_rows, unsigned read_threads, Options options)
  : cct(cct), engine(engine), data(data), lost_names(lost_names), options(std::move(options)),
    collection_rows(std::move(collection_rows)), fixes(std::make_shared<Txn>()),
    deep_reads(read_threads, [this](const auto& piece) { return is_good(piece); },
               [this](const auto& piece) { return check_piece(piece); })
{
  for (const auto& c : collections) {
    collection_bits[c->cid] = c->node.bits;
    KeyRange temp, normal;
    collection_key_range(c->cid, c->node.bits, &temp.first, &temp.last, &normal.first,
                         &normal.last);
    collection_ranges.push_back(temp);
    collection_ranges.push_back(normal);
    if (spg_t pgid; c->cid.is_pg(&pgid))
      pools_with_collections.insert(pgid.pool());
    has_meta |= c->cid.is_meta();
  }
}

int Fsck::run()
{
  engine.drain();
  engine_blocks = engine.owned_blocks();
  find_work();
  // Each relies on what those before it have found.
  constexpr Status (Fsck::*checks[])() = {
      &Fsck::check_objects,        &Fsck::check_own_onodes, &Fsck::check_shard_rows,
      &Fsck::check_inline_rows,
      &Fsck::check_omap_rows,      &Fsck::check_reference_maps, &Fsck::look_again,
      &Fsck::check_store_meta,     &Fsck::check_nid_bound, &Fsck::check_collection_rows,
      &Fsck::check_lost_names,     &Fsck::check_pool_stats};
  Status s;
  for (const auto check : checks) {
    if (s.ok())
      s = (this->*check)();
  }
  if (s.ok()) {
    submit_fixes();
    engine.drain();
    s = check_blocks();
  }
  if (s.code() == ECANCELED) {
    submit_fixes();
    engine.drain();
    dout(0) << s.what() << dendl;
    return -ECANCELED;
  }
  if (!s.ok()) {
    derr << s.what() << dendl;
    return s.code() == ENOTSUP ? -EOPNOTSUPP : -EIO;
  }
  dout(1) << (options.deep ? "deep, " : "") << numbers.size() << " objects, " << errors
          << " errors, " << repaired << " repaired, at most " << memory_bytes()
          << " bytes in memory" << dendl;
  return static_cast<int>(std::min<uint64_t>(errors - repaired, INT32_MAX));
}

uint64_t Fsck::memory_bytes() const
{
  uint64_t bytes = memory.most_bytes();
  for (const auto* bitmaps : {&engine_blocks, &owned_blocks, &contested_blocks, &settled}) {
    for (const auto& [container, bitmap] : *bitmaps)
      bytes += bitmap.memory_bytes();
  }
  return bytes;
}

// About: statistics may be wrong, and are checked last.
void Fsck::find_work()
{
  PoolTotals totals;
  if (!totals.load(engine).ok())
    return;
  const PoolStats sum = totals.sum();
  work_total = std::max<int64_t>(sum[PoolStats::objects], 0);
  if (options.deep)
    work_total = work_total * block_bytes + std::max<int64_t>(sum[PoolStats::stored_bytes], 0);
}

Status Fsck::advance(uint64_t work)
{
  work_done += work;
  if (options.goes_on(std::min(work_done, work_total), work_total))
    return {};
  return Status(ECANCELED, "interrupted, when " + std::to_string(numbers.size()) +
                               " objects had been looked at");
}

void Fsck::error(const std::string& what)
{
  ++errors;
  options.told(what);
  derr << "error: " << what << dendl;
}

void Fsck::repairable(const std::string& what, const std::function<void(Txn&)>& fix)
{
  error(what + (options.repair ? "; repaired" : "; repair can fix this"));
  if (!options.repair)
    return;
  ++repaired;
  fix(*fixes);
  if (fixes->row_bytes() > fix_bytes_max) {
    submit_fixes();
    engine.drain();   // nobody else keeps what is queued from growing
  }
}

void Fsck::submit_fixes()
{
  if (fixes->row_bytes() == 0)
    return;
  fixes->barrier = true;
  engine.submit(std::exchange(fixes, std::make_shared<Txn>()));
}

}  // namespace tablestore
