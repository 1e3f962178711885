// Writes the first inputs of the fuzz targets, made by the engine's own encoders: one directory per
// target below the one that is given.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/format/label.h"
#include "os/tablestore/engine/io/block_memory.h"
#include "os/tablestore/engine/log/log_reader.h"
#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "test/tablestore/engine/memory_disk.h"
#include "test/tablestore/fuzz/input.h"
#include "test/tablestore/fuzz/log_groups.h"
#include "test/tablestore/fuzz/store_damage.h"

namespace tablestore::fuzz {
namespace {

std::filesystem::path root;

void save(const std::string& target, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(root / target);
  std::ofstream out(root / target / name, std::ios::binary);
  out.write(bytes.data(), std::streamsize(bytes.size()));
  require(out.good(), "the directory takes files");
}

// --- labels

std::string label_file(const std::vector<Label>& versions) {
  MemoryDisk disk(1 << 20);
  for (const Label& label : versions) require(write_label(disk, label).ok(), "written");
  auto file = disk.open("label", OpenMode::read_only);
  BlockMemory memory((*file)->size_bytes());
  require((*file)->read(0, memory.span()).ok(), "read");
  return {reinterpret_cast<const char*>(memory.data()), memory.size()};
}

void labels() {
  Label label;
  std::copy(uuid.begin(), uuid.end(), label.store_uuid.begin());
  label.log_bytes = 256 << 20;
  label.segment_bytes = 32 << 20;
  label.container_bytes = 1 << 30;
  label.created_unix_seconds = 1700000000;
  Label other = label;
  other.ro_compat = 1;
  const std::string first = label_file({label}), second = label_file({label, other});
  save("label", "raw", "\1" + second);
  for (const std::string& file : {first, second})
    save("label", file == first ? "fresh" : "changed",
         std::string(1, '\0') + file.substr(0, 104) + file.substr(block_bytes, 104));
}

// --- the log

std::string some_rows(uint32_t* count) {
  std::string rows;
  RowWriter w(rows);
  w.put(Family::super, "key", "value");
  w.put(Family::object, "object", std::string(200, 'o'));
  w.erase(Family::data, "gone");
  w.erase(Family::super, "gone");
  w.erase_range(Family::omap, "a", "z");
  w.erase_range(Family::super, "b", "c");
  const int64_t deltas[2] = {1, -1};
  w.merge(Family::super, "P", {reinterpret_cast<const char*>(deltas), sizeof(deltas)});
  *count = 7;
  return rows;
}

std::string group(LogPosition* at, unsigned transactions, uint32_t flags, uint32_t mend) {
  LogGroupBuilder builder(true);
  builder.begin(0);
  for (unsigned t = 0; t < transactions; ++t) {
    uint32_t count;
    const std::string rows = some_rows(&count);
    const LoggedWrite writes[2] = {{{t, 16, 8}, 0x12345678}, {{t, 64, 1}, 7}};
    const Extent freed{1, 128 + t, 2};
    builder.add(count, rows, std::span(writes).first(t % 3), {&freed, t % 2});
  }
  LogGroupHeader header{};
  std::copy(uuid.begin(), uuid.end(), header.store_uuid);
  header.epoch = flags & LogGroupHeader::begins_epoch ? ++at->epoch : at->epoch;
  header.position = at->position;
  header.first_lsn = at->next_lsn;
  header.watermark = at->next_lsn - 1;
  header.previous_crc = at->previous_crc;
  header.flags = flags;
  const auto bytes = builder.finish(header);
  std::string group(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::memcpy(group.data() + offsetof(LogGroupHeader, reserved), &mend, sizeof(mend));
  at->position += group.size();
  at->next_lsn += transactions;
  at->previous_crc = builder.crc();
  return group;
}

void log() {
  LogPosition at;
  for (unsigned transactions : {0u, 1u, 5u, 60u}) {
    std::string bytes = group(&at, transactions, 0, 0);
    LogGroupHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    bytes.resize(sizeof(header) + header.payload_bytes);
    save("log_group", std::to_string(transactions), std::string(1, '\0') + bytes);
  }
  for (const uint64_t begin : {0u, 15u, 61u}) {
    LogPosition start;
    start.position = begin * block_bytes;
    start.epoch = begin;
    LogPosition end = start;
    std::string chain = start.encode();
    chain += group(&end, 0, LogGroupHeader::begins_epoch, mend_all);
    chain += group(&end, 40, 0, mend_all);  // compressed
    chain += group(&end, 1, 0, mend_all);
    chain += group(&end, 0, LogGroupHeader::begins_epoch, mend_all);
    chain += group(&end, 2, 0, mend_all);
    save("log_chain", std::to_string(begin), chain);
    // One that is torn, and a later one that says that it was durable.
    std::string broken = chain;
    broken[28 + block_bytes + offsetof(LogGroupHeader, reserved)] = mend_place;
    broken[28 + block_bytes + 100] ^= 1;
    save("log_chain", std::to_string(begin) + "-damaged", broken);
  }
}

// --- rows

// Of a chunk of 1024 blocks, as of transaction 5: nothing is owned, all is, or some blocks are.
std::string chunk_row(uint8_t kind) {
  std::string words(kind == 2 ? 128 : 0, '\0');
  if (kind == 2) words[0] = 15, words[100] = char(0xff);
  return Output().number(uint64_t(5)).number(uint16_t(1024)).number(kind).raw(words).bytes();
}

void rows() {
  uint32_t count;
  const std::string all = some_rows(&count);
  save("rows", "all", Output().number(count).raw(all).bytes());
  save("engine_rows", "applied", Output().number(uint8_t(0)).number(uint64_t(77)).bytes());
  LogPosition position{5 * block_bytes, 12, 3, 0xabcdef};
  save("engine_rows", "log_start", Output().number(uint8_t(1)).raw(position.encode()).bytes());
  std::string key = engine_rows::whole_allocation(3);
  std::string words(1 + 128, '\0');
  words[0] = 4, words[1] = 15, words[100] = char(0xff);
  save("engine_rows", "allocation",
       Output().number(uint8_t(2)).number(uint8_t(key.size())).raw(key).raw(words).bytes());
  key = engine_rows::allocation(3, 1);
  for (uint8_t kind = 0; kind < 3; ++kind)
    save("engine_rows", "allocation-chunk-" + std::to_string(kind),
         Output().number(uint8_t(2)).number(uint8_t(key.size())).raw(key).raw(chunk_row(kind))
             .bytes());
}

// Rows of chunks over one of the old format, of a container that is there (0) and of one that is
// not (3), and a log that goes from one chunk into the next. The n-th step is transaction n.
void allocation_in_pieces() {
  constexpr uint8_t add = 0, load = 1, own = 2, free = 3, whole = 0x40, row = 0x80;
  for (uint8_t kind = 0; kind < 3; ++kind) {
    Output steps;
    steps.number(uint8_t(add + 4 * 10)).number(uint8_t(0)).number(uint8_t(0)).number(uint8_t(0));
    steps.number(uint8_t(load + whole)).number(uint8_t(0))
        .number(uint8_t(1)).number(uint16_t(4090)).number(uint16_t(16));
    for (const uint8_t container : {0, 3}) {
      const std::string value = chunk_row(kind);
      steps.number(uint8_t(load + row)).number(container).number(uint8_t(1))
          .number(uint16_t(value.size())).raw(value);
    }
    steps.number(free).number(uint8_t(0)).number(uint16_t(4090)).number(uint16_t(15));
    steps.number(own).number(uint8_t(0)).number(uint16_t(4090)).number(uint16_t(15));
    steps.number(own).number(uint8_t(3)).number(uint16_t(4096 + 40)).number(uint16_t(0));
    steps.number(free).number(uint8_t(3)).number(uint16_t(4096 + 40)).number(uint16_t(0));
    save("allocation", "pieces-" + std::to_string(kind), steps.bytes());
  }
}

// Containers are added, checkpoints loaded, and the log replayed over them.
void allocation() {
  constexpr uint8_t add = 0, load = 1, own = 2, free = 3;
  Output steps;
  for (uint8_t container = 0; container < 3; ++container)
    steps.number(uint8_t(add + 4 * (container * 5))).number(container)
        .number(uint8_t(1)).number(uint16_t(512)).number(uint16_t(700))
        .number(uint8_t(1)).number(uint16_t(600)).number(uint16_t(64));
  for (uint8_t container = 0; container < 2; ++container)
    steps.number(load).number(container)
        .number(uint8_t(0)).number(container)  // chunk, as of
        .number(uint8_t(1)).number(uint16_t(0)).number(uint16_t(16));
  steps.number(own).number(uint8_t(0)).number(uint16_t(100)).number(uint16_t(3));
  steps.number(free).number(uint8_t(1)).number(uint16_t(0)).number(uint16_t(15));
  steps.number(own).number(uint8_t(3)).number(uint16_t(0)).number(uint16_t(1));
  steps.number(free).number(uint8_t(3)).number(uint16_t(0)).number(uint16_t(1));
  save("allocation", "recovery", steps.bytes());
  allocation_in_pieces();
}

// Every kind of change of every kind of file, here and there, with mended checksums and without.
void stores() {
  sim::Random random(1);
  for (uint8_t store = 0; store < store_kinds; ++store)
    for (uint8_t kind = 0; kind < Edit::kinds; ++kind) {
      Output edits;
      edits.number(store);
      for (unsigned i = 0; i <= kind % 3u; ++i)
        Edit{kind, uint8_t(random()), uint32_t(random()), uint32_t(random())}.append_to(edits);
      save("store", std::to_string(store) + "-" + std::to_string(kind), edits.bytes());
      Edit{uint8_t(Edit::Kind::mend), 0, 0, 0}.append_to(edits);
      save("store", std::to_string(store) + "-" + std::to_string(kind) + "-mended",
           edits.bytes());
    }
}

}  // namespace
}  // namespace tablestore::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  using namespace tablestore::fuzz;
  root = argv[1];
  labels();
  log();
  rows();
  allocation();
  stores();
}
