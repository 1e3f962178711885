#include "os/tablestore/engine/table/table_damage.h"

#include <algorithm>
#include <chrono>
#include <sstream>

#include "os/tablestore/engine/io/read_errors.h"
#include "os/tablestore/engine/io/repeated_read.h"
#include "os/tablestore/engine/table/counter_merge.h"
#include "os/tablestore/engine/table/rocksdb_status.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/experimental.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table.h"

namespace tablestore {

namespace {

using rocksdb::experimental::FileDamage;
using rocksdb::experimental::SetFileDamage;

constexpr const char* trouble = "TABLE_DAMAGED";
// Errors of a file that is sound as a whole, none of which has passed: then it is not.
constexpr unsigned doubts_max = read_tries;
constexpr size_t gaps_named_max = 16;  // of one file, in a line for people

// Set by a failed compaction for what RocksDB asks next, in the same thread.
thread_local bool input_was_damaged = false;

// The number of the table file that the message names; one that is missing, RocksDB looks for under
// an old name, too.
std::optional<uint64_t> file_number_in(const rocksdb::Status& s) {
  const std::string text = s.ToString();
  const size_t end = std::min(text.find(".sst"), text.find(".ldb"));
  if (end == std::string::npos) return std::nullopt;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  if (begin == end || end - begin > 18) return std::nullopt;
  return std::stoull(text.substr(begin, end - begin));
}

Family family_of(const rocksdb::LiveFileMetaData& file) {
  for (unsigned f = 0; f < families; ++f)
    if (file.column_family_name == family_name(Family(f))) return Family(f);
  return Family::super;
}

std::string path_of(const rocksdb::LiveFileMetaData& file) {
  return file.directory + "/" + file.relative_filename;
}

std::optional<rocksdb::LiveFileMetaData> live_file(rocksdb::DB& db, uint64_t number) {
  std::vector<rocksdb::LiveFileMetaData> all;
  db.GetLiveFilesMetaData(&all);
  const auto found = std::ranges::find(all, number, &rocksdb::LiveFileMetaData::file_number);
  if (found == all.end()) return std::nullopt;
  return *found;
}

// Goes on behind the block at which the iterator stands because it cannot be read, and behind those
// that follow it and cannot be read either. Where the last of them ends, the index says: rows that
// were written later may lie between there and the next row of this file. False where the index
// cannot be read.
bool step_behind_damage(rocksdb::Iterator& it, std::string* end) {
  std::string separator;
  while (!it.status().ok()) {
    if (!it.GetProperty("rocksdb.iterator.unreadable-block-end", &separator).ok()) return false;
    *end = separator + '\0';
    it.Seek(*end);
  }
  return true;
}

// The rows between which some cannot be read.
std::vector<DamagedTableFile::Gap> gaps_of(rocksdb::SstFileReader& reader) {
  std::vector<DamagedTableFile::Gap> gaps;
  rocksdb::ReadOptions over_damage;
  over_damage.step_over_damage = true;
  const std::unique_ptr<rocksdb::Iterator> strict(reader.NewIterator({}));
  const std::unique_ptr<rocksdb::Iterator> over(reader.NewIterator(over_damage));
  std::string last;
  over->SeekToFirst();
  for (strict->SeekToFirst();;) {
    for (; strict->Valid(); strict->Next()) last = strict->key().ToString();
    if (strict->status().ok()) break;
    if (std::string end; step_behind_damage(*strict, &end)) {
      gaps.push_back({last, end});
      continue;
    }
    if (!last.empty()) over->Seek(last);
    while (over->Valid() && over->key().compare(last) <= 0) over->Next();
    gaps.push_back({last, over->Valid() ? over->key().ToString() : std::string()});
    if (!over->Valid()) break;
    strict->Seek(over->key());
    if (!strict->Valid()) break;
  }
  return gaps;
}

std::string printable(std::string_view key) {
  std::string text;
  for (const unsigned char c : key.substr(0, 64)) {
    if (c > ' ' && c < 127 && c != '%') {
      text += char(c);
    } else {
      char hex[4];
      std::snprintf(hex, sizeof(hex), "%%%02x", c);
      text += hex;
    }
  }
  return key.size() > 64 ? text + "..." : text;
}

std::string text_of(const DamagedTableFile& file) {
  std::string text = file.path + " (rows of " + family_name(file.family) + " between ";
  if (file.no_row_lost) return file.path + " (no row of it is lost; " + file.why + ")";
  if (file.gaps.empty())
    text += printable(file.first) + " and " + printable(file.last);
  for (size_t i = 0; i < file.gaps.size(); ++i) {
    if (i == gaps_named_max)
      return text + " and " + std::to_string(file.gaps.size() - i) + " more; " + file.why + ")";
    const DamagedTableFile::Gap& gap = file.gaps[i];
    if (i > 0) text += ", ";
    text += printable(gap.after.empty() ? file.first : gap.after) + " and " +
            printable(gap.before.empty() ? file.last : gap.last());
  }
  return text + "; " + file.why + ")";
}

}  // namespace

bool DamagedTableFile::is_within(const DamagedTableFile& other) const {
  if (no_row_lost) return true;
  if (other.no_row_lost) return false;
  if (other.gaps.empty()) return true;
  return !gaps.empty() && std::ranges::all_of(gaps, [&other](const Gap& gap) {
    return std::ranges::any_of(other.gaps, [&gap](const Gap& wider) {
      return wider.after <= gap.after &&
             (wider.before.empty() || (!gap.before.empty() && gap.before <= wider.before));
    });
  });
}

TableDamage::TableDamage(rocksdb::Env& env, std::string directory,
                         std::shared_ptr<Troubles> troubles, Reporter reporter)
    : env_(env),
      directory_(std::move(directory)),
      troubles_(std::move(troubles)),
      reporter_(std::move(reporter)) {}

void TableDamage::opened(rocksdb::DB& db) {
  std::lock_guard lock(mutex_);
  std::vector<rocksdb::LiveFileMetaData> all;
  db.GetLiveFilesMetaData(&all);
  const std::vector<uint64_t> known = read_list();
  bool all_seen = true;
  for (const auto& file : all) {
    uint64_t bytes = 0;
    const auto s = env_.GetFileSize(path_of(file), &bytes);
    const bool suspect = s.ok() ? bytes != file.size : is_damage(s);
    if (!suspect && !std::ranges::count(known, file.file_number)) continue;
    auto damage = examine(file);
    if (!damage.ok()) {
      all_seen = false;
      reporter_.log(Reporter::Level::warning, damage.status().what());
    } else if (*damage) {
      add(db, file, std::move(**damage));
    }
  }
  if (damaged_.empty() && !known.empty() && all_seen) write_list();
}

bool TableDamage::met(rocksdb::DB& db, const rocksdb::Status& error) {
  if (!is_damage(error)) return false;
  const uint64_t verdicts = verdicts_;
  std::lock_guard lock(mutex_);
  ++read_errors_;
  const auto number = file_number_in(error);
  if (number) return judge(db, *number, error, verdicts) == Verdict::sound;
  reporter_.log(Reporter::Level::error, "table: a row cannot be read: " + error.ToString());
  return false;
}

void TableDamage::passed(const rocksdb::Status& error) {
  const auto number = file_number_in(error);
  if (!number) return;
  std::lock_guard lock(mutex_);
  doubts_.erase(*number);
}

Result<std::vector<DamagedTableFile>> TableDamage::find_all(rocksdb::DB& db) {
  std::vector<rocksdb::LiveFileMetaData> all;
  db.GetLiveFilesMetaData(&all);
  for (const auto& file : all) {
    std::lock_guard lock(mutex_);
    auto damage = examine(file);
    if (!damage.ok()) return damage.status();
    if (*damage && live_file(db, file.file_number)) note_more(db, file, std::move(**damage));
  }
  std::lock_guard lock(mutex_);
  forget_dead_files(db);
  std::vector<DamagedTableFile> found;
  for (const auto& [number, file] : damaged_) found.push_back(file);
  return found;
}

uint64_t TableDamage::read_errors() const {
  std::lock_guard lock(mutex_);
  return read_errors_;
}

uint64_t TableDamage::files() const {
  std::lock_guard lock(mutex_);
  return damaged_.size();
}

Status TableDamage::begin_compaction(rocksdb::DB& db) {
  std::lock_guard lock(mutex_);
  forget_dead_files(db);
  if (!damaged_.empty())
    return Status(EIO, "table: no compaction while " + std::to_string(damaged_.size()) +
                           " of its files cannot be read as a whole, run repair first: " +
                           text_of(damaged_.begin()->second));
  ++compactions_;
  return {};
}

Status TableDamage::begin_rewrite(rocksdb::DB& db, const std::vector<DamagedTableFile>& files) {
  std::lock_guard lock(mutex_);
  const auto is_seen_to = [&files](const DamagedTableFile& damage) {
    return std::ranges::any_of(files, [&damage](const DamagedTableFile& file) {
      return file.path == damage.path && damage.is_within(file);
    });
  };
  forget_dead_files(db);
  std::vector<uint64_t> numbers;
  for (const auto& [number, file] : damaged_) numbers.push_back(number);
  for (const uint64_t number : numbers) {
    if (const auto file = live_file(db, number)) {
      auto damage = examine(*file);
      if (!damage.ok()) return damage.status();
      if (*damage) note_more(db, *file, std::move(**damage));
    }
    if (const DamagedTableFile& now = damaged_.at(number); !is_seen_to(now))
      return Status(EIO, "table: " + text_of(now) +
                             ": more became unreadable during this repair, and nothing was written "
                             "anew: run it once more");
  }
  ++compactions_;
  for (const auto& [number, file] : damaged_)
    SetFileDamage(&db, number, FileDamage::kStepOver).PermitUncheckedError();
  return {};
}

void TableDamage::end_compaction(rocksdb::DB& db) {
  std::lock_guard lock(mutex_);
  --compactions_;
  forget_dead_files(db);
  if (compactions_ > 0) return;
  for (const auto& [number, file] : damaged_) keep_out(db, number);
}

void TableDamage::OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& job) {
  input_was_damaged = false;
  if (job.status.ok() || !is_damage(job.status)) return;
  const auto named = file_number_in(job.status);
  const bool of_input =
      named && std::ranges::count(job.input_file_infos, *named,
                                  &rocksdb::CompactionFileInfo::file_number);
  // What an output cannot be written for is no damage of the table.
  if (!job.status.IsCorruption() && !of_input) return;
  input_was_damaged = true;
  std::lock_guard lock(mutex_);
  // One that was moved as it is while it was found damaged has not been kept out.
  if (of_input && compactions_ == 0 && damaged_.contains(*named)) keep_out(*db, *named);
  if (of_input && judge(*db, *named, job.status, verdicts_) == Verdict::damaged) return;
  for (const auto& input : job.input_file_infos)
    if (!of_input || input.file_number != *named)
      judge(*db, input.file_number, job.status, verdicts_);
}

