// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/osd_rows.h"

#include <algorithm>
#include <iterator>

#include "include/ceph_features.h"
#include "include/ceph_hash.h"
#include "test/objectstore/tablestore/bench/object_names.h"

namespace store_bench {

namespace {

constexpr epoch_t epoch = 11;

eversion_t version_of(uint64_t version)
{
  return eversion_t(epoch, version);
}

utime_t some_time()
{
  return utime_t(1760000000, 123456789);
}

osd_reqid_t some_request()
{
  return osd_reqid_t(entity_name_t::CLIENT(4157), 0, 0x1234567);
}

std::string encoded_info(const hobject_t& oid)
{
  object_info_t info(oid);
  info.version = version_of(7654321);
  info.prior_version = version_of(7654320);
  info.user_version = 7654321;
  info.last_reqid = some_request();
  info.size = 4 << 20;
  info.mtime = some_time();
  info.local_mtime = some_time();
  info.flags = object_info_t::FLAG_DIRTY;
  info.expected_object_size = 4 << 20;
  info.expected_write_size = 4 << 20;
  ceph::buffer::list bl;
  encode(info, bl, CEPH_FEATURES_SUPPORTED_DEFAULT);
  return bl.to_str();
}

std::string encoded_fast_info()
{
  pg_info_t info;
  info.last_update = info.last_complete = version_of(7654321);
  info.last_user_version = 7654321;
  info.stats.version = version_of(7654321);
  info.stats.reported_seq = 7654321;
  info.stats.last_fresh = info.stats.last_active = info.stats.last_clean = some_time();
  info.stats.stats.sum.num_bytes = int64_t(100) << 30;
  info.stats.stats.sum.num_objects = 25600;
  info.stats.stats.sum.num_wr = 7654321;
  pg_fast_info_t fast;
  fast.populate_from(info);
  ceph::buffer::list bl;
  encode(fast, bl);
  return bl.to_str();
}

}  // namespace

OsdRows::OsdRows()
{
  const hobject_t oid = object_name(1, 0, 1).hobj;
  const pg_log_entry_t log_entry(pg_log_entry_t::MODIFY, oid, version_of(7654321),
                                 version_of(7654320), 7654321, some_request(), some_time(), 0);
  ceph::buffer::list entry_bl, dup_bl, snaps_bl;
  log_entry.encode_with_checksum(entry_bl);
  encode(pg_log_dup_t(log_entry), dup_bl);
  encode(SnapSet(), snaps_bl);
  info = encoded_info(oid);
  snaps = snaps_bl.to_str();
  entry = entry_bl.to_str();
  dup = dup_bl.to_str();
  fast = encoded_fast_info();
}

// In the real rows the end of a name and its hash, versions, request, times and checksums differ,
// here and there: 20 to 26 bytes of an object's info and of a log's entry, which cost who
// compresses them what 40 do in one place.
ceph::buffer::list OsdRows::stamped(const std::string& encoded, uint64_t version,
                                    size_t other_bytes)
{
  ceph::buffer::ptr row(encoded.data(), encoded.size());
  uint64_t stamp[5];
  for (uint64_t i = 0; i < std::size(stamp); ++i)
    stamp[i] = mix(version * std::size(stamp) + i);
  const size_t length = std::min({other_bytes, sizeof(stamp), encoded.size()});
  row.copy_in((encoded.size() - length) / 2, length, reinterpret_cast<const char*>(stamp));
  ceph::buffer::list bl;
  bl.append(std::move(row));
  return bl;
}

uint64_t OsdRows::bytes_per_operation() const
{
  return info.size() + snaps.size() + entry.size() + fast.size() + log_key(1).size();
}

std::string OsdRows::log_key(uint64_t version)
{
  return version_of(version).get_key_name();
}

std::string OsdRows::dup_key(uint64_t version)
{
  return "dup_" + log_key(version);
}

}  // namespace store_bench
