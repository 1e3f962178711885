// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#include "test/objectstore/tablestore/bench/floor.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <future>
#include <memory>
#include <numeric>

#include <fcntl.h>
#include <liburing.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/tablestore/engine/io/large_pages.h"
#include "test/objectstore/tablestore/bench/object_names.h"
#include "test/objectstore/tablestore/bench/payload.h"

namespace store_bench {

namespace {

constexpr uint64_t written_file_bytes = 256 << 20;
constexpr uint64_t untouched_file_bytes = uint64_t(4) << 30;
constexpr uint64_t read_file_bytes = uint64_t(1) << 30;
constexpr uint64_t chunk_bytes = 1 << 20;
constexpr uint64_t least_through_large_pages = 16 << 10;   // as the store's

/// Of written blocks, or of allocated ones that were never written to: then each place is written
/// to once, in order. Removed with the object.
class FloorFile {
 public:
  FloorFile(const std::string& dir, uint64_t bytes, bool written)
      : bytes(bytes),
        written(written),
        path(dir + "/floor")
  {
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
    check(fd);
    if (written)
      fill();
    else
      check(::fallocate(fd, 0, 0, bytes));
    flush();
  }
  ~FloorFile()
  {
    ::close(fd);
    ::unlink(path.c_str());
  }

  uint64_t next_place(Random& random, uint64_t length)
  {
    if (written)
      return random.below(bytes / length) * length;
    if (end + length > bytes) {
      check(::fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, bytes));
      end = 0;
    }
    end += length;
    return end - length;
  }
  void write(ceph::buffer::list bl, uint64_t offset, int flags)
  {
    const iovec memory = {bl.front().c_str(), bl.length()};
    check(::pwritev2(fd, &memory, 1, offset, flags));
  }
  void read(void* to, uint64_t length, uint64_t offset) const
  {
    const ssize_t r = ::pread(fd, to, length, offset);
    check(r);
    if (r != ssize_t(length))
      throw BenchError(path + ": a read ends early");
  }
  void flush() { check(::fdatasync(fd)); }
  int descriptor() const { return fd; }

  const uint64_t bytes;

 private:
  void fill()
  {
    const Payload payload;
    for (uint64_t at = 0; at < bytes; at += chunk_bytes)
      write(payload.of(at, 0, chunk_bytes), at, 0);
  }
  void check(ssize_t r) const { require(r < 0 ? -errno : 0, path); }

  const bool written;
  const std::string path;
  int fd;
  uint64_t end = 0;   ///< of what was written to, in an untouched file
};

/// One write that is under way while its thread does something else.
class WriteUnderWay {
 public:
  /// Null where io_uring is not to be had.
  static std::unique_ptr<WriteUnderWay> create()
  {
    std::unique_ptr<WriteUnderWay> made(new WriteUnderWay);
    made->usable = ::io_uring_queue_init(1, &made->ring, 0) == 0;
    return made->usable ? std::move(made) : nullptr;
  }
  ~WriteUnderWay()
  {
    if (usable)
      ::io_uring_queue_exit(&ring);
  }
  void begin(int fd, ceph::buffer::list& bl, uint64_t offset)
  {
    length = bl.length();
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring);
    ::io_uring_prep_write(entry, fd, bl.front().c_str(), length, offset);
    require(std::min(::io_uring_submit(&ring), 0), "io_uring_submit");
  }
  void wait()
  {
    io_uring_cqe* done;
    require(::io_uring_wait_cqe(&ring, &done), "io_uring_wait_cqe");
    const int r = done->res;
    ::io_uring_cqe_seen(&ring, done);
    require(r == int(length) ? 0 : std::min(r, -1), "a write through io_uring");
  }

 private:
  WriteUnderWay() = default;

  io_uring ring = {};
  bool usable = false;
  unsigned length = 0;
};

/// `group` operations of --size in each write.
template <class Write>
PhaseResult measure(const Options& o, FloorFile& file, const std::string& name, unsigned group,
                    Write write)
{
  const uint64_t length = o.size * group;
  const UsageMeter meter(o.dir);
  const Payload payload;
  Random random(o.seed);
  PhaseResult result;
  result.name = name;
  result.depth = group;
  const Time from = Clock::now() + duration_of(o.warmup);
  const Time until = from + duration_of(o.seconds);
  result.recorder.start(from);
  bool warm = false;
  Usage before;
  for (Time begun = Clock::now(); begun < until;) {
    if (!warm && begun >= from) {
      warm = true;
      before = meter.now();
      begun = Clock::now();
    }
    write(payload.random(random(), length), file.next_place(random, length));
    const Time ended = Clock::now();
    for (unsigned i = 0; i < group; ++i)
      result.recorder.add(begun, ended, o.size);
    begun = ended;
  }
  result.usage = result.usage_settled = meter.now() - before;
  Recorder& r = result.recorder;
  result.seconds = o.seconds;
  r.ops.resize(duration_of(o.seconds) / Recorder::interval);
  r.bytes.resize(r.ops.size());
  result.operations = std::accumulate(r.ops.begin(), r.ops.end(), uint64_t(0));
  result.payload_bytes = result.operations * o.size;
  result.load_average = load_average();
  return result;
}

