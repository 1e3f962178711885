#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "test/tablestore/powercut/campaign.h"
#include "test/tablestore/powercut/lineage.h"

namespace tablestore::powercut {

namespace {

constexpr uint64_t disk_bytes = 512 << 20;
constexpr unsigned cuts_while_judging = 3;  // one after the other

// A moment at which the power goes.
struct Cut {
  Fate fate;
  uint64_t seed;
  // From then on:
  std::atomic<bool> taken{false};
  std::optional<Image> image;
  Evidence evidence;
  uint64_t unflushed = 0;
};

// How this program is told to make or mount a file system on a file.
std::vector<std::string> mkfs_words(const FileSystemKind& kind, const std::string& file) {
  return {"/proc/self/exe", "mkfs", name_of(kind.type), kind.mkfs, file};
}
std::vector<std::string> mount_words(const FileSystemKind& kind, const std::string& file,
                                     const std::string& dir) {
  return {"/proc/self/exe", "inside", name_of(kind.type), kind.mount, file, dir};
}

// Each process has its own mount on it.
std::string mount_point(const CampaignOptions& options) { return options.dir + "/mounted"; }

// A process that has ended may have I/O in flight, and a mount, for a moment.
void wait_until_closed(DiskServer& server, const std::string& file) {
  for (int milliseconds = 0; !server.remove_unless_open(file); ++milliseconds) {
    if (milliseconds > 600'000) throw Failure{"a dead process does not let go of its disk"};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// One store on one file system.
class Story {
 public:
  Story(const CampaignOptions& options, const FileSystemKind& kind, DiskServer& server,
        uint64_t seed, Tally* tally)
      : options_(options),
        kind_(kind),
        server_(server),
        random_(seed),
        tally_(tally),
        store_(options, random_(), tally) {}

  void run(const Image& fresh);

 private:
  std::shared_ptr<CutDisk> make_disk(Image image);
  // Where one process finds what is on the disk that is this file.
  Place place_on(const std::string& file) const;
  // The same for the store that lives, when the process before has unmounted it.
  Place place();
  void insert(Image image);
  void count_requests(const CutDisk& disk);

  std::shared_ptr<Cut> arm(CutDisk& disk, std::function<Evidence()> evidence);
  std::shared_ptr<Cut> cut_while_it_lives();
  void judge(const Cut& cut, unsigned depth);
  void keep(const Cut& cut) const;
  void end_life(const std::shared_ptr<Cut>& last);

  const CampaignOptions& options_;
  const FileSystemKind kind_;
  DiskServer& server_;
  Random random_;
  Tally* const tally_;
  std::shared_ptr<CutDisk> disk_;
  std::string file_;  // of disk_, that somebody may have open
  Lineage store_;
};

std::shared_ptr<CutDisk> Story::make_disk(Image image) {
  CutDiskOptions o{.sector_bytes = options_.sector_bytes, .seed = random_()};
  if (random_() % 2) o.slow_write_us = 300;
  if (random_() % 2) o.slow_flush_us = 3000;
  return std::make_shared<CutDisk>(std::move(image), o);
}

Place Story::place_on(const std::string& file) const {
  return {mount_point(options_), mount_words(kind_, file, mount_point(options_))};
}

Place Story::place() {
  if (!file_.empty()) wait_until_closed(server_, file_);
  file_ = server_.add(disk_);
  return place_on(file_);
}

// The disk of the store that lives.
void Story::insert(Image image) {
  if (disk_) count_requests(*disk_);
  disk_ = make_disk(std::move(image));
  file_.clear();
}

void Story::count_requests(const CutDisk& disk) {
  const CutDiskCounts c = disk.counts();
  tally_->requests += c.reads + c.writes + c.flushes;
}

// Lets the power go some requests from now.
std::shared_ptr<Cut> Story::arm(CutDisk& disk, std::function<Evidence()> evidence) {
  auto cut = std::make_shared<Cut>();
  cut->fate = Fate(random_() % fates);
  cut->seed = random_();
  const uint64_t requests = random_() % (uint64_t(1) << (1 + random_() % 12));
  disk.cut_after(requests, [cut, evidence = std::move(evidence)](CutDisk& d) {
    // In this order: what was acknowledged by now is durable by now.
    cut->evidence = evidence();
    cut->unflushed = d.unflushed_writes();
    Random random(cut->seed);
    cut->image = d.cut(cut->fate, random);
    cut->taken = true;
  });
  return cut;
}

// None where the store is idle.
std::shared_ptr<Cut> Story::cut_while_it_lives() {
  auto cut = arm(*disk_, [this] { return store_.evidence(); });
  for (int milliseconds = 0; !cut->taken && milliseconds < 10'000; ++milliseconds) {
    store_.check_alive();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  disk_->cancel();
  return cut->taken ? cut : nullptr;
}

void Story::keep(const Cut& cut) const {
  const std::string image = options_.dir + "/failed.img";
  const std::string journal = options_.dir + "/failed.journal";
  if (!cut.image->save(image.c_str()) || !cut.evidence.journal->save(journal.c_str()))
    throw Failure{"the disk cannot be kept in " + options_.dir};
}

// Mounts what a cut has left, which replays the file system's journal, and opens the store; now
// and then the power goes meanwhile, too.
void Story::judge(const Cut& cut, unsigned depth) {
  const auto disk = make_disk(*cut.image);
  std::shared_ptr<Cut> again;
  if (depth < cuts_while_judging && random_() % 3 == 0)
    again = arm(*disk, [e = cut.evidence] { return e; });
  try {
    store_.judge(place_on(server_.add(disk)), cut.evidence);
  } catch (const Failure& f) {
    keep(cut);
    throw Failure{"power cut, fate \"" + std::string(fate_name(cut.fate)) + "\" of " +
                  std::to_string(cut.unflushed) + " writes that were not flushed" +
                  (depth ? ", while judging what another had left" : "") + ": " + f.what};
  }
  disk->cancel();
  count_requests(*disk);
  ++tally_->cuts;
  tally_->cuts_opening += cut.evidence.opening || depth > 0;
  tally_->unflushed += cut.unflushed;
  if (again && again->taken) judge(*again, depth + 1);
}

void Story::end_life(const std::shared_ptr<Cut>& last) {
  const uint64_t how = random_() % 10;
  if (how < 6 && last) {
    store_.lose_power(last->evidence);
    insert(*last->image);
  } else if (how == 9) {
    store_.end_in_order();
  } else {
    store_.kill();
  }
}

void Story::run(const Image& fresh) {
  insert(fresh);
  store_.make(place());
  for (uint64_t lives = 2 + random_() % 4; lives > 0; --lives) {
    store_.start(place());
    if (random_() % 4) store_.wait_until_begun();
    std::shared_ptr<Cut> last;
    for (uint64_t cuts = 1 + random_() % 8; cuts > 0; --cuts) {
      auto cut = cut_while_it_lives();
      if (!cut) break;
      last = cut;
      // So that the order of what it had submitted is known.
      store_.wait_until_durable();
      store_.pause();
      judge(*cut, 0);
      store_.go_on();
    }
    end_life(last);
  }
  store_.judge(place(), store_.last_evidence());
  count_requests(*disk_);
}

Image make_fresh(const CampaignOptions& options, const FileSystemKind& kind,
                 DiskServer& server) {
  const auto disk = std::make_shared<CutDisk>(Image(disk_bytes), CutDiskOptions());
  const std::string file = server.add(disk);
  Child child(mkfs_words(kind, file), -1, options.dir + "/mkfs.log");
  if (child.wait(patience_seconds) != 0) throw Failure{child.words()};
  wait_until_closed(server, file);
  Random random;
  return disk->cut(Fate::all, random);
}

}  // namespace

std::string obstacle_to_cuts(const CampaignOptions& options, FileSystem fs, DiskServer& server) {
  const FileSystemKind kind{fs, "", ""};
  std::filesystem::create_directory(mount_point(options));
  try {
    const auto disk =
        std::make_shared<CutDisk>(make_fresh(options, kind, server), CutDiskOptions());
    auto command = mount_words(kind, server.add(disk), mount_point(options));
    command.push_back("/bin/true");
    Child child(command, -1, options.dir + "/mount.log");
    return child.wait(patience_seconds) == 0 ? "" : child.words();
  } catch (const Failure& f) {
    return f.what;
  }
}

std::string run_cuts(const CampaignOptions& options, FileSystem fs, DiskServer& server,
                     Tally* tally) {
  auto kinds = kinds_of(fs);
  if (!options.mkfs.empty()) kinds = {{fs, options.mkfs, ""}};
  std::map<size_t, Image> fresh;
  for (uint64_t seed = options.seed;; ++seed) {
    const size_t number = seed % kinds.size();
    const FileSystemKind& kind = kinds[number];
    try {
      if (!fresh.contains(number)) fresh.emplace(number, make_fresh(options, kind, server));
      ++tally->stores;
      Story(options, kind, server, seed, tally).run(fresh.at(number));
    } catch (const Failure& f) {
      return "seed " + std::to_string(seed) + " (" + to_string(kind) + "): " + f.what;
    }
    if (options.enough(*tally)) return {};
    options.progress(*tally);
  }
}

}  // namespace tablestore::powercut
