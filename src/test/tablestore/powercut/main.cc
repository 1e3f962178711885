// ./run powercut: kill -9, and power cuts below a real XFS and a real ext4.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "test/tablestore/powercut/campaign.h"
#include "test/tablestore/powercut/life.h"
#include "test/tablestore/powercut/plain_files.h"

namespace {

using namespace tablestore::powercut;

constexpr char usage[] =
    "Usage: tablestore_powercut --dir D [--fs ext4|xfs|both] [--seed N] [--cuts N] [--kills N]\n"
    "                           [--minutes M] [--sector BYTES]\n"
    "\n"
    "Processes write to a store on a real file system, and die. The file system is on a disk that\n"
    "loses what it was not made to flush; what is found afterwards is compared with what was\n"
    "acknowledged.\n"
    "  --dir D           an empty directory for scratch files; kill -9 happens on its file system\n"
    "  --fs FS           below which the power is cut (default: both)\n"
    "  --cuts N          power cuts per file system (default 200)\n"
    "  --kills N         of processes that write to --dir (default 0)\n"
    "  --minutes M       per file system, and for the kills; then --cuts and --kills do not count\n"
    "  --seed N          of the first store; the same seed makes the same store and transactions,\n"
    "                    but not the same moments\n"
    "  --store PROGRAM   ceph_test_tablestore, which lives on a whole ObjectStore\n"
    "  --plain           no store at all, only files that are written and flushed: is it the file\n"
    "                    system that loses something?\n"
    "  --mkfs OPTIONS    of the file system, e.g. \"-O fast_commit\"\n"
    "  --sector BYTES    what a power cut never tears (default: 512 below ext4; 4096 below XFS,\n"
    "                    whose own metadata do not survive a torn block)\n"
    "The last line counts kinds of death. Exits with 0: all passed; 1: one failed; 77: none\n"
    "failed, but something could not be done here (the lines SKIPPED say why).\n";

constexpr int skipped_exit = 77;

struct Arguments {
  CampaignOptions campaign;
  std::string fs = "both";
  uint64_t cuts = 200;
  uint64_t kills = 0;
  double minutes = 0;
  LifeOptions life;  // of a child
};

[[noreturn]] void wrong_usage(const std::string& what) {
  std::fprintf(stderr, "tablestore_powercut: %s\n%s", what.c_str(), usage);
  std::exit(2);
}

Arguments parse(int argc, char** argv, int first) {
  Arguments a;
  for (int i = first; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      std::fputs(usage, stdout);
      std::exit(0);
    }
    if (word == "--plain") {
      a.campaign.plain = true;
      continue;
    }
    if (++i == argc) wrong_usage(word + " needs a value");
    const std::string value = argv[i];
    const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (word == "--dir") a.campaign.dir = a.life.dir = value;
    else if (word == "--fs") a.fs = value;
    else if (word == "--seed") a.campaign.seed = number;
    else if (word == "--cuts") a.cuts = number;
    else if (word == "--kills") a.kills = number;
    else if (word == "--minutes") a.minutes = std::atof(value.c_str());
    else if (word == "--sector") a.campaign.sector_bytes = number;
    else if (word == "--mkfs") a.campaign.mkfs = value;
    else if (word == "--store") a.campaign.store_program = value;
    else if (word == "--previous") a.life.previous_fd = int(number);
    else if (word == "--journal") a.life.journal_fd = int(number);
    else wrong_usage("unknown argument " + word);
  }
  if (a.campaign.dir.empty()) wrong_usage("--dir is needed");
  if (a.fs != "ext4" && a.fs != "xfs" && a.fs != "both") wrong_usage("--fs is ext4, xfs or both");
  return a;
}

void print(const char* name, const Tally& t, double seconds) {
  std::printf("%s: %llu power cuts (%llu while mounting or opening; %.1f writes not flushed each), "
              "%llu kills -9 (%llu while opening), %llu orderly ends; %llu stores, %llu lives, "
              "%llu transactions acknowledged, %llu requests to disks; %.0f s\n",
              name, (unsigned long long)t.cuts, (unsigned long long)t.cuts_opening,
              t.cuts ? double(t.unflushed) / double(t.cuts) : 0.0, (unsigned long long)t.kills,
              (unsigned long long)t.kills_opening, (unsigned long long)t.ends,
              (unsigned long long)t.stores, (unsigned long long)t.lives,
              (unsigned long long)t.transactions, (unsigned long long)t.requests, seconds);
  std::fflush(stdout);
}

// Whether it has been everywhere. Whole stores do not tell.
void print_counters(const char* name, const Tally& t) {
  if (t.counters.empty()) return;
  std::string line;
  for (const char* counter : {"checkpoints", "log_full_waits", "log_bytes", "first_touch_bytes",
                              "container_flushes", "prepared_bytes", "punched_bytes",
                              "containers_created", "containers_removed",
                              "containers_reclassed"}) {
    line += std::string(line.empty() ? "" : ", ") + counter + " " +
            std::to_string(t.counters.at(counter));
  }
  std::printf("%s: %s\n", name, line.c_str());
}

