#include "os/tablestore/engine/table/file_rows.h"

#include <algorithm>
#include <cerrno>

#include "os/tablestore/engine/table/slice.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/iterator.h"
#include "rocksdb/metadata.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table.h"

namespace tablestore {

namespace {

constexpr size_t open_files_max = 32;
// Compactions remove files while this looks for them; so often in a row, they do not.
constexpr int attempts_max = 10;

Status damaged(const std::string& path, const rocksdb::Status& s) {
  return Status(EIO, "table file " + path + ": " + s.ToString());
}

bool may_hold(const rocksdb::SstFileMetaData& file, std::string_view key) {
  return file.smallestkey <= key && key <= file.largestkey;
}

}  // namespace

FileRows::FileRows(rocksdb::DB& db, rocksdb::Env* env, const ReadRetries& retries)
    : db_(db), env_(env), retries_(retries) {}
FileRows::~FileRows() = default;

void FileRows::close_files() {
  std::lock_guard lock(mutex_);
  files_.clear();
}

Status FileRows::check(rocksdb::ColumnFamilyHandle* family, std::string_view key,
                       std::string_view value) {
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    auto found = look(family, key, value);
    const Status why = found.status();
    for (unsigned left = retries_.max(); !found.ok() && left > 0; --left)
      found = look(family, key, value);
    if (!found.ok()) return found.status();
    if (!why.ok()) retries_.helped(why.what());
    if (*found != Found::file_is_gone) return {};
  }
  return {};
}

Result<FileRows::Found> FileRows::look(rocksdb::ColumnFamilyHandle* family, std::string_view key,
                                       std::string_view value) {
  // First, because a flush may move it from there to a file meanwhile.
  if (in_a_memtable(family, key)) return Found::no;
  rocksdb::ColumnFamilyMetaData all;
  db_.GetColumnFamilyMetaData(family, &all);
  Status unreadable;
  // Newest first: levels from the top, and level 0 is in that order.
  for (const auto& level : all.levels) {
    for (const auto& file : level.files) {
      if (!may_hold(file, key)) continue;
      const std::string path = file.db_path + "/" + file.relative_filename;
      auto reader = open(family, file.file_number, path);
      if (!reader.ok()) {
        unreadable = reader.status();
        continue;
      }
      if (!*reader) return Found::file_is_gone;
      rocksdb::ReadOptions options;
      options.fill_cache = false;
      const std::unique_ptr<rocksdb::Iterator> it((*reader)->NewIterator(options));
      it->Seek(slice(key));
      if (!it->status().ok()) {
        unreadable = damaged(path, it->status());
        continue;
      }
      if (!it->Valid() || it->key() != slice(key)) continue;
      if (it->value() == slice(value)) return Found::yes;
      // An older one: the newer is in a memtable by now, or in a file that could not be read.
      if (unreadable.ok()) return Found::no;
    }
  }
  if (!unreadable.ok()) return unreadable;
  return Found::no;
}

bool FileRows::in_a_memtable(rocksdb::ColumnFamilyHandle* family, std::string_view key) {
  rocksdb::ReadOptions options;
  options.read_tier = rocksdb::kMemtableTier;
  const std::unique_ptr<rocksdb::Iterator> it(db_.NewIterator(options, family));
  it->Seek(slice(key));
  return it->Valid() && it->key() == slice(key);
}

Result<std::shared_ptr<rocksdb::SstFileReader>> FileRows::open(
    rocksdb::ColumnFamilyHandle* family, uint64_t number, const std::string& path) {
  std::lock_guard lock(mutex_);
  if (auto known = files_.find(number); known != files_.end()) {
    known->second.used_at = ++uses_;
    return known->second.reader;
  }
  rocksdb::Options options = db_.GetOptions(family);
  options.env = env_;
  options.statistics.reset();
  options.listeners.clear();
  rocksdb::BlockBasedTableOptions blocks;
  blocks.no_block_cache = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
  rocksdb::Status s;
  for (bool direct : {true, false}) {
    options.use_direct_reads = direct;
    auto reader = std::make_shared<rocksdb::SstFileReader>(options);
    s = reader->Open(path);
    if (s.ok()) {
      if (files_.size() >= open_files_max)
        files_.erase(std::ranges::min_element(files_, {}, [](const auto& file) {
          return file.second.used_at;
        }));
      files_.emplace(number, OpenFile{reader, ++uses_});
      return reader;
    }
    if (!s.IsInvalidArgument() && !s.IsNotSupported()) break;  // a file system without direct I/O
  }
  if (!env_->FileExists(path).ok()) return std::shared_ptr<rocksdb::SstFileReader>();
  return damaged(path, s);
}

}  // namespace tablestore
