// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/collection_model.h"

#include <algorithm>
#include <climits>

#include "include/stringify.h"

namespace tablestore_test {

namespace {

constexpr int object_count = 6;
constexpr int key_count = 40;
constexpr uint32_t hash = 0x5a;

std::string key(uint64_t i)
{
  return "key" + std::to_string(1000 + i);
}

}  // namespace

CollectionModel::CollectionModel(const coll_t& cid, int64_t pool, uint64_t seed, uint64_t size_max)
  : cid(cid), pool(pool), seed(seed), size_max(size_max), random(seed)
{
}

ghobject_t CollectionModel::counter_oid(int64_t pool)
{
  return object("counter", pool, hash);
}

ghobject_t CollectionModel::oid(int i) const
{
  return object("object" + std::to_string(i), pool, hash);
}

uint64_t CollectionModel::random_offset(uint64_t end)
{
  const uint64_t offset = below(end + 1);
  return below(3) == 0 ? offset / 4096 * 4096 : offset;
}

uint64_t CollectionModel::random_length(uint64_t max)
{
  if (max == 0)
    return 0;
  const uint64_t length = 1 + below(std::min<uint64_t>(max, uint64_t(16) << below(16)));
  return below(3) == 0 ? length / 4096 * 4096 : length;
}

void CollectionModel::skip_to(uint64_t n)
{
  while (count < n)
    next();
}

Transaction CollectionModel::next()
{
  Transaction t;
  for (uint64_t ops = 1 + below(5); ops > 0; --ops)
    add_operation(t);
  ++count;
  t.touch(cid, counter_oid(pool));
  bufferlist number = to_bl(std::to_string(count));
  t.setattr(cid, counter_oid(pool), "count", number);
  return t;
}

void CollectionModel::add_operation(Transaction& t)
{
  const int i = below(object_count);
  switch (below(4)) {
  case 0:
    add_metadata_operation(t, i);
    break;
  case 1:
    if (const int to = below(object_count); objects.count(i) && i != to) {
      add_operation_of_two(t, i, to);
      break;
    }
    [[fallthrough]];
  default:
    add_data_operation(t, i);
  }
}

void CollectionModel::write(int i, uint64_t offset, const std::string& bytes)
{
  std::string& data = objects[i].data;
  if (bytes.empty())
    return;
  if (data.size() < offset + bytes.size())
    data.resize(offset + bytes.size(), '\0');
  data.replace(offset, bytes.size(), bytes);
}

void CollectionModel::add_data_operation(Transaction& t, int i)
{
  const uint64_t size = objects.count(i) ? objects[i].data.size() : 0;
  const uint64_t offset = random_offset(std::min(size_max - 1, size + size_max / 8));
  const uint64_t length = random_length(size_max - offset);
  switch (below(8)) {
  case 0:
    if (below(2) && objects.count(i)) {
      t.remove(cid, oid(i));
      objects.erase(i);
    }
    break;
  case 1:
    if (objects.count(i)) {
      t.truncate(cid, oid(i), offset);
      objects[i].data.resize(offset, '\0');
    }
    break;
  case 2:
    t.zero(cid, oid(i), offset, length);
    write(i, offset, std::string(length, '\0'));
    break;
  default:
    bufferlist bl = content(seed + count * 16 + below(16), length, offset);
    t.write(cid, oid(i), offset, length, bl);
    write(i, offset, bl.to_str());
  }
}

void CollectionModel::add_metadata_operation(Transaction& t, int i)
{
  if (!objects.count(i)) {
    t.touch(cid, oid(i));
    objects[i];
  }
  Object& o = objects[i];
  const std::string name = key(below(key_count));
  bufferlist value = content(seed + count, below(200));
  switch (below(7)) {
  case 0:
    t.rmattr(cid, oid(i), name);
    o.attrs.erase(name);
    break;
  case 1:
    t.setattr(cid, oid(i), name, value);
    o.attrs[name] = value.to_str();
    break;
  case 2:
    t.omap_rmkey(cid, oid(i), name);
    o.omap.erase(name);
    break;
  case 3: {
    const std::string last = key(below(key_count));
    t.omap_rmkeyrange(cid, oid(i), name, last);
    if (name < last)
      o.omap.erase(o.omap.lower_bound(name), o.omap.lower_bound(last));
    break;
  }
  case 4:
    t.omap_setheader(cid, oid(i), value);
    o.header = value.to_str();
    break;
  case 5:
    if (below(4) == 0) {
      t.omap_clear(cid, oid(i));
      o.omap.clear();
      o.header.clear();
      break;
    }
    [[fallthrough]];
  default:
    std::map<std::string, bufferlist> keys;
    for (uint64_t n = 1 + below(10); n > 0; --n)
      keys[key(below(key_count))] = value;
    t.omap_setkeys(cid, oid(i), keys);
    for (const auto& [k, v] : keys)
      o.omap[k] = v.to_str();
  }
}

void CollectionModel::add_operation_of_two(Transaction& t, int from, int to)
{
  const Object source = objects[from];
  switch (below(3)) {
  case 0:
    t.clone(cid, oid(from), oid(to));
    objects[to] = source;
    break;
  case 1:
    if (objects.count(to))
      t.remove(cid, oid(to));
    t.collection_move_rename(cid, oid(from), cid, oid(to));
    objects[to] = source;
    objects.erase(from);
    break;
  default:
    if (source.data.empty())
      break;
    const uint64_t src = random_offset(source.data.size() - 1);
    const uint64_t length = std::max<uint64_t>(1, random_length(source.data.size() - src));
    if (length >= size_max)
      break;
    uint64_t dst = random_offset(size_max - length);
    if (below(2))
      dst = std::min(dst / 4096 * 4096 + src % 4096, size_max - length);
    t.clone_range(cid, oid(from), oid(to), src, length, dst);
    write(to, dst, source.data.substr(src, length));
  }
}

uint64_t CollectionModel::done_in(ObjectStore& store, Handle& ch, int64_t pool)
{
  bufferptr value;
  if (store.getattr(ch, counter_oid(pool), "count", value) < 0)
    return 0;
  return std::stoull(std::string(value.c_str(), value.length()));
}

void CollectionModel::expect_equal(ObjectStore& store, Handle& ch) const
{
  SCOPED_TRACE("seed " + std::to_string(seed) + " after " + std::to_string(count) +
               " transactions");
  std::vector<ghobject_t> expected, found;
  if (count > 0)
    expected.push_back(counter_oid(pool));
  for (const auto& [i, object] : objects)
    expected.push_back(oid(i));
  std::sort(expected.begin(), expected.end());
  ASSERT_EQ(0, store.collection_list(ch, ghobject_t(), ghobject_t::get_max(), INT_MAX, &found,
                                     nullptr));
  ASSERT_EQ(expected, found);
  for (const auto& [i, object] : objects)
    ASSERT_NO_FATAL_FAILURE(expect_equal(store, ch, i)) << oid(i);
}

void CollectionModel::expect_equal(ObjectStore& store, Handle& ch, int i) const
{
  const Object& o = objects.at(i);
  bufferlist data;
  ASSERT_EQ(int(o.data.size()), store.read(ch, oid(i), 0, 0, data));
  ASSERT_TRUE(same(to_bl(o.data), data));

  std::map<std::string, bufferptr, std::less<>> attrs;
  ASSERT_EQ(0, store.getattrs(ch, oid(i), attrs));
  std::map<std::string, std::string> found_attrs, found_omap;
  for (const auto& [name, value] : attrs)
    found_attrs[name] = std::string(value.c_str(), value.length());
  ASSERT_EQ(o.attrs, found_attrs);

  bufferlist header;
  std::map<std::string, bufferlist> omap;
  ASSERT_EQ(0, store.omap_get(ch, oid(i), &header, &omap));
  for (const auto& [name, value] : omap)
    found_omap[name] = value.to_str();
  ASSERT_EQ(o.omap, found_omap);
  ASSERT_EQ(o.header, header.to_str());
}

}  // namespace tablestore_test
