// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/home/options.h"

#include <algorithm>

#include "common/ceph_context.h"
#include "common/config.h"

namespace tablestore {

uint64_t MemoryLimits::cache_max(uint64_t others) const
{
  const auto usable = uint64_t((1.0 - fragmentation) * double(target));
  return std::max(cache_min, usable - std::min(usable, base + others));
}

StoreOptions::StoreOptions(CephContext* cct) : cct(cct)
{
  load();
  cct->_conf.add_observer(this);
}

StoreOptions::~StoreOptions()
{
  cct->_conf.remove_observer(this);
}

void StoreOptions::load()
{
  const auto& conf = cct->_conf;
  capacity_bytes = conf.get_val<Option::size_t>("tablestore_capacity");
  inline_max_bytes = conf.get_val<Option::size_t>("tablestore_inline_max");
  load_changeable();
}

void StoreOptions::load_changeable()
{
  const auto& conf = cct->_conf;
  throttle_bytes = conf.get_val<Option::size_t>("tablestore_throttle_bytes");
  throttle_ops = conf.get_val<uint64_t>("tablestore_throttle_ops");
  blackhole = conf.get_val<bool>("objectstore_blackhole");
  throw_on_failed_txc = conf.get_val<bool>("objectstore_debug_throw_on_failed_txc");
  read_error_probability = conf.get_val<double>("tablestore_debug_read_error_probability");
  retry_disk_reads = conf.get_val<uint64_t>("tablestore_retry_disk_reads");
  warn_on_spurious_read_errors = conf.get_val<bool>("tablestore_warn_on_spurious_read_errors");
  log_op_age_ns = int64_t(conf.get_val<double>("tablestore_log_op_age") * 1e9);
  inject_read_errors = conf.get_val<bool>("tablestore_debug_inject_read_err");
}

EngineOptions StoreOptions::engine_options() const
{
  const auto& conf = cct->_conf;
  EngineOptions options;
  options.log_bytes = conf.get_val<Option::size_t>("tablestore_log_size");
  options.segment_bytes = conf.get_val<Option::size_t>("tablestore_segment_size");
  options.container_bytes = conf.get_val<Option::size_t>("tablestore_container_size");
  options.provision_bytes = conf.get_val<Option::size_t>("tablestore_provision_size");
  options.compress_log = conf.get_val<bool>("tablestore_log_compression");
  options.capacity_bytes = capacity_bytes;
  options.memtable_bytes = conf.get_val<Option::size_t>("tablestore_table_memtable_size");
  options.table_cache_bytes = uint64_t(CacheShares::table * double(first_cache_bytes()));
  options.table_options = conf.get_val<std::string>("tablestore_table_options");
  options.stock_bytes = conf.get_val<Option::size_t>("tablestore_stock_size");
  options.prepare_bytes_per_second = conf.get_val<Option::size_t>("tablestore_prepare_rate");
  options.punch_bytes_per_second = conf.get_val<Option::size_t>("tablestore_punch_rate");
  options.last_resort_bytes = 64 << 20;
  options.delete_range_threshold = conf.get_val<uint64_t>("rocksdb_delete_range_threshold");
  options.compact_on_deletion_window =
      conf.get_val<int64_t>("rocksdb_cf_compact_on_deletion_sliding_window");
  options.compact_on_deletion_trigger = conf.get_val<bool>("rocksdb_cf_compact_on_deletion")
      ? conf.get_val<int64_t>("rocksdb_cf_compact_on_deletion_trigger") : 0;
  if (options.compact_on_deletion_trigger == 0)
    options.compact_on_passing = 0;
  options.accept_log_loss = conf.get_val<bool>("tablestore_accept_log_loss");
  return options;
}

StoreOptions::Warnings StoreOptions::warnings() const
{
  const auto& conf = cct->_conf;
  return {
    .slow_ops_lifetime_seconds = conf.get_val<uint64_t>("tablestore_slow_ops_warn_lifetime"),
    .slow_ops_threshold = conf.get_val<uint64_t>("tablestore_slow_ops_warn_threshold"),
    .stalled_read_lifetime_seconds =
        conf.get_val<uint64_t>("tablestore_stalled_read_warn_lifetime"),
    .stalled_read_threshold = conf.get_val<uint64_t>("tablestore_stalled_read_warn_threshold"),
    .free_fragmentation = conf.get_val<double>("tablestore_warn_on_free_fragmentation"),
    .table_size = conf.get_val<double>("tablestore_warn_on_table_size"),
    .fragmentation_check_seconds =
        conf.get_val<uint64_t>("tablestore_fragmentation_check_period"),
    .checkpoint_late_seconds = conf.get_val<uint64_t>("tablestore_warn_on_checkpoint_late"),
    .log_full = conf.get_val<bool>("tablestore_warn_on_log_full"),
  };
}

StoreOptions::CheckAtMount StoreOptions::check_at_mount() const
{
  const auto& conf = cct->_conf;
  if (!conf.get_val<bool>("tablestore_fsck_on_mount"))
    return CheckAtMount::none;
  return conf.get_val<bool>("tablestore_fsck_on_mount_deep") ? CheckAtMount::deep
                                                             : CheckAtMount::quick;
}

uint64_t StoreOptions::fixed_cache_bytes() const
{
  return cct->_conf.get_val<Option::size_t>("tablestore_cache_size");
}

uint64_t StoreOptions::first_cache_bytes() const
{
  const uint64_t fixed = fixed_cache_bytes();
  return fixed ? fixed : memory_limits().cache_min;
}

MemoryLimits StoreOptions::memory_limits() const
{
  const auto& conf = cct->_conf;
  return {
    .target = conf.get_val<Option::size_t>("osd_memory_target"),
    .base = conf.get_val<Option::size_t>("osd_memory_base"),
    .cache_min = conf.get_val<Option::size_t>("osd_memory_cache_min"),
    .fragmentation = conf.get_val<double>("osd_memory_expected_fragmentation"),
    .resize_interval_seconds = conf.get_val<double>("osd_memory_cache_resize_interval"),
  };
}

uint64_t StoreOptions::reserve_bytes(uint64_t total_bytes) const
{
  if (uint64_t bytes = cct->_conf.get_val<Option::size_t>("tablestore_reserve_size"); bytes != 0)
    return std::min(bytes, total_bytes);
  const uint64_t wanted =
      std::max<uint64_t>(128 << 20, std::min<uint64_t>(total_bytes / 50, uint64_t(8) << 30));
  return std::min(wanted, total_bytes / 10);
}

std::vector<std::string> StoreOptions::get_tracked_keys() const noexcept
{
  return {
    "tablestore_throttle_bytes",
    "tablestore_throttle_ops",
    "tablestore_cache_size",
    "tablestore_debug_read_error_probability",
    "tablestore_retry_disk_reads",
    "tablestore_warn_on_spurious_read_errors",
    "tablestore_log_op_age",
    "tablestore_debug_inject_read_err",
    "osd_memory_target",
    "osd_memory_base",
    "osd_memory_cache_min",
    "osd_memory_expected_fragmentation",
    "objectstore_blackhole",
    "objectstore_debug_throw_on_failed_txc",
  };
}

void StoreOptions::handle_conf_change(const ConfigProxy&, const std::set<std::string>&)
{
  load_changeable();
}

}  // namespace tablestore
