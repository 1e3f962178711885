// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "common/debug.h"
#include "common/errno.h"
#include "include/random.h"
#include "os/tablestore/TableStore.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/object/object_data.h"
#include "os/tablestore/operate/onode_dump.h"
#include "os/tablestore/home/perf.h"

#define dout_context cct
#define dout_subsys ceph_subsys_tablestore
#undef dout_prefix
#define dout_prefix *_dout << "tablestore(" << path << ") "

using namespace tablestore;

// ---- onodes

int TableStore::load_onode(const Collection& c, const ghobject_t& oid, OnodeRef* out)
{
  if ((*out = onodes->get(oid)))
    return 0;
  const auto started_at = ceph::mono_clock::now();
  std::string key = onode_key(oid);
  std::string value;
  auto found = engine->get(Family::object, key, &value);
  if (!found.ok()) {
    derr << __func__ << " " << c.cid << " " << oid << ": " << found.status().what() << dendl;
    return -EIO;
  }
  auto o = std::make_shared<Onode>();
  o->oid = oid;
  o->key = std::move(key);
  if (*found) {
    try {
      o->decode(value);
      o->exists = true;
    } catch (const ceph::buffer::error& e) {
      derr << __func__ << " " << c.cid << " " << oid << ": its row of " << value.size()
           << " bytes is damaged (" << e.what() << "); run fsck" << dendl;
      return -EIO;
    }
  }
  *out = onodes->add(std::move(o));
  logger->tinc(l_tablestore_onode_load_lat, ceph::mono_clock::now() - started_at);
  return 0;
}

int TableStore::find_onode(const Collection& c, const ghobject_t& oid, OnodeRef* out)
{
  if (!c.exists)
    return -ENOENT;
  if (!c.contains(oid)) {
    derr << __func__ << " " << oid << " is not part of " << c.cid << " with " << c.node.bits
         << " bits" << dendl;
    return -ENOENT;
  }
  if (injected.metadata_error(oid)) {
    derr << __func__ << " " << c.cid << " " << oid << " injected EIO" << dendl;
    return -EIO;
  }
  if (int r = load_onode(c, oid, out); r < 0)
    return r;
  return (*out)->exists ? 0 : -ENOENT;
}

TableStore::ObjectInUse TableStore::use_object(CollectionHandle& ch, const ghobject_t& oid)
{
  Collection* c = collection_of(ch);
  ObjectInUse object{*c, std::shared_lock{c->lock}};
  object.r = find_onode(*c, oid, &object.o);
  return object;
}

bool TableStore::exists(CollectionHandle& ch, const ghobject_t& oid)
{
  return use_object(ch, oid).r == 0;
}

int TableStore::stat(CollectionHandle& ch, const ghobject_t& oid, struct stat* st,
                     bool allow_eio)
{
  const auto object = use_object(ch, oid);
  if (object.r < 0)
    return object.r;
  const uint64_t size = object.o->size;
  *st = {};
  st->st_size = size;
  st->st_blksize = block_bytes;
  st->st_blocks = (size + block_bytes - 1) / block_bytes;
  st->st_nlink = 1;
  return 0;
}

// ---- data

int TableStore::read_object(Collection& c, const ghobject_t& oid, const OnodeRef& o,
                            uint64_t offset, uint64_t length, bufferlist& bl,
                            uint32_t op_flags)
{
  const double probability = options.read_error_probability;
  int r;
  if (injected.data_error(oid) ||
      (probability > 0 && ceph::util::generate_random_number<double>(0.0, 1.0) < probability)) {
    derr << __func__ << " " << c.cid << " " << oid << " injected EIO" << dendl;
    r = -EIO;
  } else {
    r = data->read(o, offset, length, bl, op_flags);
  }
  if (r < 0) {
    logger->inc(l_tablestore_read_eio);
    derr << __func__ << " " << c.cid << " " << oid << " 0x" << std::hex << offset << "~" << length
         << std::dec << ": " << cpp_strerror(r) << dendl;
  } else {
    logger->inc(l_tablestore_read_bytes, r);
  }
  return r;
}

