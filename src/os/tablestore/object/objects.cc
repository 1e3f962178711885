// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/object/objects.h"

#include "common/debug.h"
#include "common/errno.h"
#include "common/perf_counters.h"
#include "include/random.h"
#include "include/stringify.h"
#include "os/tablestore/home/perf.h"
#include "os/tablestore/home/slow_ops.h"
#include "os/tablestore/object/onode_contents.h"
#include "os/tablestore/object/onode_dump.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore.objects "

namespace tablestore {

// ---- onodes

int Objects::from_row(const Collection& c, const ghobject_t& oid, OnodeRef* out)
{
  const auto started_at = ceph::mono_clock::now();
  auto o = std::make_shared<Onode>();
  o->oid = oid;
  o->key = onode_key(oid);
  std::string value;
  const Result<bool> found = parts.erased.has(o->key)
      ? Result<bool>(false)
      : parts.engine.get(Family::object, o->key, &value);
  if (!found.ok()) {
    derr << c.cid << " " << oid << ": its row cannot be read: " << found.status().what() << dendl;
    if (found.status().code() != EIO)
      return -found.status().code();
    lose_contents(*o);
  } else if (*found) {
    try {
      o->decode(value);
      o->exists = true;
    } catch (const NewerVersion& e) {
      derr << c.cid << " " << oid << ": its row: " << e.what() << dendl;
      return -EOPNOTSUPP;
    } catch (const ceph::buffer::error& e) {
      derr << c.cid << " " << oid << ": its row of " << value.size() << " bytes is damaged: "
           << e.what() << dendl;
      lose_contents(*o);
    }
  } else if (parts.lost_names.hides(o->key)) {
    dout(1) << c.cid << " " << oid << " may have been there before a repair" << dendl;
    lose_contents(*o);
    o->unknown = true;
  }
  // The disk may give a row the next time.
  if (o->lost && !o->unknown)
    parts.damaged.add(oid);
  else
    parts.damaged.forget(oid);
  parts.logger.tinc(l_tablestore_onode_load_lat, ceph::mono_clock::now() - started_at);
  *out = std::move(o);
  return 0;
}

namespace {

/// A transaction has met its row when that could not be read, and has not changed it since: the
/// disk may give its row now.
bool is_in_doubt(const Onode& o)
{
  return o.lost && !o.dirty && o.transactions_in_flight == 0;
}

}  // namespace

int Objects::load(const Collection& c, const ghobject_t& oid, OnodeRef* out)
{
  *out = parts.onodes.get(oid);
  if (*out && !is_in_doubt(**out))
    return 0;
  if (*out)
    parts.onodes.forget(*out);
  OnodeRef o;
  if (int r = from_row(c, oid, &o); r < 0)
    return r;
  *out = parts.onodes.add(o);
  return 0;
}

int Objects::find(const Collection& c, const ghobject_t& oid, OnodeRef* out)
{
  if (!c.exists)
    return -ENOENT;
  if (!c.contains(oid)) {
    derr << __func__ << " " << oid << " is not part of " << c.cid << " with " << c.node.bits
         << " bits" << dendl;
    return -ENOENT;
  }
  *out = parts.onodes.get(oid);
  if (!*out || is_in_doubt(**out)) {
    const bool is_cached = bool(*out);
    OnodeRef o;
    // Whatever the reason: an OSD takes no other error for that of an object that is there.
    if (from_row(c, oid, &o) < 0)
      return -EIO;
    // One that is lost is not kept: the disk may give its row the next time. One in its place is
    // put there by who changes it.
    *out = o->lost || is_cached ? o : parts.onodes.add(o);
  }
  if ((*out)->lost) {
    dout(1) << __func__ << " " << c.cid << " " << oid << " is damaged" << dendl;
    return -EIO;
  }
  return (*out)->exists ? 0 : -ENOENT;
}

int Objects::injected_error(const ObjectInUse& object) const
{
  if (!parts.injected.metadata_error(object.o->oid))
    return 0;
  derr << object.c.cid << " " << object.o->oid << " injected EIO" << dendl;
  return -EIO;
}

ObjectInUse Objects::use(Collection& c, const ghobject_t& oid)
{
  ObjectInUse object{c, std::shared_lock{c.lock}};
  object.r = find(c, oid, &object.o);
  return object;
}

// "Yes" where it cannot be read. The OSD asks at its start only, for objects of the meta collection
// that it makes where they are not there (SnapMapper's, that of purged snapshots) and for the pool
// that a placement group belonged to: a "no" would replace the index of all clones with an empty
// one. ceph-objectstore-tool asks before it replaces an OSD map.
bool Objects::exists(Collection& c, const ghobject_t& oid)
{
  const int r = use(c, oid).r;
  return r == 0 || r == -EIO;
}

int Objects::stat(Collection& c, const ghobject_t& oid, struct stat* st)
{
  const auto object = use(c, oid);
  if (object.r < 0)
    return object.r;
  const uint64_t size = object.o->size;
  *st = {};
  st->st_size = size;
  st->st_blksize = block_bytes;
  st->st_blocks = (size + block_bytes - 1) / block_bytes;
  st->st_nlink = 1;
  return injected_error(object);
}

// ---- data

int Objects::read_part(const ObjectInUse& object, uint64_t offset, uint64_t length,
                       ceph::buffer::list& bl, uint32_t op_flags)
{
  const coll_t& cid = object.c.cid;
  const ghobject_t& oid = object.o->oid;
  const double probability = parts.options.read_error_probability;
  int r;
  if (parts.injected.data_error(oid) ||
      (probability > 0 && ceph::util::generate_random_number<double>(0.0, 1.0) < probability)) {
    derr << "read " << cid << " " << oid << " injected EIO" << dendl;
    r = -EIO;
  } else {
    r = parts.data.read(object.o, offset, length, bl, op_flags);
  }
  if (r < 0) {
    parts.logger.inc(l_tablestore_read_eio);
    derr << "read " << cid << " " << oid << " 0x" << std::hex << offset << "~" << length
         << std::dec << ": " << cpp_strerror(r) << dendl;
  } else {
    parts.logger.inc(l_tablestore_read_bytes, r);
  }
  return r;
}

void Objects::note_read(ceph::timespan took, const ghobject_t& oid)
{
  parts.logger.tinc(l_tablestore_read_lat, took);
  if (parts.slow_ops.is_slow(took))
    parts.slow_ops.read(took, stringify(oid));
}

int Objects::read(Collection& c, const ghobject_t& oid, uint64_t offset, size_t len,
                  ceph::buffer::list& bl, uint32_t op_flags)
{
  const auto started_at = ceph::mono_clock::now();
  bl.clear();
  int r;
  {
    const auto object = use(c, oid);
    r = object.r;
    if (r == 0) {
      const uint64_t length = offset == 0 && len == 0 ? object.o->size : len;
      r = read_part(object, offset, length, bl, op_flags);
    }
  }
  note_read(ceph::mono_clock::now() - started_at, oid);
  dout(15) << __func__ << " " << c.cid << " " << oid << " 0x" << std::hex << offset << "~" << len
           << std::dec << " = " << r << dendl;
  return r;
}

int Objects::readv(Collection& c, const ghobject_t& oid, interval_set<uint64_t>& m,
                   ceph::buffer::list& bl, uint32_t op_flags)
{
  const auto started_at = ceph::mono_clock::now();
  bl.clear();
  const auto object = use(c, oid);
  if (object.r < 0)
    return object.r;
  const uint64_t size = object.o->size;
  // The caller learns from `m` which bytes `bl` holds: what lies beyond the end goes.
  interval_set<uint64_t> within;
  for (auto p = m.begin(); p != m.end(); ++p) {
    if (p.get_start() < size)
      within.insert(p.get_start(), std::min(p.get_len(), size - p.get_start()));
  }
  m.swap(within);
  for (auto p = m.begin(); p != m.end(); ++p) {
    ceph::buffer::list part;
    if (int r = read_part(object, p.get_start(), p.get_len(), part, op_flags); r < 0)
      return r;
    bl.claim_append(part);
  }
  note_read(ceph::mono_clock::now() - started_at, oid);
  return bl.length();
}

int Objects::fiemap(Collection& c, const ghobject_t& oid, uint64_t offset, size_t len,
                    std::map<uint64_t, uint64_t>& out)
{
  const auto object = use(c, oid);
  return object.r < 0 ? object.r : parts.data.fiemap(object.o, offset, len, out);
}

// ---- attributes

int Objects::get_attr(Collection& c, const ghobject_t& oid, const char* name,
                      ceph::buffer::ptr& value)
{
  const auto object = use(c, oid);
  if (object.r < 0)
    return object.r;
  const auto p = object.o->attrs.find(std::string_view(name));
  if (p == object.o->attrs.end())
    return -ENODATA;
  value = p->second;
  return injected_error(object);
}

int Objects::get_attrs(Collection& c, const ghobject_t& oid,
                       std::map<std::string, ceph::buffer::ptr, std::less<>>& out)
{
  const auto object = use(c, oid);
  if (object.r < 0)
    return object.r;
  out = object.o->attrs;
  return injected_error(object);
}

int Objects::dump(Collection& c, const ghobject_t& oid, const std::string& section,
                  ceph::Formatter* f)
{
  const auto object = use(c, oid);
  const int r = object.r < 0 ? object.r : parts.data.load_all(object.o);
  if (r < 0)
    return r;
  f->open_object_section(section.c_str());
  tablestore::dump(*object.o, f);
  f->close_section();
  return 0;
}

}  // namespace tablestore
