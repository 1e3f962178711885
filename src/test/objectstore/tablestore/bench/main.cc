// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// ceph_tablestore_bench: loads an object store, whichever, as an OSD does. ./run bench compares the
// results of many runs; doc/dev/tablestore-performance.rst says what is measured.
#include <fstream>
#include <iostream>

#include "common/Formatter.h"
#include "common/ceph_argparse.h"
#include "common/ceph_context.h"
#include "common/version.h"
#include "global/global_context.h"
#include "global/global_init.h"
#include "test/objectstore/tablestore/bench/floor.h"
#include "test/objectstore/tablestore/bench/flush.h"
#include "test/objectstore/tablestore/bench/workloads.h"

using namespace store_bench;

namespace {

boost::intrusive_ptr<CephContext> make_context(const Options& options)
{
  std::map<std::string, std::string> settings = {
      {"log_to_stderr", "false"},
      {"err_to_stderr", "true"},
      {"log_file", "/dev/null"},
      {"admin_socket", ""},
  };
  if (options.store == "kstore")
    settings["enable_experimental_unrecoverable_data_corrupting_features"] = "kstore";
  for (const auto& [name, value] : options.settings)
    settings[name] = value;
  std::vector<const char*> none;
  // An OSD's defaults: the stores' own memory settings depend on it.
  auto cct = global_init(&settings, none, CEPH_ENTITY_TYPE_OSD, CODE_ENVIRONMENT_UTILITY,
                         CINIT_FLAG_NO_DEFAULT_CONFIG_FILE);
  common_init_finish(g_ceph_context);
  for (const auto& [name, value] : settings) {
    std::string in_force;
    if (g_ceph_context->_conf.get_val(name, &in_force) < 0)
      throw BenchError("Ceph has no option '" + name + "'");
  }
  return cct;
}

void dump_options(ceph::Formatter& f, const Options& o, unsigned shards)
{
  f.open_object_section("options");
  f.dump_string("store", o.store);
  f.dump_string("workload", o.workload);
  f.dump_unsigned("size", o.size);
  f.dump_unsigned("depth", o.depth);
  f.dump_unsigned("shards", shards);
  f.dump_float("seconds", o.seconds);
  f.dump_float("warmup", o.warmup);
  f.dump_float("rest", o.rest);
  f.dump_unsigned("parts", o.parts);
  f.dump_unsigned("objects", o.objects);
  f.dump_unsigned("object_size", o.object_size);
  f.dump_bool("unaligned", o.unaligned);
  f.dump_unsigned("aged_bytes", o.aged_bytes);
  f.dump_bool("cold", o.cold);
  f.dump_unsigned("other_bytes", o.other_bytes);
  if (o.flush_us)
    f.dump_unsigned("flush_us", *o.flush_us);
  f.dump_unsigned("pgs", o.pgs);
  f.open_object_section("settings");
  for (const auto& [name, value] : o.settings)
    f.dump_string(name.c_str(), value);
  f.close_section();
  f.close_section();
}

void write_result(ceph::Formatter& f, const std::string& path)
{
  if (path.empty()) {
    f.flush(std::cout);
    std::cout << std::endl;
    return;
  }
  std::ofstream out(path);
  f.flush(out);
  out << std::endl;
  if (!out)
    throw BenchError("cannot write " + path);
}

void dump_results(ceph::Formatter& f, const std::vector<PhaseResult>& results)
{
  f.open_array_section("phases");
  for (const auto& result : results)
    result.dump(f);
  f.close_section();
}

void run_floor(const Options& options, ceph::Formatter& f)
{
  dump_options(f, options, 1);
  dump_results(f, measure_floor(options));
}

void run_store(const Options& options, const Workload& workload, ceph::Formatter& f)
{
  Store store(g_ceph_context, options.store, options.dir, options.existing, options.rest);
  Client client(g_ceph_context, store, options);
  const Payload payload;
  Bench bench{options, store, client, payload};
  if (options.existing)
    client.open_groups();
  else
    client.create_groups();
  workload.run(bench);

  dump_options(f, options, client.shard_count());
  f.dump_string("disk", UsageMeter(options.dir).disk());
  f.dump_unsigned("osd_row_bytes_per_operation", client.osd_rows().bytes_per_operation());
  dump_results(f, bench.results);
  f.open_object_section("values");
  for (const auto& [name, value] : bench.values)
    f.dump_float(name.c_str(), value);
  f.close_section();
  store.settle();
  store.dump_space(f);
  client.close_groups();
}

/// What the command line leaves open.
void complete(Options& o, const Workload& workload)
{
  if (o.shards == 0)
    o.shards = workload.shards ? workload.shards : o.depth;
  o.shards = std::min({o.shards, o.depth, o.pgs});
  o.existing |= workload.existing;
}

}  // namespace

int main(int argc, char** argv)
{
  int status = 0;
  auto options = parse_options(argc, argv, &status);
  if (!options)
    return status;
  const Workload& workload = *find_workload(options->workload);
  complete(*options, workload);
  imitate_flush(options->flush_us);
  try {
    auto cct = make_context(*options);
    ceph::JSONFormatter f;
    f.open_object_section("run");
    f.dump_string("ceph_version", pretty_version_to_str());
    f.dump_string("load_average_before", load_average());
    if (options->store == floor_store || options->store == first_touch_floor)
      run_floor(*options, f);
    else
      run_store(*options, workload, f);
    f.close_section();
    write_result(f, options->out);
  } catch (const std::exception& e) {
    std::cerr << "ceph_tablestore_bench: " << e.what() << std::endl;
    return 1;
  }
  return 0;
}
