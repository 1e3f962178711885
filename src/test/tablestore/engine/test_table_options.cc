// What an operator may choose of RocksDB's options, and what not.
#include <filesystem>
#include <fstream>
#include <string>

#include "test/tablestore/engine/engine_fixture.h"

namespace tablestore {
namespace {

class TableOptionsTest : public EngineFixture {
 protected:
  // As RocksDB notes them in the file that it writes last.
  std::string noted(const std::string& option) {
    std::filesystem::path last;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/table"))
      if (entry.path().filename().string().starts_with("OPTIONS-") && entry.path() > last)
        last = entry.path();
    std::ifstream file(last);
    for (std::string line; std::getline(file, line);)
      if (const auto at = line.find(option + "="); at != std::string::npos)
        return line.substr(at + option.size() + 1);
    return "";
  }
};

TEST_F(TableOptionsTest, WhatTheStoreRestsOnIsNotForChoice) {
  options.table_options =
      "atomic_flush=false;max_background_jobs=16;max_background_flushes=4;"
      "max_background_compactions=4;level0_stop_writes_trigger=77";
  format();
  open();
  EXPECT_EQ(noted("level0_stop_writes_trigger"), "77");
  EXPECT_EQ(noted("atomic_flush"), "true");
  EXPECT_EQ(noted("max_background_jobs"), "2");
  EXPECT_EQ(noted("max_background_flushes"), "-1");
  EXPECT_EQ(noted("max_background_compactions"), "-1");
}

}  // namespace
}  // namespace tablestore
