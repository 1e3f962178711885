// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <thread>

#include "tools/tablestore/open_label.h"
#include "tools/tablestore/verbs.h"

namespace tablestore_tool {

using namespace tablestore;

namespace {

constexpr std::chrono::milliseconds poll_interval{100};

Exit compact_table(Call& call)
{
  Mount mount(call, Mount::For::use);
  Engine& engine = mount.parts().engine;
  const uint64_t before = engine.space().table_bytes;
  const Status s = engine.compact(&interrupted);
  if (s.code() != ECANCELED)
    require_ok(s);
  call.f.dump_unsigned("table_bytes_before", before);
  call.f.dump_unsigned("table_bytes", engine.space().table_bytes);
  call.f.dump_bool("complete", s.ok());
  return s.ok() ? exit_done : exit_interrupted;
}

Exit compact_containers(Call& call)
{
  Mount mount(call, Mount::For::use);
  ContainerCompaction& compaction = mount.parts().compaction;
  call.progress.begin("compact");
  require(compaction.start(call.options.max_live_percent), "cannot compact containers");
  for (auto now = compaction.progress(); now.running; now = compaction.progress()) {
    if (!call.progress.advance(now.moved_bytes, now.moved_bytes + now.left_bytes))
      compaction.stop();
    std::this_thread::sleep_for(poll_interval);
  }
  call.progress.end();
  compaction.dump(&call.f);
  return interrupted ? exit_interrupted : exit_done;
}

}  // namespace

Exit compact(Call& call)
{
  return call.options.containers ? compact_containers(call) : compact_table(call);
}

Exit trim(Call& call)
{
  Mount mount(call, Mount::For::use);
  Engine& engine = mount.parts().engine;
  uint64_t free_bytes = 0;
  for (const ContainerUsage& each : engine.containers())
    free_bytes += each.free_blocks * block_bytes;
  call.progress.begin("trim");
  uint64_t given_back = 0;
  bool goes_on = true;
  while (goes_on) {
    const auto bytes = engine.give_back();
    require_ok(bytes.status());
    if (*bytes == 0)
      break;
    given_back += *bytes;
    goes_on = call.progress.advance(given_back, free_bytes);
  }
  call.progress.end();
  call.f.dump_unsigned("given_back_bytes", given_back);
  call.f.dump_bool("complete", goes_on);
  return goes_on ? exit_done : exit_interrupted;
}

/// The label first: without it, and with an empty fsid file, there is no store, and what is left of
/// it a later mkfs removes. The type last: by that file a zap that was interrupted goes on.
Exit zap(Call& call)
{
  if (!call.options.yes)
    throw Failure(exit_usage, "all objects in " + call.options.path + " will be lost; if that is "
                              "meant, add --yes-i-really-really-mean-it");
  LockedStore store(call, StoreDir::Open::create);
  Disk& disk = store.disk();
  call.f.open_array_section("removed");
  const auto note = [&call](const char* name, const Status& s) {
    require_ok(s);
    call.f.dump_string("name", name);
  };
  note("label", disk.remove("label"));
  require_ok(disk.sync_dir(""));
  store.disown();
  for (const char* dir : {"log", "table", "containers"})
    note(dir, disk.remove_tree(dir));
  for (const char* file : {"ballast", "ballast-to-open", "fsid", "type"})
    note(file, disk.remove(file));
  require_ok(disk.sync_dir(""));
  call.f.close_section();
  return exit_done;
}

}  // namespace tablestore_tool
