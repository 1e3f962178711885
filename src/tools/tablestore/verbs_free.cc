// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include <map>
#include <vector>

#include "os/tablestore/operate/free_space_dump.h"
#include "tools/tablestore/verbs.h"

namespace tablestore_tool {

using namespace tablestore;

Exit free_dump(Call& call)
{
  Mount mount(call, Mount::For::reading);
  const Engine& engine = mount.parts().engine;
  std::map<uint32_t, std::vector<Run>> runs;
  engine.visit_free_runs(
      [&runs](unsigned, const Run& run) { runs[run.container].push_back(run); });
  ceph::Formatter& f = call.f;
  f.dump_unsigned("unit_bytes", block_bytes);
  f.open_array_section("containers");
  uint64_t dumped = 0;
  for (const ContainerUsage& each : engine.containers()) {
    f.open_object_section("container");
    f.dump_string("file", each.path);
    f.dump_unsigned("slot_bytes", uint64_t(slot_blocks(each.slot_class)) * block_bytes);
    f.open_array_section("extents");
    for (const Run& run : runs[each.container]) {
      if (call.options.limit && dumped++ >= call.options.limit)
        break;
      f.open_object_section("extent");
      f.dump_unsigned("offset", run.offset_bytes());
      f.dump_unsigned("length", run.length_bytes());
      f.close_section();
    }
    f.close_section();
    f.close_section();
    call.flush();
    if (interrupted)
      break;
  }
  f.close_section();
  return interrupted ? exit_interrupted : exit_done;
}

Exit free_score(Call& call)
{
  Mount mount(call, Mount::For::reading);
  dump_free_score(mount.parts().engine.free_space(), &call.f);
  return exit_done;
}

}  // namespace tablestore_tool