// What makes power cuts impossible here; empty: nothing.
std::string obstacle() {
  if (const int error = own_mount_namespace())
    return std::string("no mount namespace of its own: ") + std::strerror(error);
  for (const char* device : {"/dev/fuse", "/dev/loop-control"})
    if (::access(device, R_OK | W_OK) != 0)
      return std::string(device) + ": " + std::strerror(errno);
  return {};
}

enum class Outcome { passed, failed, skipped };

// Runs one campaign.
template <typename Campaign>
Outcome run(const char* name, const Arguments& a, Campaign campaign) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  double reported = 0;
  CampaignOptions options = a.campaign;
  options.progress = [&](const Tally& t) {
    if (seconds() - reported < 60) return;
    reported = seconds();
    print(name, t, reported);
  };
  Tally tally;
  const std::string failure = campaign(options, seconds, &tally);
  print(name, tally, seconds());
  print_counters(name, tally);
  if (!failure.empty())
    std::printf("FAILED %s, %s\n", name, failure.c_str());
  return failure.empty() ? Outcome::passed : Outcome::failed;
}

Outcome skip(const std::string& what, const std::string& why) {
  std::printf("SKIPPED %s: %s\n", what.c_str(), why.c_str());
  return Outcome::skipped;
}

Outcome cut_power(const Arguments& a, FileSystem fs, DiskServer& server) {
  if (const std::string why = obstacle_to_cuts(a.campaign, fs, server); !why.empty())
    return skip(std::string("power cuts below ") + name_of(fs), why);
  return run(name_of(fs), a, [&](CampaignOptions options, auto seconds, Tally* tally) {
    if (!options.sector_bytes) options.sector_bytes = fs == FileSystem::ext4 ? 512 : 4096;
    options.enough = [&](const Tally& t) {
      return a.minutes > 0 ? seconds() >= a.minutes * 60 : t.cuts >= a.cuts;
    };
    return run_cuts(options, fs, server, tally);
  });
}

Outcome kill_processes(const Arguments& a) {
  return run("kill -9", a, [&](CampaignOptions options, auto seconds, Tally* tally) {
    options.enough = [&](const Tally& t) {
      return a.minutes > 0 ? seconds() >= a.minutes * 60 : t.kills >= a.kills;
    };
    return run_kills(options, tally);
  });
}

std::vector<FileSystem> wanted(const Arguments& a) {
  std::vector<FileSystem> wanted;
  for (const FileSystem fs : {FileSystem::ext4, FileSystem::xfs})
    if (a.fs == "both" || a.fs == name_of(fs)) wanted.push_back(fs);
  return wanted;
}

std::vector<Outcome> cut_power_below_all(const Arguments& a) {
  const std::vector<FileSystem> file_systems = wanted(a);
  auto skip_all = [&](const std::string& why) {
    return std::vector<Outcome>(file_systems.size(), skip("power cuts", why));
  };
  if (const std::string why = obstacle(); !why.empty()) return skip_all(why);
  const std::string disks = a.campaign.dir + "/disks";
  std::filesystem::create_directories(disks);
  auto server = DiskServer::start(disks);
  if (!server.ok()) return skip_all(server.status().what());
  std::vector<Outcome> outcomes;
  for (const FileSystem fs : file_systems) {
    outcomes.push_back(cut_power(a, fs, **server));
    if (outcomes.back() == Outcome::failed) break;
  }
  return outcomes;
}

int run_all(const Arguments& a) {
  std::vector<Outcome> outcomes;
  if (a.kills > 0) outcomes.push_back(kill_processes(a));
  auto count = [&](Outcome o) { return int(std::ranges::count(outcomes, o)); };
  if (a.cuts > 0 && count(Outcome::failed) == 0)
    for (const Outcome o : cut_power_below_all(a)) outcomes.push_back(o);
  const int failed = count(Outcome::failed), skipped = count(Outcome::skipped);
  std::printf("%d passed, %d failed, %d skipped\n", count(Outcome::passed), failed, skipped);
  return failed ? 1 : skipped ? skipped_exit : 0;
}

FileSystem file_system_in(const std::string& word) {
  return word == name_of(FileSystem::ext4) ? FileSystem::ext4 : FileSystem::xfs;
}

int report(const tablestore::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "FAILED %s\n", status.what().c_str());
  return status.ok() ? 0 : 1;
}

// FS OPTIONS FILE DIR PROGRAM ARGS...: mounts and becomes the program.
int run_inside(int argc, char** argv) {
  if (argc < 7) return 2;
  const FileSystemKind kind{file_system_in(argv[2]), "", argv[3]};
  if (const auto s = mount_for_this_process(kind, argv[4], argv[5]); !s.ok()) return report(s);
  ::execv(argv[6], argv + 6);
  return report(tablestore::Status::from_errno(errno, argv[6]));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "inside") return run_inside(argc, argv);
  if (what == "mkfs" && argc == 5)
    return report(make_file_system({file_system_in(argv[2]), argv[3], ""}, argv[4]));
  if (argc == 4 && what == "plain-make") return make_plain_files(argv[2], std::atoi(argv[3]));
  if (argc == 4 && what == "plain-live") return live_on_plain_files(argv[2], std::atoi(argv[3]));
  if (what == "make") return make_store(parse(argc, argv, 2).life);
  if (what == "live" || what == "judge") return live(parse(argc, argv, 2).life);
  return run_all(parse(argc, argv, 1));
}
