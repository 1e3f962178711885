// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/check/fsck.h"

#include "common/debug.h"
#include "os/tablestore/rows/keys.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.fsck "

namespace tablestore {

namespace {

constexpr size_t fix_bytes_max = 1 << 20;

}  // namespace

Fsck::Fsck(CephContext* cct, Engine& engine, ObjectData& data,
           const std::vector<CollectionRef>& collections, Options options)
  : cct(cct), engine(engine), data(data), options(options), fixes(std::make_shared<Txn>())
{
  for (const auto& c : collections) {
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
  Status s = check_objects();
  if (s.ok())
    s = check_shard_rows();
  if (s.ok())
    s = check_inline_rows();
  if (s.ok())
    s = check_omap_rows();
  if (s.ok())
    s = check_reference_maps();
  if (s.ok())
    s = check_pool_stats();
  if (s.ok()) {
    submit_fixes();
    engine.drain();
    s = check_blocks();
  }
  if (!s.ok()) {
    derr << s.what() << dendl;
    return -EIO;
  }
  dout(1) << (options.deep ? "deep, " : "") << objects.size() << " objects, " << errors
          << " errors, " << repaired << " repaired" << dendl;
  return static_cast<int>(std::min<uint64_t>(errors - repaired, INT32_MAX));
}

void Fsck::error(const std::string& what)
{
  ++errors;
  derr << "error: " << what << dendl;
}

void Fsck::repairable(const std::string& what, const std::function<void(Txn&)>& fix)
{
  error(what + (options.repair ? "; repaired" : "; repair can fix this"));
  if (!options.repair)
    return;
  ++repaired;
  fix(*fixes);
  if (fixes->row_bytes() > fix_bytes_max)
    submit_fixes();
}

void Fsck::submit_fixes()
{
  if (fixes->row_bytes() == 0)
    return;
  fixes->barrier = true;
  engine.submit(std::exchange(fixes, std::make_shared<Txn>()));
}

}  // namespace tablestore