void TableDamage::OnBackgroundError(rocksdb::BackgroundErrorReason reason,
                                    rocksdb::Status* error) {
  const bool of_compaction = reason == rocksdb::BackgroundErrorReason::kCompaction;
  if (of_compaction && std::exchange(input_was_damaged, false)) {
    *error = rocksdb::Status::OK();
    return;
  }
  const int lack = lack_in(*error);
  if (!is_lack(lack) && !(of_compaction && is_path_error(lack))) return;
  reporter_.log(Reporter::Level::warning, "table: it waits for what is lacking: " +
                                              error->ToString());
  // RocksDB begins a compaction anew after a second. What else has failed, Table::resume() begins
  // anew, where the error is not more than a hard one.
  *error = of_compaction ? rocksdb::Status::OK()
                         : rocksdb::Status(*error, rocksdb::Status::kHardError);
}

void TableDamage::OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                                       bool* by_itself) {
  *by_itself = false;
}

TableDamage::Verdict TableDamage::judge(rocksdb::DB& db, uint64_t number,
                                        const rocksdb::Status& error, uint64_t verdicts) {
  if (damaged_.contains(number)) return Verdict::damaged;
  const auto file = live_file(db, number);
  if (!file) return Verdict::sound;  // by now its rows are in another one
  // Of all who have met one error of the moment, only the first counts.
  if (const auto sound = found_sound_.find(number);
      sound != found_sound_.end() && sound->second > verdicts)
    return Verdict::sound;
  auto examined = examine(*file);
  if (!examined.ok()) {
    reporter_.log(Reporter::Level::warning, examined.status().what());
    return Verdict::unknown;
  }
  auto& damage = *examined;
  ++verdicts_;
  if (!damage) found_sound_[number] = verdicts_;
  if (!damage && ++doubts_[number] < doubts_max) {
    reporter_.log(Reporter::Level::warning, "table: " + path_of(*file) +
                                                " is sound, but: " + error.ToString());
    return Verdict::sound;
  }
  if (!damage)
    damage = DamagedTableFile{family_of(*file), path_of(*file), file->smallestkey,
                              file->largestkey, error.ToString(), {}};
  add(db, *file, std::move(*damage));
  return Verdict::damaged;
}

