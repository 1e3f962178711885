// A directory of the real file system for one test: $TABLESTORE_TEST_DIR or gtest's own place.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tablestore {

class TestDirectory {
 public:
  explicit TestDirectory(const std::string& below = base()) : path_(below + "/tablestore.XXXXXX") {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr) << path_;
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  const std::string& path() const { return path_; }

  static std::string base() {
    const char* chosen = std::getenv("TABLESTORE_TEST_DIR");
    return chosen ? chosen : testing::TempDir();
  }

 private:
  std::string path_;
};

}  // namespace tablestore
