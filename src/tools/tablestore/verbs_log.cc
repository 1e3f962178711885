// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/engine/io/file_disk.h"
#include "os/tablestore/engine/io/frozen_disk.h"
#include "os/tablestore/engine/log_dump.h"
#include "os/tablestore/engine/own_threads.h"
#include "tools/tablestore/verbs.h"

namespace tablestore_tool {

using namespace tablestore;

namespace {

void dump_group(const LogGroup& group, const std::string& path, ceph::Formatter& f)
{
  const LogGroupHeader& h = group.header;
  uint64_t rows = 0, row_bytes = 0, written_blocks = 0, freed_blocks = 0;
  for (const LogRecord& record : group.records) {
    rows += record.row_count;
    row_bytes += record.rows.size();
    for (const LoggedWrite& write : record.writes)
      written_blocks += write.run.blocks;
    for (const Extent& freed : record.frees)
      freed_blocks += freed.blocks;
  }
  f.open_object_section("group");
  f.dump_unsigned("position", h.position);
  f.dump_string("file", path);
  f.dump_unsigned("bytes", h.total_bytes());
  f.dump_unsigned("epoch", h.epoch);
  f.dump_unsigned("first_lsn", h.first_lsn);
  f.dump_unsigned("transactions", h.transactions);
  f.dump_unsigned("watermark", h.watermark);
  f.dump_bool("begins_epoch", h.flags & LogGroupHeader::begins_epoch);
  f.dump_bool("compressed", h.flags & LogGroupHeader::compressed);
  f.dump_bool("is_damaged", group.is_derived);
  f.dump_unsigned("rows", rows);
  f.dump_unsigned("row_bytes", row_bytes);
  f.dump_unsigned("written_bytes", written_blocks * block_bytes);
  f.dump_unsigned("freed_bytes", freed_blocks * block_bytes);
  f.close_section();
}

}  // namespace

Exit log_dump(Call& call)
{
  refuse_in_use(call, Mount::For::reading);
  FileDiskOptions options;
  options.read_only = true;
  auto opened = open_file_disk(call.options.path, options);
  if (!opened.ok())
    throw Failure(exit_no_store, opened.status().what());
  const auto disk = freeze(std::shared_ptr<Disk>(opened.take()));
  OwnThreads threads;
  Status end;
  uint64_t groups = 0, bytes = 0;
  ceph::Formatter& f = call.f;
  const LogVisitor visitor{
      .start =
          [&](const LogPosition& start, uint64_t applied_lsn) {
            f.dump_unsigned("start_position", start.position);
            f.dump_unsigned("next_lsn", start.next_lsn);
            f.dump_unsigned("applied_lsn", applied_lsn);
            f.open_array_section("groups");
          },
      .group =
          [&](const LogGroup& group, const std::string& path) {
            if (call.options.limit == 0 || groups < call.options.limit)
              dump_group(group, path, f);
            ++groups;
            bytes += group.header.total_bytes();
            call.flush();
            return !interrupted;
          },
  };
  const Status s = visit_log(*disk, threads, visitor, &end);
  if (!s.ok())
    throw Failure(exit_failed, s.what());
  f.close_section();
  f.dump_unsigned("groups_found", groups);
  f.dump_unsigned("bytes", bytes);
  f.dump_string("end", end.ok() ? "nothing more was begun" : end.what());
  return interrupted ? exit_interrupted : exit_done;
}

}  // namespace tablestore_tool
