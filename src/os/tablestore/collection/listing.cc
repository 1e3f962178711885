// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/collection/listing.h"

#include <algorithm>

#include "common/debug.h"
#include "common/perf_counters.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/rows/keys.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.listing "

namespace tablestore {

struct Listing::Request {
  const Collection& c;
  const std::string start_key;
  const std::string end_key;   ///< empty: no end but the collection's
  const size_t max;
  std::vector<ghobject_t>* ls;
  ghobject_t* next;            ///< the first object that was not listed, once `done`
  bool done = false;           ///< nothing more is to be listed
  bool incomplete = false;     ///< rows that cannot be read were stepped over
};

/// What the request wants of one range of rows. Where some cannot be read, it steps over these.
int Listing::list_range(Request& request, const std::string& first, const std::string& range_end)
{
  const std::string low = std::max(first, request.start_key);
  if (low >= range_end)
    return 0;
  std::string at = low;
  if (!list_rows(request, &at, range_end, AtDamage::fail).ok()) {
    request.incomplete = true;
    const Status s = list_rows(request, &at, range_end, AtDamage::step_over);
    if (!s.ok()) {
      derr << __func__ << " " << request.c.cid << ": " << s.what() << dendl;
      return -EREMOTEIO;
    }
  }
  if (lost_names.any()) {
    const std::string listed_end = request.done ? onode_key(*request.next) : range_end;
    request.incomplete |= lost_names.hides_some(low, listed_end);
  }
  return 0;
}

/// From `at` on; moves it behind what was listed.
Status Listing::list_rows(Request& request, std::string* at, const std::string& range_end,
                          AtDamage at_damage)
{
  auto it = engine.iterate(Family::object, *at, range_end, at_damage);
  for (it->seek(*at); it->valid(); it->next()) {
    *at = std::string(it->key()) + '\0';
    ghobject_t oid;
    if (!decode_onode_key(it->key(), &oid)) {
      derr << __func__ << " " << request.c.cid
           << ": a row has a key that is no object; run ceph-objectstore-tool --op repair"
           << dendl;
      continue;
    }
    const bool beyond_end = !request.end_key.empty() && it->key() >= request.end_key;
    if (request.ls->size() >= request.max || beyond_end) {
      *request.next = oid;
      request.done = true;
      return {};
    }
    request.ls->push_back(std::move(oid));
  }
  return it->status();
}

int Listing::list(Collection& c, const ghobject_t& start, const ghobject_t& end, int max,
                  std::vector<ghobject_t>* ls, ghobject_t* pnext, Of of)
{
  ghobject_t unused;
  ghobject_t& next = pnext ? *pnext : unused;
  if (!c.exists)
    return -ENOENT;
  if (start.is_max() || start.hobj.is_max()) {
    next = ghobject_t::get_max();
    return 0;
  }
  const auto started_at = ceph::mono_clock::now();
  // The table shows what was applied.
  if (of == Of::queued)
    c.flush();
  std::string temp_first, temp_end, first, range_end;
  {
    std::shared_lock l{c.lock};
    if (!c.exists)
      return -ENOENT;
    collection_key_range(c.cid, c.node.bits, &temp_first, &temp_end, &first, &range_end);
  }
  const bool end_is_max = end.is_max() || end.hobj.is_max();
  const bool from_temp = start == ghobject_t() || start.hobj == hobject_t() ||
      start == c.cid.get_min_hobj() || start.hobj.is_temp();
  Request request{c, onode_key(start), end_is_max ? std::string() : onode_key(end), size_t(max), ls,
                  &next};
  int r = 0;
  if (from_temp && temp_first < temp_end)
    r = list_range(request, temp_first, temp_end);
  if (r == 0 && !request.done && !end.hobj.is_temp())
    r = list_range(request, first, range_end);
  if (r == 0 && !request.done)
    next = ghobject_t::get_max();
  if (r == 0 && request.incomplete)
    r = -EIO;
  logger.tinc(l_tablestore_clist_lat, ceph::mono_clock::now() - started_at);
  dout(15) << __func__ << " " << c.cid << " [" << start << ", " << end << ") max " << max
           << " = " << r << ", " << ls->size() << " listed, next " << next << dendl;
  return r;
}

int Listing::is_empty(Collection& c, bool* empty)
{
  std::vector<ghobject_t> ls;
  const int r = list(c, ghobject_t(), ghobject_t::get_max(), 1, &ls, nullptr);
  if (r == 0 || r == -EIO)
    *empty = ls.empty();
  return r == -EIO && !ls.empty() ? 0 : r;
}

}  // namespace tablestore
