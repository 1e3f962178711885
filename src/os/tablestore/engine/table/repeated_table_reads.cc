#include "os/tablestore/engine/table/repeated_table_reads.h"

#include <chrono>
#include <functional>
#include <utility>

#include "os/tablestore/engine/io/read_errors.h"
#include "os/tablestore/engine/table/rocksdb_status.h"
#include "rocksdb/file_system.h"

namespace tablestore {

namespace {

using rocksdb::FileOptions;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSSequentialFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

bool may_pass(const IOStatus& s) {
  return s.IsIOError() && !s.IsPathNotFound() && (is_damage(s) || is_path_error(lack_in(s)));
}

// RocksDB must not step over what nobody has seen, as it does over damage, which it knows by the
// code.
IOStatus named(IOStatus s) {
  return lack_in(s) ? IOStatus::TimedOut(s.ToString()) : s;
}

// After `failed`, which read() has come to.
template <typename Read>
IOStatus repeat(const ReadRetries& retries, const IOStatus& failed, Read read) {
  IOStatus s = failed;
  const auto start = std::chrono::steady_clock::now();
  for (unsigned left = may_pass(failed) ? retries.max() : 0; left > 0 && may_pass(s); --left) {
    s = read();
    if (std::chrono::steady_clock::now() - start > read_patience) break;
  }
  if (s.ok() && !failed.ok()) retries.helped("table: " + failed.ToString());
  return named(s);
}

// What a store is opened by, and calls that only look: a refusal would follow from their failure.
template <typename Read>
IOStatus repeat(Read read) {
  for (unsigned tries = 1;; ++tries) {
    IOStatus s = read();
    if (!may_pass(s) || tries == read_tries) return s;
  }
}

class RepeatingFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  RepeatingFile(std::unique_ptr<FSRandomAccessFile> file, const ReadRetries& retries)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), retries_(retries) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    const auto read = [&] {
      return FSRandomAccessFileOwnerWrapper::Read(offset, n, options, result, scratch, dbg);
    };
    return repeat(retries_, read(), read);
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const IOOptions& options,
                     IODebugContext* dbg) override {
    const IOStatus s =
        FSRandomAccessFileOwnerWrapper::MultiRead(requests, count, options, dbg);
    for (auto* r = requests; r != requests + count; ++r)
      r->status = repeat(retries_, r->status, [&] {
        return FSRandomAccessFileOwnerWrapper::Read(r->offset, r->len, options, &r->result,
                                                    r->scratch, dbg);
      });
    return s;
  }

 private:
  const ReadRetries retries_;
};

// Read once, from the front: MANIFEST and CURRENT. Where a read that failed has left the position
// nobody knows, so it is another file that reads on.
class RepeatingSequence : public rocksdb::FSSequentialFile {
 public:
  using Open = std::function<IOStatus(std::unique_ptr<FSSequentialFile>* file)>;
  RepeatingSequence(std::unique_ptr<FSSequentialFile> file, Open open)
      : file_(std::move(file)), open_(std::move(open)) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) override {
    const IOStatus s = repeat([&] {
      if (!file_)
        if (auto opened = open_again(); !opened.ok()) return opened;
      IOStatus read = file_->Read(n, options, result, scratch, dbg);
      if (may_pass(read)) file_.reset();
      return read;
    });
    if (s.ok()) offset_ += result->size();
    return s;
  }
  IOStatus Skip(uint64_t n) override {
    offset_ += n;
    return file_ ? file_->Skip(n) : IOStatus::OK();
  }
  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions& options, Slice* result,
                          char* scratch, IODebugContext* dbg) override {
    return repeat([&] {
      if (!file_)
        if (auto opened = open_again(); !opened.ok()) return opened;
      return file_->PositionedRead(offset, n, options, result, scratch, dbg);
    });
  }
  bool use_direct_io() const override { return file_ && file_->use_direct_io(); }
  size_t GetRequiredBufferAlignment() const override {
    return file_ ? file_->GetRequiredBufferAlignment()
                 : FSSequentialFile::GetRequiredBufferAlignment();
  }
  IOStatus InvalidateCache(size_t offset, size_t length) override {
    return file_ ? file_->InvalidateCache(offset, length) : IOStatus::OK();
  }

 private:
  IOStatus open_again() {
    std::unique_ptr<FSSequentialFile> file;
    IOStatus s = open_(&file);
    if (s.ok()) s = file->Skip(offset_);
    if (s.ok()) file_ = std::move(file);
    return s;
  }

  std::unique_ptr<FSSequentialFile> file_;  // null after a read that failed
  const Open open_;
  uint64_t offset_ = 0;
};

class RepeatingFs : public rocksdb::FileSystemWrapper {
 public:
  RepeatingFs(const std::shared_ptr<FileSystem>& below, ReadRetries retries)
      : FileSystemWrapper(below), retries_(std::move(retries)) {}
  const char* Name() const override { return "tablestore.repeating"; }

  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    std::unique_ptr<FSRandomAccessFile> file;
    const auto open = [&] {
      return FileSystemWrapper::NewRandomAccessFile(path, options, &file, dbg);
    };
    const IOStatus s = repeat(retries_, open(), open);
    if (s.ok()) *result = std::make_unique<RepeatingFile>(std::move(file), retries_);
    return s;
  }
  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options,
                             std::unique_ptr<FSSequentialFile>* result,
                             IODebugContext* dbg) override {
    auto open = [this, path, options](std::unique_ptr<FSSequentialFile>* file) {
      return FileSystemWrapper::NewSequentialFile(path, options, file, nullptr);
    };
    std::unique_ptr<FSSequentialFile> file;
    IOStatus s =
        repeat([&] { return FileSystemWrapper::NewSequentialFile(path, options, &file, dbg); });
    if (s.ok()) *result = std::make_unique<RepeatingSequence>(std::move(file), std::move(open));
    return s;
  }
  IOStatus FileExists(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override {
    return repeat([&] { return FileSystemWrapper::FileExists(path, options, dbg); });
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions& options, uint64_t* bytes,
                       IODebugContext* dbg) override {
    return repeat([&] { return FileSystemWrapper::GetFileSize(path, options, bytes, dbg); });
  }
  IOStatus GetChildren(const std::string& dir, const IOOptions& options,
                       std::vector<std::string>* names, IODebugContext* dbg) override {
    return repeat([&] {
      names->clear();
      return FileSystemWrapper::GetChildren(dir, options, names, dbg);
    });
  }

 private:
  const ReadRetries retries_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> repeat_reads(std::shared_ptr<rocksdb::FileSystem> below,
                                                  ReadRetries retries) {
  return std::make_shared<RepeatingFs>(below, std::move(retries));
}

}  // namespace tablestore
