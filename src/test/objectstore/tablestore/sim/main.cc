// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// ./run sim --store: random histories of the store from a seed on, or all short ones.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <string>

#include <unistd.h>

#include "common/ceph_argparse.h"
#include "common/ceph_context.h"
#include "global/global_context.h"
#include "global/global_init.h"
#include "test/objectstore/tablestore/sim/exhaustive.h"
#include "test/objectstore/tablestore/sim/history.h"
#include "test/objectstore/tablestore/sim/machine.h"
#include "test/tablestore/sim/frame/program.h"

namespace {

constexpr char usage[] =
  "Usage: ceph_tablestore_sim [--seed N] [--seeds N] [--minutes M] [--faults LIST] [--soak]\n"
  "       ceph_tablestore_sim --exhaustive [--damage] [--transactions N] [--only CASE]\n"
  "                           [--part I/N] [--minutes M] [--trace]\n"
  "\n"
  "TableStore, with Ceph's own transactions, on a simulated disk, crashed and recovered.\n"
  "  --seed N          one history, exactly that one; with the others, from there on\n"
  "  --seeds N         so many histories\n"
  "  --minutes M       histories for so long\n"
  "  --soak            the same without end (or for --minutes), with a report every minute\n"
  "  --faults LIST     of: none, errors, full, damage (default: errors,full)\n"
  "  --replay STEPS    the steps that a failure was minimised to\n"
  "  --no-minimise     a failing history is not made smaller\n"
  "  --wrapped         it began in the log's second lap (with --seed: the odd ones do)\n"
  "  --remapped        on one that writes nothing in place (with --seed: the tenth of 16)\n"
  "  --in-turn         who waits for the store is helped by all of its work in turn: others\n"
  "                    commit between the pieces of a checkpoint\n"
  "  --nearly-full     others fill the disk up, again and again, or make some room\n"
  "  --twice           runs each history twice, and compares them to the last I/O\n"
  "  --trace           tells each step and each I/O\n"
  "  --log LEVEL       what the store says, on standard error\n"
  "  --steps N         of one history (default 100)\n"
  "  --exhaustive      all histories of up to N transactions (default 2), crashed at every I/O;\n"
  "                    on each base (fresh, wrapped, provisioned), writes complete in order\n"
  "                    (in_order) or newest first (newest_first)\n"
  "  --damage          the same, of up to N transactions (default 1) whose writes complete in\n"
  "                    order, and one block of what each crash has left, or an orderly end, is\n"
  "                    rotten, unreadable or stale: each one that matters, one at a time\n"
  "  --only CASE       such a case alone, by the name that a failure prints, or all whose names\n"
  "                    begin so; an empty word is any. --only ,newest_first or\n"
  "                    --only wrapped,in_order,write_blocks,apart,7,keep,rot@log/0@12\n"
  "  --part I/N        each N-th of the histories, from I on\n";

void report(const tablestore::sim::Totals& totals)
{
  const double cpu_seconds = double(std::clock()) / CLOCKS_PER_SEC;
  const auto& sum = totals.sum;
  auto u = [](uint64_t n) { return (unsigned long long)n; };
  std::printf("%llu histories (seeds %llu to %llu), %llu transactions, %llu taken back, "
              "%llu crash-recoveries (%llu while recovering), %llu fsck and statfs, "
              "%llu repairs, %llu I/Os, %llu deaths by a failing disk, %llu stores refused, "
              "%llu reads that said -EIO, %llu I/Os on a full disk, "
              "%llu KiB moved out of containers; %.0f s, %.0f of them CPU, "
              "%.0f crashes per second of CPU\n",
              u(totals.histories), u(totals.first_seed), u(totals.last_seed()),
              u(sum.transactions), u(sum.taken_back), u(sum.crashes), u(sum.in_recovery()),
              u(sum.checks), u(sum.repairs), u(sum.ios), u(sum.died), u(sum.refused),
              u(sum.damaged_reads), u(sum.no_spaces), u(sum.moved >> 10),
              totals.seconds, cpu_seconds, double(sum.crashes) / cpu_seconds);
}

/// As an OSD's. A history changes some of them: see set_cache_bytes().
std::map<std::string, std::string> settings(const std::string& log_level)
{
  const std::string level = log_level.empty() ? "0/0" : log_level + "/" + log_level;
  return {
    {"debug_tablestore", level},
    {"tablestore_reserve_size", "1M"},
    {"log_to_stderr", log_level.empty() ? "false" : "true"},
    {"err_to_stderr", log_level.empty() ? "false" : "true"},
    {"log_file", "/dev/null"},
  };
}

}  // namespace

int main(int argc, char** argv)
{
  tablestore::sim::Arguments a;
  a.history.steps = 100;
  std::string log_level;
  const tablestore::sim::Simulator simulator{
    .program = "ceph_tablestore_sim",
    .command = "./run sim --store",
    .usage = usage,
    .histories = tablestore_sim::histories,
    .short_transactions = 2,
    .run_exhaustive = tablestore_sim::run_exhaustive,
    .report = report,
    .own_flags = {{"--remapped", &a.history.remapped},
                  {"--in-turn", &a.history.in_turn},
                  {"--nearly-full", &a.history.nearly_full},
                  {"--twice", &a.twice}},
    .own_values = {{"--log", &log_level}},
  };
  parse(argc, argv, simulator, &a);
  std::vector<const char*> nothing;
  const auto defaults = settings(log_level);
  auto cct = global_init(&defaults, nothing, CEPH_ENTITY_TYPE_CLIENT, CODE_ENVIRONMENT_UTILITY,
                         CINIT_FLAG_NO_DEFAULT_CONFIG_FILE);
  common_init_finish(g_ceph_context);

  std::string directory =
      (std::filesystem::temp_directory_path() / "ceph_tablestore_sim.XXXXXX").string();
  if (!::mkdtemp(directory.data())) {
    std::perror("ceph_tablestore_sim: no temporary directory");
    return 2;
  }
  tablestore_sim::set_directory(directory);
  const int status = run(simulator, a);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return status;
}
