#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "disk_wrapper.h"
#include "os/tablestore/engine/format/crc32c.h"
#include "os/tablestore/engine/format/label.h"
#include "os/tablestore/engine/io/file_disk.h"
#include "test/tablestore/engine/test_directory.h"

namespace tablestore {
namespace {

// Lets so many writes and flushes through; tears the write after them, and fails from there on.
class StoppingFile : public FileWrapper {
 public:
  StoppingFile(std::unique_ptr<File> file, std::string name, int* left)
      : FileWrapper(std::move(file)), name_(std::move(name)), left_(left) {}
  Status write(uint64_t offset, std::span<const std::byte> data) override {
    if (*left_ > 0) return --*left_, FileWrapper::write(offset, data);
    if (std::exchange(*left_, -1) == 0) {
      std::vector<std::byte> torn(data.begin(), data.end());
      std::memset(torn.data() + 40, 0xee, torn.size() - 40);
      std::fstream(name_, std::ios::in | std::ios::out | std::ios::binary)
          .seekp(static_cast<std::streamoff>(offset))
          .write(reinterpret_cast<char*>(torn.data()), static_cast<std::streamsize>(torn.size()));
    }
    return Status(EIO, "stopped");
  }
  Status flush() override {
    if (*left_ > 0) return --*left_, FileWrapper::flush();
    *left_ = -1;
    return Status(EIO, "stopped");
  }

 private:
  const std::string name_;
  int* left_;
};

class StoppingDisk : public DiskWrapper {
 public:
  StoppingDisk(Disk& disk, int operations) : DiskWrapper(disk), left_(operations) {}

 protected:
  std::unique_ptr<File> wrap(const std::string& path, std::unique_ptr<File> file) override {
    return std::make_unique<StoppingFile>(std::move(file), table_path(path), &left_);
  }

 private:
  int left_;
};

class LabelTest : public testing::Test {
 protected:
  void SetUp() override {
    FileDiskOptions options;
    options.direct = false;  // the tests below read the label some ten thousand times
    Result<std::unique_ptr<Disk>> opened = open_file_disk(directory.path(), options);
    ASSERT_TRUE(opened.ok()) << opened.status().what();
    disk = opened.take();
  }

  std::string file() const { return directory.path() + "/label"; }
  std::string bytes() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void set_bytes(const std::string& all) const {
    std::ofstream(file(), std::ios::binary | std::ios::trunc).write(
        all.data(), static_cast<std::streamsize>(all.size()));
  }
  void flip(size_t at) const {
    std::fstream f(file(), std::ios::in | std::ios::out | std::ios::binary);
    char byte;
    f.seekg(static_cast<std::streamoff>(at)).read(&byte, 1);
    byte ^= 0x10;
    f.seekp(static_cast<std::streamoff>(at)).write(&byte, 1);
  }
  // Changes both copies as a program would that knows how to.
  void edit(const std::function<void(char* copy)>& change) const {
    std::string all = bytes();
    for (size_t copy : {0, 4096}) {
      change(all.data() + copy);
      const uint32_t crc = crc32c(0, all.data() + copy, 4092);
      std::memcpy(all.data() + copy + 4092, &crc, 4);
    }
    set_bytes(all);
  }
  void expect_refused(int code, const std::string& part_of_line) {
    const Result<Label> label = read_label(*disk);
    ASSERT_FALSE(label.ok());
    EXPECT_EQ(label.status().code(), code) << label.status().what();
    EXPECT_NE(label.status().what().find(part_of_line), std::string::npos)
        << label.status().what();
    EXPECT_NE(label.status().what().find(file()), std::string::npos) << label.status().what();
  }
  static Label sample(uint8_t first_uuid_byte = 7) {
    Label label;
    label.store_uuid.fill(9);
    label.store_uuid[0] = first_uuid_byte;
    label.compat = 1;
    label.log_bytes = 256 << 20;
    label.segment_bytes = 32 << 20;
    label.container_bytes = 64 << 20;
    label.created_unix_seconds = 1234567890;
    label.made_by = release_number(0, 1);
    label.opened_by = this_release;
    return label;
  }
  static Label with_sequence(Label label, uint64_t sequence) {
    label.sequence = sequence;
    return label;
  }

