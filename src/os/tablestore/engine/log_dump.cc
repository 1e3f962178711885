#include "os/tablestore/engine/log_dump.h"

#include <string>

#include "os/tablestore/engine/format/label.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "os/tablestore/engine/table/table.h"

namespace tablestore {

namespace {

constexpr uint64_t small_cache_bytes = 8 << 20;

// One of the rows that have a copy. ENOENT: neither of the two can be had.
Result<std::string> get_row(Table& table, const std::string& key) {
  std::string row, why = "it is missing";
  for (const Family family : {Family::super, engine_rows::of_copies}) {
    const auto found = table.get(family, key, &row);
    if (found.ok() && *found) return row;
    if (!found.ok()) why = found.status().what();
  }
  return Status(ENOENT, "table: the row " + key.substr(1) + ": " + why);
}

}  // namespace

Status visit_log(Disk& disk, Threads& threads, const LogVisitor& visitor, Status* end) {
  const auto label = read_label(disk);
  if (!label.ok()) return label.status();
  const auto ring = LogRing::open(disk, label->log_bytes, label->segment_bytes);
  if (!ring.ok()) return ring.status();
  TableOptions options;
  options.auto_compactions = false;
  options.cache_bytes = small_cache_bytes;
  const auto table = Table::open(disk, options, threads);
  if (!table.ok()) return table.status();
  const auto start_row = get_row(**table, engine_rows::log_start());
  if (!start_row.ok()) return Status(EIO, start_row.status().what());
  const auto start = LogPosition::decode(*start_row);
  if (!start) return Status(EIO, "table: the row log_start is damaged");
  const auto applied_row = get_row(**table, engine_rows::applied());  // a new store has none
  const auto applied = applied_row.ok() ? engine_rows::decode_applied(*applied_row) : 0;
  visitor.start(*start, applied.value_or(0));
  LogReader reader(**ring, label->store_uuid, *start);
  for (;;) {
    auto group = reader.next();
    if (!group.ok()) return group.status();
    if (!*group) break;
    if (!visitor.group(**group, (*ring)->file((*group)->header.position).path())) return {};
  }
  *end = reader.end();
  return {};
}

}  // namespace tablestore
