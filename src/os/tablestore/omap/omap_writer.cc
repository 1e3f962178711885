// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/omap/omap_writer.h"

#include <utility>

#include "common/perf_counters.h"
#include "include/ceph_assert.h"
#include "include/encoding.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/rows/keys.h"

namespace tablestore {

namespace {

// A string as Ceph encodes it.
void append_decoded(ceph::buffer::list::const_iterator& p, std::string* out)
{
  uint32_t length;
  ceph::decode(length, p);
  p.copy(length, *out);
}

std::string prefix_of(const OnodeRef& o) { return omap_prefix(o->omap_pool, o->nid); }

}  // namespace

void OmapWriter::change(const OnodeRef& o)
{
  txn.touch(o);
  o->omap_changed = true;
}

void OmapWriter::set_has_omap(const OnodeRef& o)
{
  if (o->has_omap)
    return;
  o->has_omap = true;
  txn.dirty(o);
}

void OmapWriter::set_keys(const OnodeRef& o, const ceph::buffer::list& encoded)
{
  change(o);
  auto p = encoded.cbegin();
  uint32_t count;
  ceph::decode(count, p);
  logger.inc(l_tablestore_omap_setkeys_count);
  logger.inc(l_tablestore_omap_setkeys_records, count);
  std::string row_key = omap_key(prefix_of(o), {}), value;
  uint64_t bytes = 0;
  for (const size_t prefix_bytes = row_key.size(); count > 0; --count) {
    row_key.resize(prefix_bytes);
    append_decoded(p, &row_key);
    value.clear();
    append_decoded(p, &value);
    bytes += row_key.size() - prefix_bytes + value.size();
    txn.put(Family::omap, row_key, value);
  }
  logger.inc(l_tablestore_omap_setkeys_bytes, bytes);
  set_has_omap(o);
}

void OmapWriter::remove_keys(const OnodeRef& o, const ceph::buffer::list& encoded)
{
  if (!o->has_omap)
    return;
  change(o);
  auto p = encoded.cbegin();
  uint32_t count;
  ceph::decode(count, p);
  logger.inc(l_tablestore_omap_rmkeys_count, count);
  std::string row_key = omap_key(prefix_of(o), {});
  for (const size_t prefix_bytes = row_key.size(); count > 0; --count) {
    row_key.resize(prefix_bytes);
    append_decoded(p, &row_key);
    txn.erase(Family::omap, row_key);
  }
}

void OmapWriter::remove_range(const OnodeRef& o, std::string_view first, std::string_view last)
{
  if (!o->has_omap || first >= last)
    return;
  change(o);
  logger.inc(l_tablestore_omap_rmkey_range_count);
  const std::string prefix = prefix_of(o);
  txn.erase_range(Family::omap, omap_key(prefix, first), omap_key(prefix, last));
}

void OmapWriter::set_header(const OnodeRef& o, ceph::buffer::list& header)
{
  change(o);
  logger.inc(l_tablestore_omap_setheader_count);
  txn.put(Family::omap, omap_header_key(prefix_of(o)), header.to_str());
  set_has_omap(o);
}

void OmapWriter::clear(const OnodeRef& o)
{
  if (!o->has_omap)
    return;
  change(o);
  logger.inc(l_tablestore_omap_clear_count);
  const auto [first, last] = omap_range(prefix_of(o));
  txn.erase_range(Family::omap, first, last);
  o->has_omap = false;
  txn.dirty(o);
}

Status OmapWriter::clone(const OnodeRef& from, const OnodeRef& to)
{
  ceph_assert(!to->has_omap);
  if (!from->has_omap)
    return {};
  change(to);
  // First: what is copied before an error belongs to `to`, and goes with it.
  set_has_omap(to);
  from->last_omap_change.wait_applied();
  const std::string from_prefix = prefix_of(from);
  std::string to_key = prefix_of(to);
  const size_t prefix_bytes = to_key.size();
  const auto [first, last] = omap_range(from_prefix);
  return engine.visit(txn, Family::omap, first, last,
                      [&](std::string_view key, std::string_view value) {
    to_key.replace(prefix_bytes, std::string::npos, key.substr(from_prefix.size()));
    txn.put(Family::omap, to_key, value);
  });
}

void OmapWriter::moved(const OnodeRef& to)
{
  if (to->has_omap)
    change(to);
}

void OmapWriter::mark_changed(const TxnMark& mark)
{
  for (const OnodeRef& o : txn.touched_onodes) {
    if (std::exchange(o->omap_changed, false))
      o->last_omap_change = mark;
  }
}

}  // namespace tablestore
