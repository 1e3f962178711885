// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
// A store whose files can be damaged, by what is in them.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "common/Formatter.h"
#include "test/objectstore/tablestore/store_fixture.h"

namespace tablestore_test {

inline std::string slurp(const std::string& path)
{
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// Changes bytes of a file where it lies.
inline void overwrite(const std::string& path, uint64_t offset, const std::string& bytes)
{
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file.write(bytes.data(), bytes.size());
  file.flush();
  ASSERT_TRUE(file.good()) << path;
}

struct Place {
  std::string path;
  uint64_t offset = 0;
};

class DamageFixture : public StoreFixture {
 protected:
  static constexpr uint64_t size = 64 * KiB;

  void SetUp() override
  {
    if (!is_tablestore())
      GTEST_SKIP() << "knows tablestore's files";
    StoreFixture::SetUp();
    ch = make_collection(pg(1));
  }
  void TearDown() override
  {
    ch.reset();
    StoreFixture::TearDown();
  }

  /// All below "/containers", "/table".
  std::vector<std::string> files_below(const std::string& folder)
  {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir + folder)) {
      if (entry.is_regular_file())
        files.push_back(entry.path().string());
    }
    return files;
  }
  /// Where those bytes are in files below a folder.
  Place find(const std::string& bytes, const std::string& folder = "/containers")
  {
    for (const auto& path : files_below(folder)) {
      const size_t at = slurp(path).find(bytes);
      if (at != std::string::npos)
        return {path, at};
    }
    ADD_FAILURE() << "the bytes are in no file of " << folder;
    return {};
  }
  /// Where byte `offset` of the object's content(seed) is.
  Place find_content(uint64_t seed, uint64_t offset)
  {
    Place place = find(content(seed, 512, offset / 4096 * 4096).to_str());
    place.offset += offset % 4096;
    return place;
  }
  void flip_bit(const Place& place)
  {
    std::ifstream in(place.path, std::ios::binary);
    in.seekg(place.offset);
    const char before = in.get();
    in.close();
    overwrite(place.path, place.offset, std::string(1, before ^ 0x10));
  }
  void close()
  {
    ch.reset();
    umount();
  }
  void open()
  {
    ASSERT_NO_FATAL_FAILURE(reopen());
    ch = store->open_collection(pg(1));
    ASSERT_TRUE(ch);
  }
  uint64_t counter(const std::string& name)
  {
    store->refresh_perf_counters();
    ceph::JSONFormatter f;
    store->dump_perf_counters(&f);
    std::ostringstream text;
    f.flush(text);
    const std::string json = text.str();
    const size_t at = json.find('"' + name + "\":");
    EXPECT_NE(std::string::npos, at) << name;
    return at == std::string::npos ? 0 : std::stoull(json.substr(at + name.size() + 3));
  }
  osd_alert_list_t alerts()
  {
    store_statfs_t space;
    osd_alert_list_t all;
    EXPECT_EQ(0, store->statfs(&space, &all));
    return all;
  }
  void expect_mount_refused()
  {
    const auto before = snapshot_of(dir);
    reopen(false);
    EXPECT_LT(store->mount(), 0);
    EXPECT_LT(store->mount_readonly(), 0);
    EXPECT_LT(store->fsck(false), 0);
    EXPECT_EQ(before, snapshot_of(dir));
  }
  void damage_offline(const std::function<void()>& damage)
  {
    close();
    damage();
    open();
    expect_clean = false;
  }
  int fsck_offline(bool deep)
  {
    close();
    const int errors = store->fsck(deep);
    open();
    return errors;
  }
  int read_error(const ghobject_t& oid, uint64_t offset = 0, uint64_t length = 0,
                 uint32_t op_flags = 0)
  {
    bufferlist bl;
    const int r = store->read(ch, oid, offset, length, bl, op_flags);
    if (r < 0) {
      EXPECT_EQ(0u, bl.length());
    }
    return r;
  }

  Handle ch;
  const ghobject_t victim = object("victim", 1, 0x11);
  const ghobject_t other = object("other", 1, 0x12);
};

}  // namespace tablestore_test
