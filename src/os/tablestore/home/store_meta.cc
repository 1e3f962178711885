// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/store_meta.h"

#include "include/encoding.h"
#include "os/tablestore/home/copied_row.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

namespace tablestore {

namespace {

constexpr std::string_view row_name = "store";
constexpr uint8_t frame_version = 1;

}  // namespace

void StoreMeta::encode(ceph::buffer::list& bl) const
{
  ENCODE_START(frame_version, 1, bl);
  ceph::encode(version, bl);
  ceph::encode(inline_bound, bl);
  ENCODE_FINISH(bl);
}

void StoreMeta::decode(ceph::buffer::list::const_iterator& p)
{
  DECODE_START(frame_version, p);
  ceph::decode(version, p);
  ceph::decode(inline_bound, p);
  DECODE_FINISH(p);
}

namespace {

bool decode_meta(std::string_view value, StoreMeta* meta)
{
  ceph::buffer::list bl;
  bl.append(value);
  try {
    auto p = bl.cbegin();
    meta->decode(p);
  } catch (const ceph::buffer::error&) {
    return false;
  }
  return true;
}

/// One of a newer version is no damage.
bool is_sound(std::string_view value)
{
  StoreMeta meta;
  return is_of_newer_version(frame_version, value) || decode_meta(value, &meta);
}

Status refuse_newer(std::string_view value, const StoreMeta& meta)
{
  if (is_of_newer_version(frame_version, value))
    return Status(ENOTSUP, std::string("the row that describes the store: ") +
                               NewerVersion().what());
  if (meta.version <= StoreMeta::current_version)
    return {};
  return Status(ENOTSUP, "this store has version " + std::to_string(meta.version) +
                             ", this program knows up to " +
                             std::to_string(StoreMeta::current_version) + ": use a newer one");
}

}  // namespace

Result<StoreMeta::Loaded> StoreMeta::load(Engine& engine)
{
  const std::string key = meta_key(row_name);
  Loaded loaded;
  // A row that says that there are no copies is newer than any of them.
  for (const bool with_copy : {false, true}) {
    const auto row = CopiedRow::load(engine, key, with_copy, is_sound);
    if (!row.ok())
      return row.status();
    loaded.damage = row->damage;
    loaded.meta.reset();
    if (row->value) {
      loaded.meta.emplace();
      decode_meta(*row->value, &*loaded.meta);
      if (Status s = refuse_newer(*row->value, *loaded.meta); !s.ok())
        return s;
    }
    const bool is_old = loaded.meta && loaded.meta->version < version_with_copies;
    if (is_old)
      break;
    // Where the copy of this row is not there, there are no others.
    loaded.has_copies = with_copy && (row->value || row->is_lost);
  }
  return loaded;
}

void StoreMeta::put(Txn& txn) const
{
  ceph::buffer::list bl;
  encode(bl);
  CopiedRow::put(txn, meta_key(row_name), bl.to_str());
}

}  // namespace tablestore
