#include "test/tablestore/sim/frame/crash.h"

#include <algorithm>
#include <cstdio>

#include "test/tablestore/sim/frame/verdict.h"

namespace tablestore::sim {

namespace {

// From this attempt to recover on, nothing crashes and nothing fails.
constexpr unsigned calm_attempt = 4;

Fate random_fate(Random& random) {
  // What leaves most to chance, half of the time.
  return random() % 2 ? Fate::scrambled : fates[random() % fates.size()];
}

}  // namespace

uint64_t random_crash(Random& random) { return 1 + random() % (random() % 4 ? 40 : 400); }

void fill_disk(SimDisk& disk, Random& random) {
  const auto space = disk.space();
  const uint64_t available = space.ok() ? space->available_bytes : 0;
  const uint64_t most = random() % 2 ? 8 << 20 : 32 << 10;  // below it, the table's part too
  const uint64_t left = std::min<uint64_t>(available, random() % most);
  disk.set_other_bytes(random() % 3 ? available - left : 0);
}

Faults random_faults(Faults faults, bool short_reads, const HistoryOptions& options,
                     Random& random) {
  if (options.errors) {
    faults.read_error = random() % 2 ? 0.001 : 0;
    if (short_reads) faults.short_read = random() % 2 ? 0.002 : 0;
    faults.write_error = random() % 2 ? 0.003 : 0;
    faults.flush_error = random() % 2 ? 0.005 : 0;
  }
  if (options.damage) {
    faults.lost_write = random() % 2 ? 0.005 : 0;
    faults.misdirected_write = random() % 2 ? 0.005 : 0;
  }
  return faults;
}

void add_rare_errors(Faults* faults, Random& random) {
  faults->drops = random() % 2 ? 0.7 : 0;
  switch (random() % 5) {
    case 0: faults->flush_no_space = 0.01; return;
    case 1: faults->first_touch_error = 0.01; return;
    case 2: faults->call_error = 0.01; return;
    default: return;
  }
}

namespace {

// `change` is done to some blocks of one file: of a container mostly. False: there is no file.
bool change_blocks(
    DiskImage* image, Random& random,
    const std::function<void(const std::string& path, DiskImage::InodeId id, uint32_t block,
                             uint64_t random)>& change) {
  std::vector<std::pair<std::string, DiskImage::InodeId>> files;
  const bool anywhere = random() % 4 == 0;  // the log, the table, the label
  for (const auto& [path, id] : image->names())
    if ((anywhere || path.starts_with("containers/")) && !image->inode(id).directory)
      files.emplace_back(path, id);
  if (files.empty()) return false;
  const auto& [path, id] = files[random() % files.size()];
  for (int i = 0; i < (anywhere ? 2 : 20); ++i) {
    const uint64_t blocks = image->inode(id).durable.extents.size();
    const uint32_t block = uint32_t(random() % std::max<uint64_t>(blocks, 1));
    change(path, id, block, random());
  }
  return true;
}

}  // namespace

bool rot(DiskImage* image, Random& random,
         const std::function<void(const std::string& path, uint32_t block, uint64_t bit)>& rotten) {
  return change_blocks(image, random, [&](const std::string& path, DiskImage::InodeId id,
                                          uint32_t block, uint64_t bit) {
    if (image->rot(id, block, bit)) rotten(path, block, bit);
  });
}

bool decay(DiskImage* image, Decay how, Random& random,
           const std::function<void(const std::string& path, uint32_t block)>& decayed) {
  return change_blocks(image, random, [&](const std::string& path, DiskImage::InodeId id,
                                          uint32_t block, uint64_t bit) {
    const bool done = how == Decay::rot      ? image->rot(id, block, bit)
                      : how == Decay::revert ? image->revert(id, block)
                                             : image->make_unreadable(id, block);
    if (done) decayed(path, block);
  });
}

Reopened recover_at_last(const Snapshot& snapshot, Random& random, const Recovery& recovery) {
  Snapshot at = snapshot;  // as the last crash found it
  for (unsigned attempt = 0;; ++attempt) {
    const Fate fate = random_fate(random);
    at.image.crash(fate, random);
    if (recovery.trace)
      std::printf("  crash at \"%s\", fate %s, acknowledged up to %llu\n", at.io.c_str(),
                  fate_name(fate), (unsigned long long)snapshot.acknowledged_lsn);
    recovery.count(at);
    const bool may_crash = attempt + 1 < calm_attempt && random() % 3 == 0;
    if (attempt == calm_attempt) recovery.heal();
    std::optional<Snapshot> next;
    const Reopened r = recovery.reopen(at.image, random, may_crash, &next);
    if (r != Reopened::again) return r;
    at = std::move(*next);
  }
}

std::string open_among_faults(SimDisk& disk, const Opening& opening, const Faults& faults,
                              bool may_crash, Random& random, std::optional<Snapshot>* crash) {
  if (may_crash) {
    uint64_t in = 1 + random() % 30;
    disk.watch([&opening, crash, in](const DiskImage& now, const char* io) mutable {
      if (in > 0 && --in == 0) *crash = opening.snapshot(now, io);
    });
  }
  disk.set_faults(faults);
  std::string why;
  try {
    why = opening.open();
  } catch (const Died& d) {
    why = d.why;
  }
  disk.watch(nullptr);
  disk.set_faults({});
  return why;
}

}  // namespace tablestore::sim
