// What of the table cannot be read, and what follows from that.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/troubles.h"
#include "rocksdb/listener.h"
#include "rocksdb/metadata.h"

namespace rocksdb {
class Env;
}

namespace tablestore {

constexpr const char* family_name(Family f) {
  constexpr const char* names[families] = {"default", "object", "data", "omap"};
  return names[size_t(f)];
}

// A file of which something cannot be read stays where it is, and no compaction takes it: the rows
// of other files keep their order around it, lookups that reach the damage fail with EIO, and
// nothing older comes to light. All else goes on, and writes never wait for what cannot be
// compacted meanwhile. Table::salvage() ends this.
//
// It is found by a read or a compaction that fails, or when the table is opened. Then all of the
// file is read, and again where that fails: the error may have been of the moment. Only what
// repeats condemns a file. Which files it were is kept beside them, for the next open().
//
// Thread-safe. `mutex_` guards what follows it, also while a file is read: whoever meets the same
// file waits for the verdict. Nobody who holds RocksDB's mutex takes it.
class TableDamage : public rocksdb::EventListener {
 public:
  // `directory` as `env` knows it. All outlive this, or are shared.
  TableDamage(rocksdb::Env& env, std::string directory, std::shared_ptr<Troubles> troubles,
              Reporter reporter);
  const char* Name() const override { return "TableDamage"; }

  // Once, when the table was opened: looks for files that are missing or have another length, and
  // at those that an earlier life has found.
  void opened(rocksdb::DB& db);
  // A read has failed. True: the file is sound, and the same read may succeed now.
  bool met(rocksdb::DB& db, const rocksdb::Status& error);
  // It has: what was met was of the moment.
  void passed(const rocksdb::Status& error);
  // Reads every file of the table, the damaged ones too: there may be more damage by now. An error:
  // one could not be looked at.
  Result<std::vector<DamagedTableFile>> find_all(rocksdb::DB& db);
  uint64_t read_errors() const;
  uint64_t files() const;

  // Manual compactions. Where files are kept out of compactions, one would wait for ever: EIO. A
  // file that is found damaged while some run is kept out from the end of the last.
  Status begin_compaction(rocksdb::DB& db);
  void end_compaction(rocksdb::DB& db);
  // The same for compactions that leave out what cannot be read of `files`. EIO where by now more
  // cannot be read, of these or of others: nobody has seen to the rows that are lost there.
  Status begin_rewrite(rocksdb::DB& db, const std::vector<DamagedTableFile>& files);

  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& job) override;
  // A compaction that could not read its input is no reason to refuse writes; nor is anything that
  // the process lacked for a moment (is_lack()), for good.
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override;
  // Only Table::resume() begins anew: RocksDB's own recoveries and it would end each other's.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason reason, rocksdb::Status error,
                            bool* by_itself) override;

 private:
  enum class Verdict { sound, damaged, unknown };  // unknown: it could not be looked at
  // `error` is why one asks; `verdicts` there were when it was met.
  Verdict judge(rocksdb::DB& db, uint64_t number, const rocksdb::Status& error, uint64_t verdicts);
  void add(rocksdb::DB& db, const rocksdb::LiveFileMetaData& file, DamagedTableFile damage);
  // Nothing that is known already, or an error, is forgotten for what can be read now.
  void note_more(rocksdb::DB& db, const rocksdb::LiveFileMetaData& file, DamagedTableFile damage);
  void keep_out(rocksdb::DB& db, uint64_t number);
  void forget_dead_files(rocksdb::DB& db);
  // Nothing: the file is sound. An error: what this process lacks, or why nobody could look.
  Result<std::optional<DamagedTableFile>> examine(const rocksdb::LiveFileMetaData& file) const;
  rocksdb::Status read_all(const rocksdb::LiveFileMetaData& file, DamagedTableFile* damage) const;
  void forget_pages(const std::string& path) const;
  std::string list_path() const { return directory_ + "/DAMAGED"; }
  std::vector<uint64_t> read_list() const;
  void write_list();
  void tell();

  rocksdb::Env& env_;
  const std::string directory_;
  const std::shared_ptr<Troubles> troubles_;
  const Reporter reporter_;

  mutable std::mutex mutex_;
  std::map<uint64_t, DamagedTableFile> damaged_;  // by the file's number
  // Errors of files that are sound as a whole, and that have not passed so far.
  std::map<uint64_t, unsigned> doubts_;
  std::map<uint64_t, uint64_t> found_sound_;      // which of all verdicts was the last such one
  std::atomic<uint64_t> verdicts_ = 0;            // changed under mutex_
  uint64_t read_errors_ = 0;
  unsigned compactions_ = 0;                      // manual ones that run or wait
};

}  // namespace tablestore
