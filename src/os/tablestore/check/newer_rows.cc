// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/check/newer_rows.h"

#include "common/pretty_binary.h"
#include "os/tablestore/object/onode.h"
#include "os/tablestore/object/reference_maps.h"
#include "os/tablestore/rows/keys.h"
#include "os/tablestore/rows/row_codec.h"

namespace tablestore {

namespace {

Status refuse_newer(Engine& engine, Family family, const std::pair<std::string, std::string>& range,
                    uint8_t version_known)
{
  auto it = engine.iterate(family, range.first, range.second, AtDamage::step_over);
  for (it->seek(range.first); it->valid(); it->next()) {
    try {
      ValueReader(version_known, it->value());
    } catch (const NewerVersion& e) {
      return Status(ENOTSUP, "the row " + pretty_binary_string(std::string(it->key())) + ": " +
                                 e.what());
    } catch (const ceph::buffer::error&) {
      // Fsck says so.
    }
  }
  return it->status();
}

}  // namespace

Status refuse_newer_rows(Engine& engine)
{
  Status s = refuse_newer(engine, Family::object, all_onodes_range(), newest_onode_version);
  if (s.ok())
    s = refuse_newer(engine, Family::object, all_shards_range(), newest_shard_version);
  if (s.ok())
    s = refuse_newer(engine, Family::super, reference_maps_range(), newest_reference_map_version);
  return s;
}

}  // namespace tablestore