void TableDamage::add(rocksdb::DB& db, const rocksdb::LiveFileMetaData& file,
                      DamagedTableFile damage) {
  reporter_.log(Reporter::Level::error, "table: damaged: " + text_of(damage));
  damaged_[file.file_number] = std::move(damage);
  if (compactions_ == 0) keep_out(db, file.file_number);
  write_list();
  tell();
}

void TableDamage::note_more(rocksdb::DB& db, const rocksdb::LiveFileMetaData& file,
                            DamagedTableFile damage) {
  const auto known = damaged_.find(file.file_number);
  if (known != damaged_.end()) {
    if (damage.is_within(known->second)) return;
    if (!known->second.is_within(damage)) {
      const auto& before = known->second.gaps;
      damage.gaps.insert(damage.gaps.end(), before.begin(), before.end());
      std::ranges::sort(damage.gaps, {}, &DamagedTableFile::Gap::after);
    }
  }
  add(db, file, std::move(damage));
}

void TableDamage::keep_out(rocksdb::DB& db, uint64_t number) {
  // NotFound: it is not live any more.
  SetFileDamage(&db, number, FileDamage::kKeepOut).PermitUncheckedError();
}

void TableDamage::forget_dead_files(rocksdb::DB& db) {
  const auto is_dead = [&](const auto& file) { return !live_file(db, file.first); };
  std::erase_if(doubts_, is_dead);
  std::erase_if(found_sound_, is_dead);
  const size_t before = damaged_.size();
  std::erase_if(damaged_, is_dead);
  if (damaged_.size() == before) return;
  write_list();
  tell();
}

