#include "test/tablestore/powercut/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace tablestore::powercut {

namespace {

constexpr uint64_t part_bytes = 256 << 20;  // memory that is not used is not taken
constexpr uint64_t head_bytes = 4096;
constexpr uint64_t journal_bytes = head_bytes + (max_writers + 1) * part_bytes;

class Packer {
 public:
  void number(uint64_t n) { bytes_.append(reinterpret_cast<const char*>(&n), sizeof(n)); }
  void text(const std::string& s) {
    number(s.size());
    bytes_ += s;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}
  uint64_t number() {
    uint64_t n;
    std::memcpy(&n, rest_.data(), sizeof(n));
    rest_.remove_prefix(sizeof(n));
    return n;
  }
  std::string text() {
    const uint64_t n = number();
    std::string s(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return s;
  }

 private:
  std::string_view rest_;
};

std::string pack(const sim::Change& change) {
  Packer p;
  p.number(change.rows.size());
  for (const auto& row : change.rows) {
    p.number(uint64_t(row.kind));
    p.number(uint64_t(row.family));
    p.text(row.key);
    p.text(row.value);
  }
  p.number(change.objects.size());
  for (const auto& [name, blocks] : change.objects) {
    p.text(name);
    p.number(blocks ? blocks->size() + 1 : 0);
    if (!blocks) continue;
    for (const sim::BlockRef& b : *blocks) {
      p.number(uint64_t(b.container) << 32 | b.block);
      p.number(b.seed);
      p.number(b.index);
    }
  }
  return p.bytes();
}

sim::Change unpack(std::string_view bytes) {
  Unpacker u(bytes);
  sim::Change change;
  for (uint64_t n = u.number(); n > 0; --n) {
    sim::Change::Row row;
    row.kind = sim::Change::Kind(u.number());
    row.family = Family(u.number());
    row.key = u.text();
    row.value = u.text();
    change.rows.push_back(std::move(row));
  }
  for (uint64_t n = u.number(); n > 0; --n) {
    auto& blocks = change.objects[u.text()];
    const uint64_t size = u.number();
    if (size == 0) continue;
    blocks.emplace(size - 1);
    for (sim::BlockRef& b : *blocks) {
      const uint64_t at = u.number();
      b.container = uint32_t(at >> 32);
      b.block = uint32_t(at);
      b.seed = u.number();
      b.index = uint32_t(u.number());
    }
  }
  return change;
}

uint64_t record_bytes(uint64_t bytes) { return (sizeof(Journal::Record) + bytes + 7) / 8 * 8; }

}  // namespace

Result<std::unique_ptr<Journal>> Journal::create() {
  // Children inherit it.
  const int fd = ::memfd_create("journal", 0);
  if (fd < 0 || ::ftruncate(fd, off_t(journal_bytes)) != 0)
    return Status::from_errno(errno, "no memory for a journal");
  return map(fd);
}

Result<std::unique_ptr<Journal>> Journal::map(int fd) {
  void* memory = ::mmap(nullptr, journal_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return Status::from_errno(errno, "a journal cannot be mapped");
  return std::unique_ptr<Journal>(new Journal(fd, static_cast<std::byte*>(memory)));
}

Journal::Journal(int fd, std::byte* memory)
    : fd_(fd), memory_(memory), head_(reinterpret_cast<Head*>(memory)) {
  static_assert(sizeof(Head) <= head_bytes);
}

Journal::~Journal() {
  ::munmap(memory_, journal_bytes);
  ::close(fd_);
}

std::byte* Journal::part(unsigned number) const {
  return memory_ + head_bytes + number * part_bytes;
}

Journal::Record* Journal::append_to(unsigned number, const std::string& bytes) {
  Part& p = head_->parts[number];
  if (p.end + record_bytes(bytes.size()) > part_bytes) return nullptr;
  auto* record = reinterpret_cast<Record*>(part(number) + p.end);
  record->bytes = bytes.size();
  std::memcpy(reinterpret_cast<std::byte*>(record + 1), bytes.data(), bytes.size());
  p.end += record_bytes(bytes.size());
  p.count.fetch_add(1);
  return record;
}

Journal::Record* Journal::append(unsigned writer, const sim::Change& change) {
  return append_to(writer, pack(change));
}

void Journal::begin(const sim::State& state, uint64_t lsn) {
  sim::Change all;
  for (unsigned f = 0; f < families; ++f)
    for (const auto& [key, value] : state.rows[f])
      all.rows.push_back({sim::Change::Kind::put, Family(f), key, value});
  for (const auto& [name, blocks] : state.objects) all.objects[name] = blocks;
  append_to(max_writers, pack(all));
  head_->floor_lsn = lsn;
  report().acknowledged[0].store(lsn);
  report().begun.store(true);
}

sim::State Journal::floor() const {
  sim::State state;
  each(max_writers, count(max_writers),
       [&](uint64_t, const sim::Change& all) { state.apply(all); });
  return state;
}

void Journal::each(unsigned writer, uint64_t count,
                   const std::function<void(uint64_t lsn, const sim::Change&)>& visit) const {
  const std::byte* at = part(writer);
  for (; count > 0; --count) {
    const auto* record = reinterpret_cast<const Record*>(at);
    visit(record->lsn.load(),
          unpack({reinterpret_cast<const char*>(record + 1), record->bytes}));
    at += record_bytes(record->bytes);
  }
}

void Journal::acknowledge(Record* record, uint64_t lsn) {
  record->lsn.store(lsn);
  report().acknowledged[0].store(lsn);
}

bool Journal::all_durable(unsigned writer, uint64_t count) const {
  const std::byte* at = part(writer);
  for (; count > 0; --count) {
    const auto* record = reinterpret_cast<const Record*>(at);
    if (record->lsn.load() == 0) return false;
    at += record_bytes(record->bytes);
  }
  return true;
}

void Journal::count(const Counters& counters) {
  for (size_t i = 0; i < std::size(counter_names); ++i)
    head_->counters[i].store((counters.*counter_names[i].second).load());
}

bool Journal::save(const char* path) const {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool ok = fd >= 0 && ::ftruncate(fd, off_t(journal_bytes)) == 0;
  auto copy = [&](const std::byte* from, uint64_t bytes) {
    while (ok && bytes > 0) {
      const ssize_t n = ::pwrite(fd, from, bytes, from - memory_);
      ok = n > 0;
      from += ok ? n : 0;
      bytes -= ok ? uint64_t(n) : 0;
    }
  };
  copy(memory_, head_bytes);
  for (unsigned i = 0; i <= max_writers; ++i) copy(part(i), head_->parts[i].end);
  if (fd >= 0) ::close(fd);
  return ok;
}

}  // namespace tablestore::powercut
