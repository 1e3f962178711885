// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <memory>

#include "kv/KeyValueDB.h"
#include "os/tablestore/TableStore.h"

/// The rows of a store that no OSD uses, as ceph-kvstore-tool sees a database: the families are
/// prefixes, S (the store's own), O (objects), D (inline data) and m (omap). What the log has
/// beyond the table is there. Whoever changes rows has to know what they mean; those of the engine
/// itself, of which the keys begin with a zero byte, nobody changes: -EPERM, and ranges and whole
/// prefixes leave them out.
///
/// Not thread-safe. Nothing goes backwards (-EOPNOTSUPP).
class TableStoreKV : public KeyValueDB {
 public:
  TableStoreKV(CephContext* cct, const std::string& path) : store(cct, path) {}
  ~TableStoreKV() override { close(); }

  int init(std::string) override { return 0; }
  int open(std::ostream& out, const std::string& families = "") override;
  int open_read_only(std::ostream& out, const std::string& families = "") override;
  int create_and_open(std::ostream&, const std::string&) override { return -EOPNOTSUPP; }
  void close() override;
  /// What mends a table is fsck's repair.
  int repair(std::ostream&) override { return -EOPNOTSUPP; }
  Transaction get_transaction() override;
  /// Durable when it returns.
  int submit_transaction(Transaction t) override;
  using KeyValueDB::get;
  int get(const std::string& prefix, const std::set<std::string>& keys,
          std::map<std::string, ceph::buffer::list>* out) override;
  WholeSpaceIterator get_wholespace_iterator(IteratorOpts = 0) override;
  uint64_t get_estimated_size(std::map<std::string, uint64_t>& extra) override;
  void compact() override;
  void compact_prefix(const std::string&) override { compact(); }
  void compact_range(const std::string&, const std::string&, const std::string&) override
  {
    compact();
  }
  void get_statistics(ceph::Formatter* f) override { store.get_db_statistics(f); }

 private:
  class Changes;
  class Rows;

  TableStore store;
  bool is_open = false;
  bool is_read_only = false;
};
