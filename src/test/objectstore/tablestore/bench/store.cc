// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/store.h"

#include <fstream>
#include <thread>

#include <unistd.h>

#include "common/Formatter.h"
#include "common/ceph_context.h"
#include "common/errno.h"
#include "common/perf_counters.h"
#include "common/perf_counters_collection.h"
#include "test/objectstore/tablestore/bench/program_text.h"
#include "test/objectstore/tablestore/bench/usage.h"

namespace store_bench {

namespace {

// Quiet: less than this written in each interval of the rest. Given up after the limit: BlueStore
// and RocksDB can have minutes of compaction to do.
constexpr std::chrono::milliseconds settle_interval{300};
constexpr uint64_t settle_bytes = 1 << 20;
constexpr double settle_limit_seconds = 30;

/// Engine statistics of tablestore that are not performance counters: one flat object.
void add_statistics(ObjectStore& store, std::map<std::string, double>& all)
{
  ceph::JSONFormatter f;
  store.get_db_statistics(&f);
  std::stringstream text;
  f.flush(text);
  // {"name":123,"name":4}: numbers only.
  std::string name;
  for (char c; text.get(c);) {
    if (c == '"') {
      std::getline(text, name, '"');
    } else if (c == ':' && std::isdigit(text.peek())) {
      double value = 0;
      text >> value;
      all["statistics." + name] = value;
    }
  }
}

}  // namespace

int require(int r, const std::string& what)
{
  if (r < 0)
    throw BenchError(what + ": " + cpp_strerror(r));
  return r;
}

Store::Store(CephContext* cct, const std::string& type, const std::string& dir, bool existing,
             double rest_seconds)
  : cct(cct), store_type(type), dir(dir), rest(duration_of(rest_seconds))
{
  create();
  if (!existing)
    require(store->mkfs(), "cannot make a " + type + " in " + dir);
  mount();
}

Store::~Store()
{
  umount();
}

void Store::create()
{
  store = ObjectStore::create(cct, store_type, dir, dir + "/journal");
  if (!store)
    throw BenchError("no store is called '" + store_type + "'");
  // As many as an OSD on a rotating disk or a small machine has; also what a store is given by
  // default.
  store->set_cache_shards(cct->_conf->osd_op_num_shards ? cct->_conf->osd_op_num_shards : 5);
}

void Store::mount()
{
  const Time begin = Clock::now();
  require(store->mount(), "cannot mount the " + store_type + " in " + dir);
  seconds_to_mount = seconds_of(Clock::now() - begin);
}

void Store::umount()
{
  if (!store)
    return;
  require(store->umount(), "cannot umount the " + store_type + " in " + dir);
  store.reset();
}

void Store::remount_cold()
{
  umount();
  ::sync();
  std::ofstream("/proc/sys/vm/drop_caches") << "3\n";
  load_mapped_files();   // what is to be cold is the store, not the program
  create();
  mount();
}

void Store::empty_log()
{
  store->compact();
  settle();
}

void Store::settle()
{
  const UsageMeter meter(dir);
  const Time limit = Clock::now() + duration_of(settle_limit_seconds);
  const auto moved = [&] {
    const Usage u = meter.now();
    return u.write_bytes + u.read_bytes;   // a compaction first reads
  };
  uint64_t before = moved();
  for (Clock::duration quiet{0}; quiet < rest && Clock::now() < limit;) {
    std::this_thread::sleep_for(settle_interval);
    const uint64_t now = moved();
    quiet = now - before < settle_bytes ? quiet + settle_interval : Clock::duration{0};
    before = now;
  }
}

std::map<std::string, double> Store::counters()
{
  std::map<std::string, double> all;
  store->refresh_perf_counters();
  cct->get_perfcounters_collection()->with_counters(
      [&](const PerfCountersCollectionImpl::CounterMap& by_path) {
        for (const auto& [path, ref] : by_path) {
          const auto type = ref.data->type;
          const double unit = type & PERFCOUNTER_TIME ? 1e9 : 1;
          if (type & PERFCOUNTER_HISTOGRAM)
            continue;
          if (type & PERFCOUNTER_LONGRUNAVG) {
            const auto [sum, count] = ref.data->read_avg();
            all[path + ".sum"] = sum / unit;
            all[path + ".count"] = count;
          } else {
            all[path] = ref.data->u64 / unit;
          }
        }
      });
  if (store_type == "tablestore")
    add_statistics(*store, all);
  return all;
}

void Store::dump_space(ceph::Formatter& f)
{
  store_statfs_t s;
  if (store->statfs(&s) < 0)
    s.reset();
  f.open_object_section("space");
  f.dump_unsigned("directory_bytes", directory_bytes(dir));
  f.dump_unsigned("total", s.total);
  f.dump_unsigned("available", s.available);
  f.dump_int("allocated", s.allocated);
  f.dump_int("stored", s.data_stored);
  f.dump_int("omap_allocated", s.omap_allocated);
  f.dump_int("internal_metadata", s.internal_metadata);
  f.close_section();
}

uint64_t Store::used_bytes()
{
  store_statfs_t s;
  require(store->statfs(&s), "statfs");
  return s.total - s.available;
}

uint64_t Store::total_bytes()
{
  store_statfs_t s;
  require(store->statfs(&s), "statfs");
  return s.total;
}

}  // namespace store_bench