Result<std::optional<DamagedTableFile>> TableDamage::examine(
    const rocksdb::LiveFileMetaData& file) const {
  const auto start = std::chrono::steady_clock::now();
  for (unsigned tries = 1;; ++tries) {
    DamagedTableFile damage{family_of(file), path_of(file), file.smallestkey, file.largestkey, {},
                            {}};
    const rocksdb::Status s = read_all(file, &damage);
    if (s.ok()) return std::optional<DamagedTableFile>();
    if (!is_damage(s))
      return to_status(s, damage.path + " cannot be looked at, so nothing is known of it");
    // What has failed once only may have been of the moment, however long that took.
    const bool is_patient = std::chrono::steady_clock::now() - start < read_patience;
    if (tries < 2 || (tries < read_tries && is_patient)) continue;
    damage.why = s.ToString();
    return std::optional(std::move(damage));
  }
}

// A read of wrong bytes is not repeated where the kernel has kept them.
void TableDamage::forget_pages(const std::string& path) const {
  std::unique_ptr<rocksdb::RandomAccessFile> file;
  if (env_.NewRandomAccessFile(path, &file, rocksdb::EnvOptions()).ok())
    file->InvalidateCache(0, 0).PermitUncheckedError();
}

rocksdb::Status TableDamage::read_all(const rocksdb::LiveFileMetaData& file,
                                      DamagedTableFile* damage) const {
  uint64_t bytes = 0;
  rocksdb::Status s = env_.GetFileSize(damage->path, &bytes);
  if (s.ok() && bytes != file.size)
    s = rocksdb::Status::Corruption("it has " + std::to_string(bytes) + " bytes and should have " +
                                    std::to_string(file.size));
  if (!s.ok()) return s;
  forget_pages(damage->path);
  rocksdb::Options o;
  o.env = &env_;
  o.merge_operator = make_counter_merge();
  rocksdb::BlockBasedTableOptions uncached;
  uncached.no_block_cache = true;
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(uncached));
  rocksdb::SstFileReader reader(o);
  s = reader.Open(damage->path);
  if (!s.ok()) return s;
  s = reader.VerifyChecksum();
  if (is_damage(s)) {
    damage->gaps = gaps_of(reader);
    damage->no_row_lost = damage->gaps.empty();
  }
  return s;
}

std::vector<uint64_t> TableDamage::read_list() const {
  std::string text;
  if (!rocksdb::ReadFileToString(&env_, list_path(), &text).ok()) return {};
  std::vector<uint64_t> numbers;
  std::istringstream in(text);
  for (uint64_t number; in >> number;) numbers.push_back(number);
  return numbers;
}

// Only a hint where to look, so it need not survive a crash: whoever meets the damage again finds
// it again.
void TableDamage::write_list() {
  std::string text;
  for (const auto& [number, file] : damaged_) text += std::to_string(number) + "\n";
  const auto s = text.empty() ? env_.DeleteFile(list_path())
                              : rocksdb::WriteStringToFile(&env_, text, list_path(), true);
  if (!s.ok() && !s.IsPathNotFound())
    reporter_.log(Reporter::Level::warning, "table: " + list_path() + ": " + s.ToString());
}

void TableDamage::tell() {
  if (damaged_.empty()) {
    troubles_->clear(trouble);
    return;
  }
  troubles_->raise(trouble, std::to_string(damaged_.size()) +
                                " table files cannot be read as a whole, their lost rows give EIO "
                                "and they are not compacted; repair this store, then scrub: " +
                                text_of(damaged_.begin()->second) +
                                (damaged_.size() > 1 ? ", ..." : ""));
}

}  // namespace tablestore
