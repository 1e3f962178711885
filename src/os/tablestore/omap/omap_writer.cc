// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/omap/omap_writer.h"

#include "include/ceph_assert.h"
#include "include/encoding.h"
#include "os/tablestore/rows/keys.h"

namespace tablestore {

namespace {

// What follows the prefix in the row of a key.
std::string key_suffix(std::string_view key) { return omap_key({}, key); }

// A string as Ceph encodes it.
void append_decoded(ceph::buffer::list::const_iterator& p, std::string* out)
{
  uint32_t length;
  ceph::decode(length, p);
  p.copy(length, *out);
}

std::string prefix_of(const OnodeRef& o) { return omap_prefix(o->omap_pool, o->nid); }

}  // namespace

OmapWriter::OmapWriter(Engine& engine, TxnContext& txc, bool keep_changes)
  : engine(engine), txc(txc), keep_changes(keep_changes)
{
}

void OmapWriter::set_keys(const OnodeRef& o, const ceph::buffer::list& encoded)
{
  const std::string prefix = prefix_of(o);
  auto p = encoded.cbegin();
  uint32_t count;
  ceph::decode(count, p);
  std::string key = key_suffix({}), value;
  for (const size_t type_bytes = key.size(); count > 0; --count) {
    key.resize(type_bytes);
    append_decoded(p, &key);
    value.clear();
    append_decoded(p, &value);
    change(o, prefix, {Kind::put, key, value});
  }
  if (!o->has_omap) {
    o->has_omap = true;
    txc.dirty(o);
  }
}

void OmapWriter::remove_keys(const OnodeRef& o, const ceph::buffer::list& encoded)
{
  if (!o->has_omap)
    return;
  const std::string prefix = prefix_of(o);
  auto p = encoded.cbegin();
  uint32_t count;
  ceph::decode(count, p);
  std::string key = key_suffix({});
  for (const size_t type_bytes = key.size(); count > 0; --count) {
    key.resize(type_bytes);
    append_decoded(p, &key);
    change(o, prefix, {Kind::erase, key, {}});
  }
}

void OmapWriter::remove_range(const OnodeRef& o, std::string_view first, std::string_view last)
{
  if (o->has_omap && first < last)
    change(o, prefix_of(o), {Kind::erase_range, key_suffix(first), key_suffix(last)});
}

void OmapWriter::set_header(const OnodeRef& o, ceph::buffer::list& header)
{
  change(o, prefix_of(o), {Kind::put, omap_header_key({}), header.to_str()});
  if (!o->has_omap) {
    o->has_omap = true;
    txc.dirty(o);
  }
}

void OmapWriter::clear(const OnodeRef& o)
{
  if (!o->has_omap)
    return;
  const auto [first, last] = omap_range({});
  change(o, prefix_of(o), {Kind::erase_range, first, last});
  o->has_omap = false;
  txc.dirty(o);
}

Status OmapWriter::clone(const OnodeRef& from, const OnodeRef& to)
{
  ceph_assert(keep_changes);
  ceph_assert(!to->has_omap);
  if (!from->has_omap)
    return {};
  from->last_omap_change.wait_applied();
  const std::string from_prefix = prefix_of(from);
  const std::string to_prefix = prefix_of(to);
  std::vector<KeptChange> replay{KeptChange({Kind::copy_rows, from_prefix, {}})};
  if (auto p = changes.find(from_prefix); p != changes.end())
    replay.insert(replay.end(), p->second.begin(), p->second.end());
  auto& kept = changes[to_prefix];
  for (auto& c : replay) {
    if (Status s = apply(to_prefix, c.view()); !s.ok())
      return s;
    kept.push_back(std::move(c));
  }
  to->has_omap = true;
  txc.dirty(to);
  changed.push_back(to);
  return {};
}

void OmapWriter::moved(const OnodeRef& to)
{
  if (to->has_omap)
    changed.push_back(to);
}

void OmapWriter::mark_changed(const TxnMark& mark)
{
  for (auto& o : changed)
    o->last_omap_change = mark;
}

void OmapWriter::change(const OnodeRef& o, const std::string& prefix, const Change& c)
{
  Status s = apply(prefix, c);
  ceph_assert(s.ok());
  if (changed.empty() || changed.back() != o)
    changed.push_back(o);
  if (keep_changes)
    changes[prefix].emplace_back(c);
}

Status OmapWriter::apply(const std::string& prefix, const Change& c)
{
  if (c.kind == Kind::copy_rows)
    return copy_rows(std::string(c.key), prefix);
  row_key.assign(prefix).append(c.key);
  switch (c.kind) {
  case Kind::put:
    txc.put(Family::omap, row_key, c.value);
    break;
  case Kind::erase:
    txc.erase(Family::omap, row_key);
    break;
  default:
    txc.erase_range(Family::omap, row_key, std::string(prefix).append(c.value));
  }
  return {};
}

Status OmapWriter::copy_rows(const std::string& from_prefix, const std::string& to_prefix)
{
  const auto [first, last] = omap_range(from_prefix);
  auto it = engine.iterate(Family::omap, first, last);
  std::string key;
  for (it->seek(first); it->valid(); it->next()) {
    key = to_prefix;
    key += it->key().substr(from_prefix.size());
    txc.put(Family::omap, key, it->value());
  }
  return it->status();
}

}  // namespace tablestore
