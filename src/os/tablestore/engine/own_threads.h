// How threads run in an OSD: each piece of work in a thread of its own.
#pragma once

#include "os/tablestore/engine/threads.h"

namespace tablestore {

// Holds nothing. Thread-safe.
class OwnThreads : public Threads {
 public:
  bool run_by_themselves() const override { return true; }
  std::unique_ptr<Worker> start(const std::string& name, Urgency urgency,
                                std::function<void()> run, std::function<bool()> step) override;
  void advance() override;
  std::unique_ptr<rocksdb::Env> table_env(std::shared_ptr<rocksdb::FileSystem> fs) override;
  void adjust_table(rocksdb::DBOptions*, rocksdb::ColumnFamilyOptions*) override {}
  void table_called(rocksdb::DB&, std::span<rocksdb::ColumnFamilyHandle* const>) override {}
};

}  // namespace tablestore