int TableStore::read(CollectionHandle& ch, const ghobject_t& oid, uint64_t offset, size_t len,
                     bufferlist& bl, uint32_t op_flags)
{
  const auto started_at = ceph::mono_clock::now();
  bl.clear();
  int r;
  {
    const auto object = use_object(ch, oid);
    r = object.r;
    if (r == 0) {
      const uint64_t length = offset == 0 && len == 0 ? object.o->size : len;
      r = read_object(object.c, oid, object.o, offset, length, bl, op_flags);
    }
  }
  logger->tinc(l_tablestore_read_lat, ceph::mono_clock::now() - started_at);
  dout(15) << __func__ << " " << ch->cid << " " << oid << " 0x" << std::hex << offset << "~" << len
           << std::dec << " = " << r << dendl;
  return r;
}

int TableStore::readv(CollectionHandle& ch, const ghobject_t& oid, interval_set<uint64_t>& m,
                      bufferlist& bl, uint32_t op_flags)
{
  const auto started_at = ceph::mono_clock::now();
  bl.clear();
  const auto object = use_object(ch, oid);
  if (object.r < 0)
    return object.r;
  const OnodeRef& o = object.o;
  // The caller learns from `m` which bytes `bl` holds: what lies beyond the end goes.
  interval_set<uint64_t> within;
  for (auto p = m.begin(); p != m.end(); ++p) {
    if (p.get_start() < o->size)
      within.insert(p.get_start(), std::min(p.get_len(), o->size - p.get_start()));
  }
  m.swap(within);
  for (auto p = m.begin(); p != m.end(); ++p) {
    bufferlist part;
    if (int r = read_object(object.c, oid, o, p.get_start(), p.get_len(), part, op_flags); r < 0)
      return r;
    bl.claim_append(part);
  }
  logger->tinc(l_tablestore_read_lat, ceph::mono_clock::now() - started_at);
  return bl.length();
}

int TableStore::fiemap(CollectionHandle& ch, const ghobject_t& oid, uint64_t offset, size_t len,
                       std::map<uint64_t, uint64_t>& destmap)
{
  const auto object = use_object(ch, oid);
  return object.r < 0 ? object.r : data->fiemap(object.o, offset, len, destmap);
}

int TableStore::fiemap(CollectionHandle& ch, const ghobject_t& oid, uint64_t offset, size_t len,
                       bufferlist& bl)
{
  std::map<uint64_t, uint64_t> map;
  int r = fiemap(ch, oid, offset, len, map);
  if (r >= 0)
    ceph::encode(map, bl);
  return r;
}

// ---- attributes

int TableStore::getattr(CollectionHandle& ch, const ghobject_t& oid, const char* name,
                        ceph::buffer::ptr& value)
{
  const auto object = use_object(ch, oid);
  if (object.r < 0)
    return object.r;
  const auto p = object.o->attrs.find(std::string_view(name));
  if (p == object.o->attrs.end())
    return -ENODATA;
  value = p->second;
  return 0;
}

int TableStore::getattrs(CollectionHandle& ch, const ghobject_t& oid,
                         std::map<std::string, ceph::buffer::ptr, std::less<>>& aset)
{
  const auto object = use_object(ch, oid);
  if (object.r < 0)
    return object.r;
  aset = object.o->attrs;
  return 0;
}

int TableStore::dump_onode(CollectionHandle& ch, const ghobject_t& oid,
                           const std::string& section_name, ceph::Formatter* f)
{
  const auto object = use_object(ch, oid);
  const int r = object.r < 0 ? object.r : data->load_all(object.o);
  if (r < 0)
    return r;
  f->open_object_section(section_name.c_str());
  dump(*object.o, f);
  f->close_section();
  return 0;
}
