// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/store_meta.h"

#include "include/encoding.h"
#include "os/tablestore/rows/keys.h"

namespace tablestore {

namespace {

constexpr std::string_view row_name = "store";

}  // namespace

void StoreMeta::encode(ceph::buffer::list& bl) const
{
  ENCODE_START(1, 1, bl);
  ceph::encode(version, bl);
  ceph::encode(inline_bound, bl);
  ENCODE_FINISH(bl);
}

void StoreMeta::decode(ceph::buffer::list::const_iterator& p)
{
  DECODE_START(1, p);
  ceph::decode(version, p);
  ceph::decode(inline_bound, p);
  DECODE_FINISH(p);
}

Result<StoreMeta> StoreMeta::load(Engine& engine)
{
  std::string value;
  auto found = engine.get(Family::super, meta_key(row_name), &value);
  if (!found.ok())
    return found.status();
  StoreMeta meta;
  if (*found) {
    ceph::buffer::list bl;
    bl.append(value);
    try {
      auto p = bl.cbegin();
      meta.decode(p);
    } catch (const ceph::buffer::error&) {
      return Status(EIO, "the row that describes the store is damaged");
    }
  }
  if (meta.version > current_version) {
    return Status(ENOTSUP, "this store has version " + std::to_string(meta.version) +
                               ", this program knows up to " + std::to_string(current_version) +
                               ": use a newer one");
  }
  return meta;
}

void StoreMeta::save(Engine& engine) const
{
  ceph::buffer::list bl;
  encode(bl);
  auto txn = std::make_shared<Txn>();
  txn->put(Family::super, meta_key(row_name), bl.to_str());
  txn->barrier = true;
  engine.submit(std::move(txn));
  engine.drain();
}

}  // namespace tablestore
