// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/client.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "common/Formatter.h"

namespace store_bench {

namespace {

constexpr std::chrono::milliseconds wait_interval{50};   // of what has no deadline
constexpr std::chrono::seconds progress_interval{1};
constexpr std::chrono::milliseconds ramp{200};           // of a load that was there before

void dump_latency(ceph::Formatter& f, const Histogram& h)
{
  const double us = 1e-3;
  f.open_object_section("latency_us");
  f.dump_float("mean", h.mean_ns() * us);
  f.dump_float("p50", h.quantile_ns(0.5) * us);
  f.dump_float("p90", h.quantile_ns(0.9) * us);
  f.dump_float("p99", h.quantile_ns(0.99) * us);
  f.dump_float("p99_9", h.quantile_ns(0.999) * us);
  f.dump_float("max", h.max_ns() * us);
  f.dump_unsigned("count", h.count());
  f.close_section();
}

void dump_list(ceph::Formatter& f, const char* name, const std::vector<uint64_t>& values)
{
  f.open_array_section(name);
  for (uint64_t value : values)
    f.dump_unsigned("", value);
  f.close_section();
}

}  // namespace

void PhaseResult::dump(ceph::Formatter& f) const
{
  f.open_object_section("phase");
  f.dump_string("name", name);
  f.dump_unsigned("depth", depth);
  f.dump_float("seconds", seconds);
  f.dump_unsigned("operations", operations);
  f.dump_unsigned("payload_bytes", payload_bytes);
  dump_latency(f, recorder.latencies);
  f.dump_unsigned("interval_ms", Recorder::interval.count());
  dump_list(f, "interval_operations", recorder.ops);
  dump_list(f, "interval_bytes", recorder.bytes);
  f.open_object_section("usage");
  usage.dump(f);
  f.close_section();
  f.open_object_section("usage_settled");
  usage_settled.dump(f);
  f.close_section();
  f.open_object_section("counters");
  for (const auto& [path, value] : counters)
    f.dump_float(path.c_str(), value);
  f.close_section();
  f.dump_unsigned("peak_memory_bytes", peak_memory_bytes);
  f.dump_string("load_average", load_average);
  f.close_section();
}

Client::Client(CephContext* cct, Store& store, const Options& options)
  : store(store),
    meter(store.directory()),
    shards_wanted(options.shards),
    seed(options.seed)
{
  const LogLimits limits = LogLimits::of(cct, options.pgs, options.log_entries);
  for (uint32_t i = 0; i < options.pgs; ++i)
    groups.push_back(std::make_unique<PlacementGroup>(i, options.pgs, rows, limits));
}

Client::~Client()
{
  close_groups();
}

void Client::create_groups()
{
  for (auto& pg : groups)
    pg->create(store.os());
  start_shards();
}

void Client::open_groups()
{
  for (auto& pg : groups)
    pg->open(store.os());
  start_shards();
}

void Client::close_groups()
{
  shards.clear();
  for (auto& pg : groups)
    pg->close();
}

void Client::start_shards()
{
  for (unsigned i = 0; i < shards_wanted; ++i) {
    std::vector<PlacementGroup*> share;
    for (unsigned g = i; g < groups.size(); g += shards_wanted)
      share.push_back(groups[g].get());
    shards.push_back(std::make_unique<Shard>(i, store.os(), std::move(share), seed));
  }
}

void Client::start_load(Load& load, const Phase& phase, bool from_start)
{
  const Time begin = Clock::now();
  load.make = phase.make;
  load.max_bytes = phase.max_bytes;
  load.from = begin;
  if (phase.seconds > 0) {
    load.from = begin + (phase.warmup > 0 ? ramp : Clock::duration::zero());
    load.until = load.from + duration_of(phase.seconds);
  }
  const unsigned n = phase.shards ? phase.shards : shards.size();
  for (unsigned i = 0; i < shards.size(); ++i)
    shards[i]->start(load, i < n ? phase.depth / n + (i < phase.depth % n) : 0, from_start);
}

bool Client::finished()
{
  return std::all_of(shards.begin(), shards.end(), [](auto& s) { return s->finished(); });
}

/// Until `end` or until all is done. Says once a second how far it is.
void Client::wait_for_load(const Load& load, const Phase& phase, Time end)
{
  Time said = Clock::now();
  uint64_t operations_said = load.operations;
  while (!finished() && Clock::now() < end) {
    std::this_thread::sleep_until(std::min(end, Clock::now() + wait_interval));
    const auto since = Clock::now() - said;
    if (since < progress_interval)
      continue;
    const uint64_t operations = load.operations;
    std::fprintf(stderr, "progress %s %.0f %.0f\n", phase.name.c_str(),
                 seconds_of(Clock::now() - load.from),
                 (operations - operations_said) / seconds_of(since));
    operations_said = operations;
    said += since;
  }
}

/// What a store does once when a load begins (space for a new size class, first growth of its
/// memory) is over, and has settled, when the measurement begins.
void Client::warm_up(const Phase& phase)
{
  Load load;
  Phase before = phase;
  before.seconds = phase.warmup;
  before.warmup = 0;
  start_load(load, before, true);
  wait_for_load(load, before, load.until);
  for (auto& shard : shards)
    shard->wait();
}

PhaseResult Client::run(const Phase& phase)
{
  const bool warm = phase.seconds > 0 && phase.warmup > 0;
  if (warm)
    warm_up(phase);
  if (!phase.goes_on)
    store.settle();
  PhaseResult result;
  result.name = phase.name;
  result.depth = phase.depth;
  std::map<std::string, double> counters_before;
  Usage before;
  const auto begin_counting = [&] {
    reset_peak_memory();
    counters_before = store.counters();
    before = meter.now();
  };
  Load load;
  // Without a ramp the first operation counts, and so does what it reads from the disk.
  if (!warm)
    begin_counting();
  start_load(load, phase, !warm && !phase.goes_on);
  if (warm) {
    wait_for_load(load, phase, load.from);
    begin_counting();
  }
  wait_for_load(load, phase, load.until);
  result.usage = meter.now() - before;
  result.counters = store.counters();
  result.peak_memory_bytes = peak_memory_bytes();
  result.load_average = load_average();
  for (auto& shard : shards) {
    shard->wait();
    result.recorder.merge(shard->results());
  }
  for (const auto& [path, value] : counters_before)
    result.counters[path] -= value;

  // What ended after the deadline has a latency, but is not part of the throughput.
  Recorder& r = result.recorder;
  const Time end = std::min(load.until, std::max(r.last, load.from));
  result.seconds = seconds_of(end - load.from);
  if (end == load.until) {
    const size_t whole = (end - load.from) / Recorder::interval;
    r.ops.resize(whole);
    r.bytes.resize(whole);
  }
  result.operations = std::accumulate(r.ops.begin(), r.ops.end(), uint64_t(0));
  result.payload_bytes = std::accumulate(r.bytes.begin(), r.bytes.end(), uint64_t(0));
  if (!phase.more_follows)
    store.settle();
  result.usage_settled = meter.now() - before;
  return result;
}

void Client::prepare(const Phase& phase)
{
  Load load;
  start_load(load, phase, true);
  wait_for_load(load, phase, load.until);
  for (auto& shard : shards)
    shard->wait();
}

}  // namespace store_bench
