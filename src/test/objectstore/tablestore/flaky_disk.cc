// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/flaky_disk.h"

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

using namespace tablestore;

namespace tablestore_test {

class FlakyDisk::Container : public FileWrapper {
 public:
  Container(FlakyDisk& disk, std::string path, std::unique_ptr<File> below)
    : FileWrapper(std::move(below)), disk(disk), name(std::move(path)) {}

  Status read(uint64_t offset, std::span<std::byte> out) override
  {
    if (Status s = FileWrapper::read(offset, out); !s.ok())
      return s;
    const bool aligned = reinterpret_cast<uintptr_t>(out.data()) % block_bytes == 0;
    return disk.spoilt(Read{name, offset, out.size(), aligned}, out);
  }

 private:
  FlakyDisk& disk;
  const std::string name;
};

std::unique_ptr<File> FlakyDisk::wrap(const std::string& path, std::unique_ptr<File> file)
{
  if (!path.starts_with("containers/"))
    return file;
  return std::make_unique<Container>(*this, path, std::move(file));
}

void FlakyDisk::spoil(const std::string& path, uint64_t offset, Fault fault, unsigned times)
{
  std::lock_guard l{mutex};
  spoiled.push_back({path.substr(path.find("containers/")), offset, fault, times});
}

std::vector<FlakyDisk::Read> FlakyDisk::take_reads()
{
  std::lock_guard l{mutex};
  return std::exchange(reads, {});
}

Status FlakyDisk::spoilt(const Read& read, std::span<std::byte> data)
{
  std::lock_guard l{mutex};
  reads.push_back(read);
  for (Spoiled& s : spoiled) {
    if (s.times == 0 || s.path != read.path || s.offset < read.offset ||
        s.offset >= read.offset + read.length)
      continue;
    --s.times;
    if (s.fault == Fault::slow_error)
      std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    if (s.fault == Fault::error || s.fault == Fault::slow_error)
      return Status(EIO, read.path + ": an error on purpose");
    if (s.fault == Fault::no_damage)
      return Status(ENODATA, read.path + ": an error that no disk has");
    data[s.offset - read.offset] ^= std::byte(1);
  }
  return {};
}

}  // namespace tablestore_test
