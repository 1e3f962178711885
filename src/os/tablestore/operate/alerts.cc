// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/operate/alerts.h"

#include "include/stringify.h"
#include "include/types.h"
#include "os/tablestore/engine/troubles.h"
#include "os/tablestore/home/slow_ops.h"

namespace tablestore {

namespace {

std::string percent(double part) { return std::to_string(unsigned(part * 100)) + " %"; }

std::string events(const RecentEvents::Seen& seen, const char* what, uint64_t lifetime_seconds)
{
  return std::to_string(seen.count) + " " + what + " in the last " +
         std::to_string(lifetime_seconds) + " s took longer than tablestore_log_op_age";
}

}  // namespace

void Alerts::tell(const char* name, bool is_so, const std::string& line)
{
  if (is_so)
    troubles.raise(name, line);
  else
    troubles.clear(name);
}

void Alerts::look(const StoreState& state, const StoreOptions::Warnings& warnings,
                  ceph::mono_time now)
{
  look_at_slow_ops(warnings, now);
  look_at_log(state, warnings, now);
  look_at_space(state, warnings);
  before = state;
}

void Alerts::look_at_slow_ops(const StoreOptions::Warnings& warnings, ceph::mono_time now)
{
  const auto slow =
      slow_ops.operations.within(std::chrono::seconds(warnings.slow_ops_lifetime_seconds), now);
  tell("SLOW_OPS", warnings.slow_ops_threshold > 0 && slow.count >= warnings.slow_ops_threshold,
       events(slow, "commits and reads", warnings.slow_ops_lifetime_seconds) + ", the last one " +
           slow.last + ": look at the disk (iostat -x, smartctl -x) and at state_*_lat");
  const auto stalled =
      slow_ops.stalls.within(std::chrono::seconds(warnings.stalled_read_lifetime_seconds), now);
  tell("STALLED_READ",
       warnings.stalled_read_threshold > 0 && stalled.count >= warnings.stalled_read_threshold,
       events(stalled, "reads of the disk", warnings.stalled_read_lifetime_seconds) +
           ", the last one " + stalled.last + ": look at dmesg and smartctl -x");
}

void Alerts::look_at_log(const StoreState& state, const StoreOptions::Warnings& warnings,
                         ceph::mono_time now)
{
  if (before && state.log_full_waits > before->log_full_waits)
    waited_at = now;
  if (waited_at && now - *waited_at > log_full_lifetime)
    waited_at.reset();
  tell("LOG_FULL", warnings.log_full && waited_at.has_value(),
       "commits had to wait for space in the log: checkpoints of the table do not keep up with "
       "what is written; look at the disk's load, table_pending_compaction_bytes and apply_lat");

  const bool has_come = before && state.checkpoints > before->checkpoints;
  if (!state.gauges.log_is_pressed)
    checkpoint_wanted.reset();
  else if (!checkpoint_wanted || has_come)
    checkpoint_wanted = now;
  const auto late = std::chrono::seconds(warnings.checkpoint_late_seconds);
  const bool is_late = checkpoint_wanted && warnings.checkpoint_late_seconds > 0 &&
                       now - *checkpoint_wanted > late;
  tell("CHECKPOINT_LATE", is_late,
       "more than half of the log is used (" + stringify(byte_u_t(state.gauges.log_used_bytes)) +
           " of " + stringify(byte_u_t(state.gauges.log_capacity_bytes)) +
           "), and no checkpoint has come for " +
           std::to_string(warnings.checkpoint_late_seconds) +
           " s: look for a full file system, a slow disk and errors in the OSD's log");
}

void Alerts::look_at_space(const StoreState& state, const StoreOptions::Warnings& warnings)
{
  tell("FREE_FRAGMENTATION", state.fragmentation > warnings.free_fragmentation,
       "free space is fragmented (" + stringify(state.fragmentation) +
           " of 1): large writes are cut into small ones; empty sparse containers with 'ceph tell "
           "osd.N tablestore compact containers'");
  const double table = state.total_bytes
      ? double(state.gauges.table_bytes) / double(state.total_bytes) : 0;
  tell("TABLE_OVERSIZED", warnings.table_size < 1 && table > warnings.table_size,
       "the table takes " + percent(table) + " of the store (" +
           stringify(byte_u_t(state.gauges.table_bytes)) + " of " +
           stringify(byte_u_t(state.total_bytes)) + "), " +
           stringify(byte_u_t(state.gauges.table_pending_compaction_bytes)) +
           " of it not compacted: 'ceph tell osd.N compact', and see whether pools of omap or of "
           "small objects belong on other OSDs");
}

}  // namespace tablestore
