// The worked example of doc/dev/tablestore-format.rst: what it shows is what the program writes.
// A change here is a change of the format, which needs a new version or a feature bit.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "os/tablestore/engine/format/label.h"
#include "os/tablestore/engine/table/engine_rows.h"
#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

class FormatExample : public EngineFixture {
 protected:
  // Each in a group of its own.
  void commit_alone(const std::shared_ptr<AwaitedTxn>& txn) {
    engine->submit(txn);
    txn->wait_applied();
  }

  // Bytes of a file of the store, as pairs of digits with a space between.
  std::string bytes_at(const std::string& file, uint64_t offset, size_t count) {
    std::ifstream in(directory + "/" + file, std::ios::binary);
    in.seekg(std::streamoff(offset));
    std::vector<char> bytes(count);
    in.read(bytes.data(), std::streamsize(count));
    EXPECT_TRUE(in.good()) << file << " at " << offset;
    return digits_of({bytes.data(), count});
  }
  static std::string digits_of(std::string_view bytes) {
    std::string text;
    for (char c : bytes) {
      char digits[4];
      std::snprintf(digits, sizeof(digits), "%02x ", static_cast<unsigned char>(c));
      text += digits;
    }
    text.pop_back();
    return text;
  }
};

TEST_F(FormatExample, TheLabelIsAsDocumented) {
  Label label;
  std::copy(options.store_uuid.begin(), options.store_uuid.end(), label.store_uuid.begin());
  label.incompat = incompat_allocation_chunks | incompat_compressed_groups;
  label.log_bytes = 8 << 20;
  label.segment_bytes = 2 << 20;
  label.container_bytes = 8 << 20;
  label.created_unix_seconds = 0x6b018f93;
  label.made_by = release_number(0, 1);
  label.opened_by = release_number(0, 2);
  const Status s = write_label(*disk, label);
  ASSERT_TRUE(s.ok()) << s.what();
  const std::string fields =
      "74 62 6c 73 74 6f 72 31 01 00 00 00 70 00 00 00 01 00 00 00 00 00 00 00 "
      "30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66 00 00 00 00 00 00 00 00 "
      "00 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 00 00 80 00 00 00 00 00 "
      "00 00 20 00 00 00 00 00 00 00 80 00 00 00 00 00 00 10 00 00 00 00 00 00 "
      "93 8f 01 6b 00 00 00 00 01 00 00 00 02 00 00 00";
  for (const uint64_t copy : {uint64_t(0), block_bytes}) {
    EXPECT_EQ(bytes_at("label", copy, 112), fields);
    EXPECT_EQ(bytes_at("label", copy + 4092, 4), "14 90 33 a4");
  }
}

TEST_F(FormatExample, TheLogIsAsDocumented) {
  options.vouch_after_ms = 0;  // a group for a machine that is slow would come between these
  format();
  open();
  auto first = std::make_shared<AwaitedTxn>();
  first->put(Family::object, "hello", "world");
  const int64_t counters[] = {8192, 1};
  first->add("Pdemo", counters);
  const Written w = write(*first, 2, 7);
  ASSERT_EQ(w.extents, (std::vector<Extent>{{0, 0, 2}}));
  ASSERT_EQ(w.checksums, (std::vector<uint32_t>{0x8344c527, 0x4374ec4a}));
  commit_alone(first);
  commit_alone(std::make_shared<AwaitedTxn>());
  auto second = std::make_shared<AwaitedTxn>();
  second->erase(Family::object, "hello");
  second->free({0, 1, 1});
  commit_alone(second);
  commit_alone(std::make_shared<AwaitedTxn>());
  ASSERT_TRUE(engine->checkpoint().ok());
  std::string log_start;
  ASSERT_TRUE(*engine->get(Family::super, engine_rows::log_start(), &log_start));
  EXPECT_EQ(digits_of(log_start), "00 60 00 00 00 00 00 00 05 00 00 00 00 00 00 00 "
                                  "01 00 00 00 00 00 00 00 0f 92 36 f0");

  const std::string head = "74 62 6c 73 6c 6f 67 31 30 31 32 33 34 35 36 37 "
                           "38 39 61 62 63 64 65 66 01 00 00 00 00 00 00 00 ";
  EXPECT_EQ(bytes_at("log/0", 0, 84),
            head + "00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                   "00 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 82 5a 3c c2 "
                   "00 00 00 00");
  EXPECT_EQ(bytes_at("log/0", 4096, 84),
            head + "00 10 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                   "00 00 00 00 00 00 00 00 82 5a 3c c2 00 00 00 00 00 00 00 00 ec 81 21 ea "
                   "00 00 00 00");
  EXPECT_EQ(bytes_at("log/0", 8192, 152),
            head + "00 20 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                   "01 00 00 00 46 00 00 00 ec 81 21 ea 00 00 00 00 00 00 00 00 c0 cf 51 e6 "
                   "02 00 00 00 26 00 00 00 01 00 00 00 00 00 00 00 "
                   "00 00 00 00 00 00 00 00 02 00 00 00 76 e9 df e9 "
                   "05 01 05 68 65 6c 6c 6f 05 77 6f 72 6c 64 "
                   "02 05 50 64 65 6d 6f 10 00 20 00 00 00 00 00 00 01 00 00 00 00 00 00 00 "
                   "00 00");
  EXPECT_EQ(bytes_at("log/0", 12288, 96),
            head + "00 30 00 00 00 00 00 00 02 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 "
                   "01 00 00 00 10 00 00 00 c0 cf 51 e6 00 00 00 00 00 00 00 00 65 79 6a 1d "
                   "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(bytes_at("log/0", 16384, 118),
            head + "00 40 00 00 00 00 00 00 03 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 "
                   "01 00 00 00 24 00 00 00 65 79 6a 1d 00 00 00 00 00 00 00 00 79 e5 1f 24 "
                   "01 00 00 00 08 00 00 00 00 00 00 00 01 00 00 00 "
                   "00 00 00 00 01 00 00 00 01 00 00 00 "
                   "04 01 05 68 65 6c 6c 6f 00 00");
}

}  // namespace
}  // namespace tablestore
