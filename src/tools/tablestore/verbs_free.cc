// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "os/tablestore/engine/format/extent.h"
#include "tools/tablestore/free_score.h"
#include "tools/tablestore/verbs.h"

namespace tablestore_tool {

using namespace tablestore;

namespace {

/// Calls visit(first, blocks) with each run of blocks that no row owns.
void for_each_free_run(const BlockBitmap& owned,
                       const std::function<void(uint32_t, uint32_t)>& visit)
{
  for (uint32_t first = owned.next_clear(0); first < owned.blocks();) {
    const uint32_t end = owned.next_set(first);
    visit(first, end - first);
    first = owned.next_clear(end);
  }
}

}  // namespace

Exit free_dump(Call& call)
{
  Mount mount(call, Mount::For::reading);
  Engine& engine = mount.parts().engine;
  const auto owned = engine.owned_blocks();
  ceph::Formatter& f = call.f;
  f.dump_unsigned("unit_bytes", block_bytes);
  f.open_array_section("containers");
  uint64_t dumped = 0;
  for (const ContainerUsage& each : engine.containers()) {
    f.open_object_section("container");
    f.dump_string("file", each.path);
    f.dump_unsigned("slot_bytes", uint64_t(slot_blocks(each.slot_class)) * block_bytes);
    f.open_array_section("extents");
    for_each_free_run(owned.at(each.container), [&](uint32_t first, uint32_t blocks) {
      if (call.options.limit && dumped++ >= call.options.limit)
        return;
      f.open_object_section("extent");
      f.dump_unsigned("offset", first * block_bytes);
      f.dump_unsigned("length", blocks * block_bytes);
      f.close_section();
    });
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
  Engine& engine = mount.parts().engine;
  const auto owned = engine.owned_blocks();
  std::map<unsigned, FreeScore> of_class;
  FreeScore of_all;
  for (const ContainerUsage& each : engine.containers()) {
    for_each_free_run(owned.at(each.container), [&](uint32_t, uint32_t blocks) {
      of_class[each.slot_class].add(blocks);
      of_all.add(blocks);
    });
  }
  ceph::Formatter& f = call.f;
  const auto dump = [&f](const FreeScore& score) {
    f.dump_float("score", score.value());
    f.dump_unsigned("free_bytes", score.free_blocks() * block_bytes);
    f.dump_unsigned("extents", score.runs());
    f.dump_unsigned("largest_bytes", score.largest() * block_bytes);
  };
  dump(of_all);
  f.open_array_section("classes");
  for (const auto& [slot_class, score] : of_class) {
    f.open_object_section("class");
    f.dump_unsigned("slot_bytes", uint64_t(slot_blocks(slot_class)) * block_bytes);
    dump(score);
    f.close_section();
  }
  f.close_section();
  return exit_done;
}

}  // namespace tablestore_tool
