// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "common/debug.h"
#include "common/errno.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/home/perf.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

using namespace tablestore;

// Omap is read from the table, which shows what was applied. Under the collection's lock nothing
// new is queued, so once the last change of the object's omap is applied, the table is what the
// object's omap is. An iterator keeps seeing that after the lock is released: a visitor may call
// the store again, and no writer waits for a long iteration.

namespace {

/// Waits without the lock, so that no writer waits behind it; but not for ever.
constexpr int waits_without_lock = 3;

}  // namespace

int TableStore::view_omap(CollectionHandle& ch, const ghobject_t& oid, OmapView* view)
{
  Collection* c = collection_of(ch);
  for (int attempt = 0;; ++attempt) {
    view->lock = std::shared_lock(c->lock);
    OnodeRef o;
    if (int r = find_onode(*c, oid, &o); r < 0)
      return r;
    view->has_omap = o->has_omap;
    view->prefix = omap_prefix(o->omap_pool, o->nid);
    const TxnMark last_change = o->last_omap_change;
    if (!view->has_omap || last_change.applied())
      return 0;
    const bool keep_lock = attempt >= waits_without_lock;
    if (!keep_lock)
      view->lock.unlock();
    const auto started_at = ceph::mono_clock::now();
    last_change.wait_applied();
    logger->tinc(l_tablestore_omap_wait_lat, ceph::mono_clock::now() - started_at);
    if (keep_lock)
      return 0;
  }
}

int TableStore::visit_omap(
    OmapView& view, const std::function<void(std::string_view, std::string_view)>& visitor)
{
  return visit_omap_rows(view, omap_key_range(view.prefix),
                         [&](std::string_view row_key, std::string_view value) {
    visitor(decode_omap_key(view.prefix, row_key), value);
  });
}

int TableStore::visit_omap_rows(
    OmapView& view, const std::pair<std::string, std::string>& range,
    const std::function<void(std::string_view, std::string_view)>& visitor)
{
  if (!view.has_omap)
    return 0;
  auto it = engine->iterate(Family::omap, range.first, range.second);
  view.lock.unlock();
  for (it->seek(range.first); it->valid(); it->next())
    visitor(it->key(), it->value());
  if (Status s = it->status(); !s.ok()) {
    derr << __func__ << " " << s.what() << dendl;
    return -EIO;
  }
  return 0;
}

int TableStore::read_omap_header(const OmapView& view, bufferlist* header)
{
  header->clear();
  if (!view.has_omap)
    return 0;
  std::string value;
  auto found = engine->get(Family::omap, omap_header_key(view.prefix), &value);
  if (!found.ok()) {
    derr << __func__ << " " << found.status().what() << dendl;
    return -EIO;
  }
  if (*found)
    header->append(value);
  return 0;
}

int TableStore::omap_get_header(CollectionHandle& ch, const ghobject_t& oid, bufferlist* header,
                                bool allow_eio)
{
  OmapView view;
  int r = view_omap(ch, oid, &view);
  return r < 0 ? r : read_omap_header(view, header);
}

int TableStore::omap_get(CollectionHandle& ch, const ghobject_t& oid, bufferlist* header,
                         std::map<std::string, bufferlist>* out)
{
  OmapView view;
  int r = view_omap(ch, oid, &view);
  if (r < 0)
    return r;
  header->clear();
  // The header's row comes before those of the keys.
  const auto range = omap_range(view.prefix);
  return visit_omap_rows(view, range, [&](std::string_view row_key, std::string_view value) {
    bufferlist bl;
    bl.append(value);
    if (row_key == range.first)
      *header = std::move(bl);
    else
      out->insert_or_assign(out->end(), std::string(decode_omap_key(view.prefix, row_key)),
                            std::move(bl));
  });
}

int TableStore::omap_get_keys(CollectionHandle& ch, const ghobject_t& oid,
                              std::set<std::string>* keys)
{
  OmapView view;
  int r = view_omap(ch, oid, &view);
  if (r < 0)
    return r;
  return visit_omap(view, [keys](std::string_view key, std::string_view) {
    keys->insert(keys->end(), std::string(key));
  });
}

int TableStore::omap_get_values(CollectionHandle& ch, const ghobject_t& oid,
                                const std::set<std::string>& keys,
                                std::map<std::string, bufferlist>* out)
{
  OmapView view;
  int r = view_omap(ch, oid, &view);
  if (r < 0 || !view.has_omap || keys.empty())
    return r;
  std::vector<std::string> row_keys;
  row_keys.reserve(keys.size());
  for (const auto& key : keys)
    row_keys.push_back(omap_key(view.prefix, key));
  auto values = engine->get(Family::omap, row_keys);
  if (!values.ok()) {
    derr << __func__ << " " << oid << ": " << values.status().what() << dendl;
    return -EIO;
  }
  auto value = values->begin();
  for (const auto& key : keys) {
    if (*value) {
      bufferlist bl;
      bl.append(**value);
      (*out)[key] = std::move(bl);
    }
    ++value;
  }
  return 0;
}

int TableStore::omap_check_keys(CollectionHandle& ch, const ghobject_t& oid,
                                const std::set<std::string>& keys, std::set<std::string>* out)
{
  std::map<std::string, bufferlist> values;
  int r = omap_get_values(ch, oid, keys, &values);
  for (const auto& [key, value] : values)
    out->insert(out->end(), key);
  return r;
}

int TableStore::omap_iterate(
    CollectionHandle& ch, const ghobject_t& oid, omap_iter_seek_t start_from,
    std::function<omap_iter_ret_t(std::string_view, std::string_view)> visitor)
{
  OmapView view;
  int r = view_omap(ch, oid, &view);
  if (r < 0 || !view.has_omap)
    return r;
  const auto started_at = ceph::mono_clock::now();
  const auto [first, last] = omap_key_range(view.prefix);
  const std::string from = omap_key(view.prefix, start_from.seek_position);
  auto it = engine->iterate(Family::omap, first, last);
  view.lock.unlock();
  it->seek(from);
  if (start_from.seek_type == omap_iter_seek_t::UPPER_BOUND && it->valid() && it->key() == from)
    it->next();
  for (; it->valid(); it->next()) {
    if (visitor(decode_omap_key(view.prefix, it->key()), it->value()) == omap_iter_ret_t::STOP) {
      r = 1;
      break;
    }
  }
  if (Status s = it->status(); r == 0 && !s.ok()) {
    derr << __func__ << " " << oid << ": " << s.what() << dendl;
    r = -EIO;
  }
  logger->tinc(l_tablestore_omap_iterate_lat, ceph::mono_clock::now() - started_at);
  return r;
}
