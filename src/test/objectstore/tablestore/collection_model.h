// -*- mode:C++; tab-width:8; c-basic-offset:2; indent-tabs-mode:nil -*-
// vim: ts=8 sw=2 sts=2 expandtab
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "test/objectstore/tablestore/store_fixture.h"

namespace tablestore_test {

/// What a collection has to hold after each of a sequence of random transactions. The sequence
/// follows from the seed alone, so that one process can make it and another one knows what came of
/// it.
///
/// Every transaction writes its number to an object of its own: from what is in a store follows
/// how many of them are.
class CollectionModel {
 public:
  CollectionModel(const coll_t& cid, int64_t pool, uint64_t seed, uint64_t size_max);

  /// The next transaction. From here on the model is as the store has to be after it.
  Transaction next();
  /// How many there were.
  uint64_t done() const { return count; }
  /// Makes and drops transactions until there were `n`.
  void skip_to(uint64_t n);

  /// How many transactions of such a sequence a store has seen.
  static uint64_t done_in(ObjectStore& store, Handle& ch, int64_t pool);
  /// Compares everything: data, attributes, omap, listing.
  void expect_equal(ObjectStore& store, Handle& ch) const;

 private:
  struct Object {
    std::string data;
    std::map<std::string, std::string> attrs;
    std::map<std::string, std::string> omap;
    std::string header;
  };

  static ghobject_t counter_oid(int64_t pool);
  ghobject_t oid(int i) const;
  uint64_t below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random); }
  uint64_t random_offset(uint64_t end);
  uint64_t random_length(uint64_t max);

  void add_operation(Transaction& t);
  void add_data_operation(Transaction& t, int i);
  void add_metadata_operation(Transaction& t, int i);
  void add_operation_of_two(Transaction& t, int from, int to);
  void write(int i, uint64_t offset, const std::string& bytes);
  void expect_equal(ObjectStore& store, Handle& ch, int i) const;

  const coll_t cid;
  const int64_t pool;
  const uint64_t seed;
  const uint64_t size_max;
  std::mt19937_64 random;
  uint64_t count = 0;
  std::map<int, Object> objects;
};

}  // namespace tablestore_test
