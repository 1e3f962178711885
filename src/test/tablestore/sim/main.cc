// ./run sim: random histories of the engine from a seed on, or all short ones.
#include <malloc.h>

#include <cstdio>
#include <utility>

#include "test/tablestore/sim/exhaustive.h"
#include "test/tablestore/sim/frame/program.h"
#include "test/tablestore/sim/history.h"

namespace {

using tablestore::sim::Totals;

constexpr char usage[] =
    "Usage: tablestore_sim [--seed N] [--minutes M] [--faults LIST] [--steps N] [--soak]\n"
    "       tablestore_sim --exhaustive [--damage] [--transactions N] [--only CASE] [--part I/N]\n"
    "                      [--minutes M] [--trace]\n"
    "\n"
    "The store's engine on a simulated disk, crashed and recovered.\n"
    "  --seed N          one history, exactly that one; with --minutes or --soak, from there on\n"
    "  --seeds N         so many histories\n"
    "  --minutes M       histories for so long\n"
    "  --soak            the same without end (or for --minutes), with a report every minute\n"
    "  --faults LIST     of: none, errors, full, damage (default: errors,full)\n"
    "  --replay STEPS    the steps that a failure was minimised to\n"
    "  --no-minimise     a failing history is not made smaller\n"
    "  --wrapped         it began in the log's second lap (with --seed: some do)\n"
    "  --provisioned     it began with containers that mkfs had written (the same)\n"
    "  --remapped        on a file system that writes nothing in place (the same)\n"
    "  --in-turn         who waits for the store is helped by all of its work in turn: others\n"
    "                    commit between the pieces of a checkpoint\n"
    "  --nearly-full     others fill the disk up, again and again, or make some room\n"
    "  --twice           runs each history twice, and compares them to the last I/O\n"
    "  --trace           tells each step and each I/O\n"
    "  --steps N         of one history (default 120)\n"
    "  --exhaustive      all histories of up to N transactions (default 3), crashed at every I/O;\n"
    "                    on each base (fresh, wrapped, provisioned), writes complete in order\n"
    "                    (in_order) or newest first (newest_first)\n"
    "  --damage          the same, of up to N transactions (default 1) whose writes complete in\n"
    "                    order, and one block of what each crash has left, or an orderly end, is\n"
    "                    rotten, unreadable or stale: each one that matters, one at a time\n"
    "  --only CASE       such a case alone, by the name that a failure prints, or all whose names\n"
    "                    begin so; an empty word is any. --only ,newest_first or\n"
    "                    --only wrapped,in_order,write_small,apart,7,keep,rot@log/0@12\n"
    "  --part I/N        each N-th of the histories, from I on\n";

void report(const Totals& totals) {
  const auto& sum = totals.sum;
  const std::pair<const char*, uint64_t> counts[] = {
      {"transactions", sum.transactions},
      {"I/Os", sum.ios},
      {"late writes", sum.late_writes},
      {"short reads", sum.short_reads},
      {"deaths by a failing disk", sum.died},
      {"damaged stores refused", sum.refused},
      {"damaged blocks found", sum.damaged_reads},
      {"tables salvaged", sum.repairs},
      {"checkpoints", sum.checkpoints},
      {"full logs", sum.full_logs},
      {"ranges compacted for readers", sum.passed_ranges},
      {"I/Os on a full disk", sum.no_spaces},
      {"MiB prepared", sum.prepared >> 20},
      {"MiB punched", sum.punched >> 20},
      {"containers made", sum.created},
      {"containers removed", sum.removed},
      {"containers given to another class", sum.reclassed},
  };
  std::printf("seeds %llu to %llu: %llu histories, %llu crashes and recoveries (%.0f/s, %.0f s)\n",
              (unsigned long long)totals.first_seed, (unsigned long long)totals.last_seed(),
              (unsigned long long)totals.histories, (unsigned long long)sum.crashes,
              double(sum.crashes) / totals.seconds, totals.seconds);
  for (const auto& [name, count] : counts)
    std::printf("%s%llu %s", name == counts[0].first ? "  " : ", ", (unsigned long long)count,
                name);
  std::printf("\n  crashes while");
  for (unsigned m = 0; m < tablestore::sim::moments; ++m)
    std::printf("%s %s %llu", m ? "," : ":", moment_name(tablestore::sim::Moment(m)),
                (unsigned long long)sum.crashes_while[m]);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  // What one life has had, the next one wants.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  tablestore::sim::Arguments a;
  const tablestore::sim::Simulator simulator{
      .program = "tablestore_sim",
      .command = "./run sim",
      .usage = usage,
      .histories = tablestore::sim::histories,
      .short_transactions = 3,
      .run_exhaustive = tablestore::sim::run_exhaustive,
      .report = report,
      .own_flags = {{"--provisioned", &a.history.provisioned},
                    {"--remapped", &a.history.remapped},
                    {"--in-turn", &a.history.in_turn},
                    {"--nearly-full", &a.history.nearly_full},
                    {"--twice", &a.twice}},
  };
  parse(argc, argv, simulator, &a);
  return run(simulator, a);
}
