// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/check/derived_rows.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "os/tablestore/object/onode.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

namespace tablestore {

namespace {

/// The highest number whose row, or one after it, is there: keys of the range ascend with it, and
/// looking for it is quicker than reading them all.
uint64_t last_nid(RowIterator& it, const std::string& end,
                  const std::function<std::string(uint64_t)>& key_of)
{
  uint64_t nid = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const uint64_t tried = nid | uint64_t(1) << bit;
    it.seek(key_of(tried));
    if (it.valid() && (end.empty() || it.key() < end))
      nid = tried;
  }
  return nid;
}

Status look_at_onodes(Engine& engine, DerivedRows* derived)
{
  const auto [first, last] = all_onodes_range();
  auto it = engine.iterate(Family::object, first, last);
  for (it->seek(first); it->valid(); it->next()) {
    ObjectContents object;
    try {
      object.decode(it->value());
    } catch (const NewerVersion& e) {
      return Status(ENOTSUP, std::string("the row of an object: ") + e.what());
    } catch (const ceph::buffer::error&) {
      continue;
    }
    derived->nid_max = std::max(derived->nid_max, object.nid);
    if (object.inline_data)
      derived->inline_bytes = std::max(derived->inline_bytes, object.size);
  }
  return it->status();
}

Status look_at_omap(Engine& engine, DerivedRows* derived)
{
  auto it = engine.iterate(Family::omap, {}, {});
  it->seek_to_first();
  while (it->valid()) {
    int64_t pool;
    uint64_t nid;
    if (!decode_omap_prefix(it->key(), &pool, &nid)) {
      it->next();
      continue;
    }
    const std::string end = omap_pool_range(pool).second;
    derived->nid_max = std::max(derived->nid_max, last_nid(*it, end, [pool](uint64_t nid) {
      return omap_prefix(pool, nid);
    }));
    it->seek(end);
  }
  return it->status();
}

}  // namespace

Result<DerivedRows> derive_rows(Engine& engine)
{
  DerivedRows derived;
  if (Status s = look_at_onodes(engine, &derived); !s.ok())
    return s;
  const auto [first_shard, end_of_shards] = all_shards_range();
  auto shards = engine.iterate(Family::object, first_shard, end_of_shards);
  auto inline_data = engine.iterate(Family::data, {}, {});
  derived.nid_max = std::max({
      derived.nid_max,
      last_nid(*shards, end_of_shards, [](uint64_t nid) { return shard_key(nid, 0); }),
      last_nid(*inline_data, {}, [](uint64_t nid) { return inline_key(nid); })});
  for (const auto* it : {&shards, &inline_data}) {
    if (Status s = (*it)->status(); !s.ok())
      return s;
  }
  if (Status s = look_at_omap(engine, &derived); !s.ok())
    return s;
  return derived;
}

}  // namespace tablestore