  TestDirectory directory;
  std::unique_ptr<Disk> disk;
};

TEST_F(LabelTest, AbsentIsNoEntry) { expect_refused(ENOENT, "not a store"); }

TEST_F(LabelTest, ReadsBackWhatWasWritten) {
  ASSERT_TRUE(write_label(*disk, sample()).ok());
  EXPECT_EQ(bytes().size(), 8192u);
  bool repair_needed = true;
  const Result<Label> label = read_label(*disk, &repair_needed);
  ASSERT_TRUE(label.ok()) << label.status().what();
  EXPECT_EQ(*label, with_sequence(sample(), 1));
  EXPECT_FALSE(repair_needed);
}

TEST_F(LabelTest, RewritingCountsOn) {
  ASSERT_TRUE(write_label(*disk, sample()).ok());
  Label changed = sample();
  changed.compat = 3;
  ASSERT_TRUE(write_label(*disk, changed).ok());
  const Result<Label> label = read_label(*disk);
  ASSERT_TRUE(label.ok());
  EXPECT_EQ(*label, with_sequence(changed, 2));
}

TEST_F(LabelTest, AnyDamagedByteOfOneCopyIsSurvivedAndReported) {
  ASSERT_TRUE(write_label(*disk, sample()).ok());
  for (size_t at = 0; at < 8192; ++at) {
    flip(at);
    bool repair_needed = false;
    const Result<Label> label = read_label(*disk, &repair_needed);
    ASSERT_TRUE(label.ok()) << "byte " << at << ": " << label.status().what();
    ASSERT_EQ(*label, with_sequence(sample(), 1)) << "byte " << at;
    ASSERT_TRUE(repair_needed) << "byte " << at;
    flip(at);
  }
}

TEST_F(LabelTest, DamageInBothCopiesIsAnError) {
  ASSERT_TRUE(write_label(*disk, sample()).ok());
  for (size_t at : {0, 8, 16, 24, 64, 104, 2000, 4095}) {
    flip(at);
    flip(8191 - at);
    expect_refused(EIO, "both copies are damaged");
    flip(at);
    flip(8191 - at);
  }
}

TEST_F(LabelTest, TruncatedToNothingOrToOneCopy) {
  ASSERT_TRUE(write_label(*disk, sample()).ok());
  const std::string all = bytes();
  set_bytes(all.substr(0, 4096));
  bool repair_needed = false;
  EXPECT_TRUE(read_label(*disk, &repair_needed).ok());
  EXPECT_TRUE(repair_needed);
  for (size_t size : {0, 1, 512, 4095}) {
    set_bytes(all.substr(0, size));
    expect_refused(EIO, "both copies are damaged");
  }
  set_bytes(std::string(8192, '\0'));
  expect_refused(EIO, "no label magic");
}

TEST_F(LabelTest, WritingMendsADamagedCopy) {
  for (size_t at : {100, 4196}) {
    ASSERT_TRUE(write_label(*disk, sample()).ok());
    flip(at);
    const Result<Label> found = read_label(*disk);
    ASSERT_TRUE(found.ok());
    ASSERT_TRUE(write_label(*disk, *found).ok());
    bool repair_needed = true;
    EXPECT_TRUE(read_label(*disk, &repair_needed).ok());
    EXPECT_FALSE(repair_needed);
  }
}

TEST_F(LabelTest, AnUpdateThatStopsAnywhereLeavesTheOldOrTheNewLabel) {
  for (int damaged_copy : {-1, 0, 1}) {
    bool finished = false;
    for (int operations = 0; !finished; ++operations) {
      set_bytes("");
      ASSERT_TRUE(write_label(*disk, sample()).ok());
      if (damaged_copy >= 0) flip(damaged_copy * 4096 + 50);
      Label changed = sample();
      changed.compat = 77;
      StoppingDisk stopping(*disk, operations);
      finished = write_label(stopping, changed).ok();
      const Result<Label> label = read_label(*disk);
      ASSERT_TRUE(label.ok()) << "copy " << damaged_copy << " damaged, stopped after "
                              << operations << ": " << label.status().what();
      EXPECT_TRUE(label->compat == 77 || (!finished && label->compat == 1)) << label->compat;
      ASSERT_LT(operations, 10);
    }
  }
}

TEST_F(LabelTest, NewerFormatIsNotSupported) {
  ASSERT_TRUE(write_label(*disk, sample()).ok());
  edit([](char* copy) { copy[8] = label_format_version + 1; });
  expect_refused(ENOTSUP, "format version 2");
}

TEST_F(LabelTest, MoreFieldsAreNotSupported) {
  ASSERT_TRUE(write_label(*disk, sample()).ok());
  edit([](char* copy) { copy[12] = static_cast<char>(copy[12] + 8); });
  expect_refused(ENOTSUP, "bytes of fields");
}

TEST_F(LabelTest, UnknownIncompatibleFeatureIsNamed) {
  Label label = sample();
  label.incompat = uint64_t(1) << 40;
  ASSERT_TRUE(write_label(*disk, label).ok());
  expect_refused(ENOTSUP, "incompat bits 0x10000000000");
  expect_refused(ENOTSUP, "(" TABLESTORE_RELEASE "); use the release that wrote it, or a newer");
}

TEST_F(LabelTest, ARefusalNamesTheReleaseThatIsNeeded) {
  Label label = sample();
  label.incompat = uint64_t(1) << 40;
  label.opened_by = release_number(9, 3);
  ASSERT_TRUE(write_label(*disk, label).ok());
  expect_refused(ENOTSUP, "use TableStore 9.3, or a newer one");
}

// As programs before 0.1 wrote it.
TEST_F(LabelTest, ALabelWithoutReleasesIsRead) {
  ASSERT_TRUE(write_label(*disk, sample()).ok());
  edit([](char* copy) {
    copy[12] = 104;
    std::memset(copy + 104, 0, 8);
  });
  const Result<Label> label = read_label(*disk);
  ASSERT_TRUE(label.ok()) << label.status().what();
  EXPECT_EQ(label->made_by, 0u);
  EXPECT_EQ(release_name(label->opened_by), "before 0.1");
  EXPECT_EQ(release_name(this_release), TABLESTORE_RELEASE);
}

TEST_F(LabelTest, OtherBlockSizeIsNotSupported) {
  ASSERT_TRUE(write_label(*disk, sample()).ok());
  edit([](char* copy) { copy[89] = 0x40; });
  expect_refused(ENOTSUP, "blocks of 16384 bytes");
}

TEST_F(LabelTest, UnknownReadOnlyFeatureForbidsWriting) {
  Label label = sample();
  EXPECT_TRUE(check_writable(*disk, label).ok());
  label.ro_compat = 4;
  ASSERT_TRUE(write_label(*disk, label).ok());
  const Result<Label> found = read_label(*disk);
  ASSERT_TRUE(found.ok());
  const Status s = check_writable(*disk, *found);
  EXPECT_EQ(s.code(), ENOTSUP);
  EXPECT_NE(s.what().find("0x4"), std::string::npos) << s.what();
}

TEST_F(LabelTest, KeysAreKept) {
  Label label = sample();
  label.keys = {{"whoami", "7"}, {"empty", ""}, {"", "nameless"}, {"long", std::string(3000, 'x')}};
  ASSERT_TRUE(write_label(*disk, label).ok());
  auto found = read_label(*disk);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->keys, label.keys);
  EXPECT_EQ(found->compat & compat_label_keys, compat_label_keys);
  found->keys.erase("long");
  ASSERT_TRUE(write_label(*disk, *found).ok());
  EXPECT_EQ(read_label(*disk)->keys, found->keys);
}

TEST_F(LabelTest, KeysThatDoNotFitAreRefusedAndChangeNothing) {
  Label label = sample();
  label.keys["note"] = std::string(3976 - 4 - 4, 'x');
  ASSERT_TRUE(write_label(*disk, label).ok());
  const std::string before = bytes();
  label.keys["note"] += 'x';
  EXPECT_EQ(write_label(*disk, label).code(), E2BIG);
  EXPECT_EQ(bytes(), before);
}

// A program that does not know of keys has left zeros; or it was faulty.
TEST_F(LabelTest, KeysThatDoNotDecodeAreNone) {
  Label label = sample();
  label.keys = {{"a", "1"}, {"b", "2"}};
  constexpr size_t key_bytes = 112, first_length = 116, second_key = 126;
  const std::function<void(char*)> faults[] = {
      [](char* copy) { std::memset(copy + key_bytes, 0, 3980); },
      [](char* copy) { copy[key_bytes] = 11; },
      [](char* copy) { copy[key_bytes + 3] = 0x7f; },
      [](char* copy) { copy[first_length + 1] = 0x7f; },
      [](char* copy) { copy[second_key] = 'a'; }};
  for (const auto& fault : faults) {
    set_bytes("");
    ASSERT_TRUE(write_label(*disk, label).ok());
    edit(fault);
    const auto found = read_label(*disk);
    ASSERT_TRUE(found.ok()) << found.status().what();
    EXPECT_TRUE(found->keys.empty());
  }
}

TEST_F(LabelTest, CopiesOfTwoStoresAreRefused) {
  ASSERT_TRUE(write_label(*disk, sample(1)).ok());
  const std::string first = bytes();
  set_bytes("");
  ASSERT_TRUE(write_label(*disk, sample(2)).ok());
  set_bytes(first.substr(0, 4096) + bytes().substr(4096));
  expect_refused(EIO, "two different stores");
}

// With a right checksum: the log would be divided by these.
TEST_F(LabelTest, AnImpossibleGeometryIsRefused) {
  constexpr size_t log_bytes = 64, segment_bytes = 72, container_bytes = 80;
  const std::pair<size_t, uint64_t> impossible[] = {
      {segment_bytes, 0},           {segment_bytes, 4096}, {segment_bytes, 256 << 20},
      {log_bytes, 0},               {log_bytes, 33 << 20}, {container_bytes, 0},
      {container_bytes, 4096},      {container_bytes, uint64_t(1) << 44},
      {container_bytes, (64 << 20) + 4096}};
  for (const auto& [field, value] : impossible) {
    set_bytes("");
    ASSERT_TRUE(write_label(*disk, sample()).ok());
    ASSERT_TRUE(read_label(*disk).ok());
    edit([&](char* copy) { std::memcpy(copy + field, &value, sizeof(value)); });
    expect_refused(EIO, "no store has a log of");
  }
}

}  // namespace
}  // namespace tablestore
