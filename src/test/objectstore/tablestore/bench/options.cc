// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/options.h"

#include <bit>
#include <iostream>

#include <boost/program_options.hpp>

#include "test/objectstore/tablestore/bench/workloads.h"

namespace po = boost::program_options;

namespace store_bench {

namespace {

/// 4096, 4K, 1M, 2G.
struct Bytes {
  uint64_t value = 0;
};

void validate(boost::any& out, const std::vector<std::string>& words, Bytes*, int)
{
  const std::string& word = po::validators::get_single_string(words);
  size_t digits = 0;
  Bytes bytes;
  try {
    bytes.value = std::stoull(word, &digits);
  } catch (const std::exception&) {
    throw po::validation_error(po::validation_error::invalid_option_value);
  }
  const std::string unit = word.substr(digits);
  if (unit == "K")
    bytes.value <<= 10;
  else if (unit == "M")
    bytes.value <<= 20;
  else if (unit == "G")
    bytes.value <<= 30;
  else if (!unit.empty())
    throw po::validation_error(po::validation_error::invalid_option_value);
  out = bytes;
}

auto bytes(uint64_t& target)
{
  return po::value<Bytes>()->notifier([&target](const Bytes& b) { target = b.value; });
}

po::options_description describe(Options& o, std::vector<std::string>& settings)
{
  po::options_description all("Options");
  auto add = all.add_options();
  add("help,h", "this text");
  add("store", po::value(&o.store)->required(),
      "tablestore, bluestore, kstore, memstore; raw, raw-thin: the file system alone");
  add("dir", po::value(&o.dir)->required(), "where the store is made");
  add("workload", po::value(&o.workload)->required(), "one of those below");
  add("out", po::value(&o.out), "file for the result, else standard output");
  add("set", po::value(&settings), "OPTION=VALUE of Ceph's; may be given often");
  add("existing", po::bool_switch(&o.existing), "mount the store that is there");
  add("size", bytes(o.size), "of one operation, like 4K");
  add("depth", po::value(&o.depth), "operations in flight");
  add("shards", po::value(&o.shards), "threads that issue them; 0: the workload chooses");
  add("seconds", po::value(&o.seconds), "of measuring");
  add("warmup", po::value(&o.warmup), "seconds of load before");
  add("rest", po::value(&o.rest), "seconds without I/O before: the store begins rested");
  add("parts", po::value(&o.parts), "of the measured time, each with figures of its own");
  add("max-bytes", bytes(o.max_bytes), "a phase ends when so much was written");
  add("objects", po::value(&o.objects), "how many there are, where they are made before");
  add("object-size", bytes(o.object_size), "of those");
  add("unaligned", po::bool_switch(&o.unaligned), "offsets and lengths of any byte");
  add("aged-bytes", bytes(o.aged_bytes), "written and deleted before, by the workload new");
  add("cold", po::bool_switch(&o.cold), "reads after a remount, the page cache dropped");
  add("other-bytes", bytes(o.other_bytes), "of other objects that are read before cold reads");
  add("read-percent", po::value(&o.read_percent), "of the workload mix");
  add("rounds", po::value(&o.rounds), "of the workload aging");
  add("fill-percent", po::value(&o.fill_percent), "of the workload full");
  add("flush-us", po::value<uint64_t>()->notifier([&o](uint64_t us) { o.flush_us = us; }),
      "a flush takes so many microseconds and does not reach the disk; else the disk's own");
  add("seed", po::value(&o.seed), "of all that is random");
  add("pgs", po::value(&o.pgs), "placement groups, a power of two");
  add("log-entries", po::value(&o.log_entries), "of each PG's log; 0: as an OSD chooses");
  return all;
}

std::string check(const Options& o)
{
  if (!std::has_single_bit(o.pgs))
    return "--pgs must be a power of two";
  if (o.parts == 0)
    return "--parts must not be 0";
  if (o.depth == 0 || o.size == 0 || o.object_size < o.size)
    return "--depth and --size must not be 0, nor --object-size less than --size";
  if (!find_workload(o.workload))
    return "there is no workload '" + o.workload + "'";
  return "";
}

void usage(const po::options_description& all)
{
  std::cout << "Usage: ceph_tablestore_bench --store S --dir D --workload W [OPTIONS]\n\n"
               "Loads one object store as an OSD does and prints what it measured, as JSON.\n\n"
            << all << "\nWorkloads:\n";
  for (const auto& w : workloads()) {
    std::cout << "  " << w.name << std::string(16 - std::min<size_t>(15, w.name.size()), ' ')
              << w.description << "\n";
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int* status)
{
  Options o;
  std::vector<std::string> settings;
  const auto all = describe(o, settings);
  *status = 2;
  try {
    po::variables_map words;
    po::store(po::parse_command_line(argc, argv, all), words);
    if (words.count("help")) {
      usage(all);
      *status = 0;
      return std::nullopt;
    }
    po::notify(words);
  } catch (const po::error& e) {
    std::cerr << "ceph_tablestore_bench: " << e.what() << "; try --help\n";
    return std::nullopt;
  }
  for (const auto& word : settings) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      std::cerr << "ceph_tablestore_bench: '" << word << "' is not OPTION=VALUE\n";
      return std::nullopt;
    }
    o.settings[word.substr(0, equals)] = word.substr(equals + 1);
  }
  if (const std::string wrong = check(o); !wrong.empty()) {
    std::cerr << "ceph_tablestore_bench: " << wrong << "; try --help\n";
    return std::nullopt;
  }
  return o;
}

}  // namespace store_bench
