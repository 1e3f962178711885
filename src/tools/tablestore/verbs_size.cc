// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// How much the store may take: the key "capacity" of the label, which counts where ceph.conf does
// not have tablestore_capacity.
#include <thread>

#include "common/config.h"
#include "tools/tablestore/open_label.h"

namespace tablestore_tool {

using namespace tablestore;

namespace {

constexpr std::chrono::milliseconds poll_interval{100};

void refuse_where_configured(const Call& call)
{
  const uint64_t configured = call.cct->_conf.get_val<Option::size_t>("tablestore_capacity");
  if (configured > 0)
    throw Failure(exit_usage, "tablestore_capacity is " + std::to_string(configured) +
                                  ", which counts: change it where it was set, with ceph-volume "
                                  "tablestore activate --capacity or in ceph.conf, and restart "
                                  "the OSD");
}

void keep_capacity(Call& call, std::optional<uint64_t> bytes)
{
  LockedStore store(call, StoreDir::Open::use);
  auto label = read_label(store.disk());
  require_ok(label.status());
  if (bytes)
    label->keys[capacity_key] = std::to_string(*bytes);
  else
    label->keys.erase(capacity_key);
  require_ok(write_label(store.disk(), *label));
}

/// What is on the disk of it.
uint64_t taken_bytes(Engine& engine)
{
  const SpaceUsage space = engine.space();
  return space.container_bytes + space.table_bytes + space.log_bytes + space.ballast_bytes;
}

/// What no compaction makes smaller.
uint64_t needed_bytes(Engine& engine)
{
  const SpaceUsage space = engine.space();
  return space.data_bytes + space.table_bytes + space.log_bytes + space.reserve_bytes +
         space.ballast_bytes;
}

void dump_space(Call& call, const std::string& name, Engine& engine)
{
  const SpaceUsage space = engine.space();
  call.f.open_object_section(name);
  call.f.dump_unsigned("total_bytes", space.total_bytes);
  call.f.dump_unsigned("available_bytes", space.available_bytes);
  call.f.dump_unsigned("data_bytes", space.data_bytes);
  call.f.dump_unsigned("taken_bytes", taken_bytes(engine));
  call.f.close_section();
}

void refuse_too_small(Call& call, Engine& engine, uint64_t bytes)
{
  const uint64_t needed = needed_bytes(engine);
  if (bytes < needed)
    throw Failure(exit_no_space, "the store needs " + std::to_string(needed) + " bytes for what is "
                                 "in it; it cannot be made " + std::to_string(bytes));
}

/// Empties container files and gives back what is free, until the store takes no more. False: it
/// was interrupted.
bool shrink_to(Call& call, MountedStore& store, uint64_t bytes)
{
  Engine& engine = store.engine;
  const uint64_t at_first = taken_bytes(engine);
  const auto goes_on = [&] {
    const uint64_t taken = taken_bytes(engine);
    return call.progress.advance(at_first - std::min(taken, at_first),
                                 at_first - std::min(bytes, at_first));
  };
  require(store.compaction.start(call.options.max_live_percent), "cannot compact containers");
  while (store.compaction.progress().running && taken_bytes(engine) > bytes && goes_on())
    std::this_thread::sleep_for(poll_interval);
  store.compaction.stop();
  while (taken_bytes(engine) > bytes && goes_on()) {
    const auto given_back = engine.give_back();
    require_ok(given_back.status());
    if (*given_back == 0)
      break;
  }
  return !interrupted;
}

}  // namespace

Exit expand(Call& call)
{
  refuse_in_use(call, Mount::For::use);
  refuse_where_configured(call);
  {
    Mount mount(call, Mount::For::reading);
    if (call.options.size)
      refuse_too_small(call, mount.parts().engine, *call.options.size);
    dump_space(call, "before", mount.parts().engine);
  }
  keep_capacity(call, call.options.size);
  Mount mount(call, Mount::For::reading);
  dump_space(call, "now", mount.parts().engine);
  return exit_done;
}

Exit shrink(Call& call)
{
  if (!call.options.size)
    throw Failure(exit_usage, "how small? Give --size, as 200G");
  refuse_in_use(call, Mount::For::use);
  refuse_where_configured(call);
  const uint64_t size = *call.options.size;
  {
    Mount mount(call, Mount::For::reading);
    refuse_too_small(call, mount.parts().engine, size);
    dump_space(call, "before", mount.parts().engine);
  }
  // From here on it does not grow beyond; what is too much goes now, or while the OSD runs.
  keep_capacity(call, size);
  Mount mount(call, Mount::For::use);
  call.progress.begin("shrink");
  const bool complete = shrink_to(call, mount.parts(), size);
  call.progress.end();
  dump_space(call, "now", mount.parts().engine);
  call.f.dump_bool("complete", complete && taken_bytes(mount.parts().engine) <= size);
  if (!complete)
    return exit_interrupted;
  return taken_bytes(mount.parts().engine) <= size ? exit_done : exit_no_space;
}

}  // namespace tablestore_tool