/// As many threads as reads are in flight, as the stores' clients have; no place comes twice, and
/// as in the workload "read" not all of them come. From 16 KiB to 2 MiB the memory is of large
/// pages, where the system has them.
PhaseResult measure_reads(const Options& o, const FloorFile& file)
{
  const uint64_t places = file.bytes / o.size;
  const auto pages = tablestore::LargePages::make(o.depth * tablestore::LargePages::page_bytes);
  std::vector<tablestore::LargePages::Memory> memory;
  for (unsigned i = 0; i < o.depth; ++i)
    memory.push_back(o.size < least_through_large_pages ? nullptr : pages->take(o.size));
  const UsageMeter meter(o.dir);
  const Usage before = meter.now();
  const Time from = Clock::now(), until = from + duration_of(o.seconds);
  std::atomic<uint64_t> next{0};
  const auto reads = [&](std::byte* large) {
    Recorder recorder;
    recorder.start(from);
    ceph::buffer::ptr small;
    if (!large)
      small = ceph::buffer::create_aligned(o.size, Payload::block);
    void* const to = large ? static_cast<void*>(large) : small.c_str();
    for (Time begun = Clock::now(); begun < until;) {
      const uint64_t i = next++;
      if (i >= places / 4 * 3)
        break;
      file.read(to, o.size, jumping(i, places) * o.size);
      const Time ended = Clock::now();
      recorder.add(begun, ended, o.size);
      begun = ended;
    }
    return recorder;
  };
  std::vector<std::future<Recorder>> clients;
  for (unsigned i = 0; i < o.depth; ++i)
    clients.push_back(std::async(std::launch::async, reads, memory[i].get()));
  PhaseResult result;
  result.name = "read cold";
  result.depth = o.depth;
  result.recorder.start(from);
  for (auto& client : clients)
    result.recorder.merge(client.get());
  result.usage = result.usage_settled = meter.now() - before;
  const Recorder& r = result.recorder;
  result.seconds = seconds_of(r.last - from);
  result.operations = std::accumulate(r.ops.begin(), r.ops.end(), uint64_t(0));
  result.payload_bytes = result.operations * o.size;
  result.load_average = load_average();
  return result;
}

std::vector<PhaseResult> measure_read_floor(const Options& o)
{
  const uint64_t bytes = o.objects ? o.objects * o.object_size : read_file_bytes;
  if (o.size % Payload::block != 0 || bytes < 2 * o.size)
    throw BenchError("direct reads have multiples of 4096 bytes, and more than one place");
  const FloorFile file(o.dir, bytes, true);
  return {measure_reads(o, file)};
}

}  // namespace

std::vector<PhaseResult> measure_floor(const Options& options)
{
  if (options.workload == "read")
    return measure_read_floor(options);
  if (options.size % Payload::block != 0 || options.size * options.depth > written_file_bytes)
    throw BenchError("direct writes have multiples of 4096 bytes, groups of at most " +
                     std::to_string(written_file_bytes));
  const bool written = options.store != first_touch_floor;
  FloorFile file(options.dir, written ? written_file_bytes : untouched_file_bytes, written);
  const auto write_and_flush = [&](ceph::buffer::list bl, uint64_t offset) {
    file.write(std::move(bl), offset, 0);
    file.flush();
  };
  if (options.depth > 1)
    return {measure(options, file, "group and flush", options.depth, write_and_flush)};
  std::vector<PhaseResult> found{measure(options, file, "write and flush", 1, write_and_flush)};
  if (!written)
    return found;
  found.push_back(measure(options, file, "write with RWF_DSYNC", 1,
                          [&](ceph::buffer::list bl, uint64_t offset) {
                            file.write(std::move(bl), offset, RWF_DSYNC);
                          }));
  if (const auto under_way = WriteUnderWay::create()) {
    const Payload records;
    uint64_t count = 0;
    found.push_back(measure(
        options, file, "two writes and flush", 1, [&](ceph::buffer::list bl, uint64_t offset) {
          under_way->begin(file.descriptor(), bl, offset);
          const uint64_t record = count++ % (file.bytes / Payload::block);
          file.write(records.of(record, 0, Payload::block), record * Payload::block, 0);
          under_way->wait();
          file.flush();
        }));
  }
  return found;
}

}  // namespace store_bench
