// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/omap/omap_reader.h"

#include "common/debug.h"
#include "common/perf_counters.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/rows/keys.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.omap "

namespace tablestore {

namespace {

/// Waits without the lock, so that no writer waits behind it; but not for ever.
constexpr int waits_without_lock = 3;

ceph::buffer::list to_bl(std::string_view value)
{
  ceph::buffer::list bl;
  bl.append(value);
  return bl;
}

}  // namespace

OmapReader::OmapReader(CephContext* cct, Engine& engine, Objects& objects, PerfCounters& logger)
  : cct(cct), engine(engine), objects(objects), logger(logger)
{
}

int OmapReader::failed(const View& view, const Status& status)
{
  derr << "the omap of " << view.oid << ": " << status.what() << dendl;
  return -EIO;
}

int OmapReader::open(Collection& c, View* view)
{
  for (int attempt = 0;; ++attempt) {
    view->lock = std::shared_lock(c.lock);
    TxnMark last_change;
    {
      OnodeRef o;
      if (int r = objects.find(c, view->oid, &o); r < 0)
        return r;
      view->has_omap = o->has_omap;
      view->prefix = omap_prefix(o->omap_pool, o->nid);
      last_change = o->last_omap_change;
    }
    if (!view->has_omap || last_change.applied())
      return 0;
    const bool keep_lock = attempt >= waits_without_lock;
    if (!keep_lock)
      view->lock.unlock();
    const auto started_at = ceph::mono_clock::now();
    last_change.wait_applied();
    logger.tinc(l_tablestore_omap_wait_lat, ceph::mono_clock::now() - started_at);
    if (keep_lock)
      return 0;
  }
}

int OmapReader::visit(
    View& view, const std::pair<std::string, std::string>& range,
    const std::function<bool(std::string_view row_key, std::string_view value)>& visitor)
{
  if (!view.has_omap)
    return 0;
  auto it = engine.iterate(Family::omap, range.first, range.second);
  view.lock.unlock();
  for (it->seek(range.first); it->valid(); it->next()) {
    if (!visitor(it->key(), it->value()))
      return 1;
  }
  const Status status = it->status();
  return status.ok() ? 0 : failed(view, status);
}

int OmapReader::get(Collection& c, const ghobject_t& oid, ceph::buffer::list* header,
                    std::map<std::string, ceph::buffer::list>* out)
{
  View view{oid};
  if (int r = open(c, &view); r < 0)
    return r;
  header->clear();
  // The header's row comes before those of the keys.
  const auto range = omap_range(view.prefix);
  return visit(view, range, [&](std::string_view row_key, std::string_view value) {
    if (row_key == range.first)
      *header = to_bl(value);
    else
      out->insert_or_assign(out->end(), std::string(decode_omap_key(view.prefix, row_key)),
                            to_bl(value));
    return true;
  });
}

int OmapReader::get_header(Collection& c, const ghobject_t& oid, ceph::buffer::list* header)
{
  View view{oid};
  if (int r = open(c, &view); r < 0)
    return r;
  header->clear();
  if (!view.has_omap)
    return 0;
  std::string value;
  const auto found = engine.get(Family::omap, omap_header_key(view.prefix), &value);
  if (!found.ok())
    return failed(view, found.status());
  if (*found)
    header->append(value);
  return 0;
}

int OmapReader::get_keys(Collection& c, const ghobject_t& oid, std::set<std::string>* keys)
{
  View view{oid};
  if (int r = open(c, &view); r < 0)
    return r;
  const auto started_at = ceph::mono_clock::now();
  const int r =
      visit(view, omap_key_range(view.prefix), [&](std::string_view row_key, std::string_view) {
        keys->emplace_hint(keys->end(), decode_omap_key(view.prefix, row_key));
        return true;
      });
  logger.tinc(l_tablestore_omap_get_keys_lat, ceph::mono_clock::now() - started_at);
  return r;
}

int OmapReader::get_values(Collection& c, const ghobject_t& oid,
                           const std::set<std::string>& keys,
                           std::map<std::string, ceph::buffer::list>* out)
{
  View view{oid};
  int r = open(c, &view);
  if (r < 0 || !view.has_omap || keys.empty())
    return r;
  const auto started_at = ceph::mono_clock::now();
  std::vector<std::string> row_keys;
  row_keys.reserve(keys.size());
  for (const auto& key : keys)
    row_keys.push_back(omap_key(view.prefix, key));
  auto values = engine.get(Family::omap, row_keys);
  if (!values.ok())
    return failed(view, values.status());
  auto value = values->begin();
  for (const auto& key : keys) {
    if (*value)
      (*out)[key] = to_bl(**value);
    ++value;
  }
  logger.tinc(l_tablestore_omap_get_values_lat, ceph::mono_clock::now() - started_at);
  return 0;
}

int OmapReader::check_keys(Collection& c, const ghobject_t& oid,
                           const std::set<std::string>& keys, std::set<std::string>* out)
{
  std::map<std::string, ceph::buffer::list> values;
  int r = get_values(c, oid, keys, &values);
  for (const auto& [key, value] : values)
    out->insert(out->end(), key);
  return r;
}

int OmapReader::iterate(
    Collection& c, const ghobject_t& oid, const ObjectStore::omap_iter_seek_t& from,
    const std::function<ObjectStore::omap_iter_ret_t(std::string_view, std::string_view)>& visitor)
{
  View view{oid};
  int r = open(c, &view);
  if (r < 0 || !view.has_omap)
    return r;
  const auto started_at = ceph::mono_clock::now();
  auto range = omap_key_range(view.prefix);
  range.first = omap_key(view.prefix, from.seek_position);
  if (from.seek_type == ObjectStore::omap_iter_seek_t::UPPER_BOUND)
    range.first.push_back('\0');   // the next key that there can be
  r = visit(view, range, [&](std::string_view row_key, std::string_view value) {
    return visitor(decode_omap_key(view.prefix, row_key), value) !=
        ObjectStore::omap_iter_ret_t::STOP;
  });
  logger.tinc(l_tablestore_omap_iterate_lat, ceph::mono_clock::now() - started_at);
  return r;
}

}  // namespace tablestore
