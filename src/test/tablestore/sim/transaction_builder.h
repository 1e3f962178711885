// Operations on objects and rows, made into a transaction of the engine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "os/tablestore/engine/engine.h"
#include "test/tablestore/sim/model.h"

namespace tablestore::sim {

// What a transaction can do; the set of which all short histories are made.
enum class Op : uint8_t {
  put_rows,     // small rows in three families
  erase_rows,   // one row, and a range
  count,        // adds to a row of counters
  write_small,  // one block, a new object or in place of the old content
  write_large,  // more than is waited for in a group
  write_medium, // several slots
  overwrite,    // the middle of an object: new blocks, the old ones are freed, parts of slots
  append,
  truncate,     // frees the tail, part of a slot
  remove,
  clone,        // another object with the same blocks
  rename,
  big_rows,     // fills the log
};
inline constexpr unsigned op_kinds = 13;
const char* op_name(Op op);

struct OpOnObject {
  Op op;
  uint32_t object;  // which
  uint32_t n;       // how much
};

// By container and block: how many objects refer to it. Of a running transaction: how many more
// or fewer.
using References = std::map<std::pair<uint32_t, uint32_t>, int>;

// Makes one transaction, on top of `latest`, the state after everything submitted before.
class TransactionBuilder {
 public:
  // What transactions are made on. The names of its objects and rows begin with `prefix`, so that
  // several threads can each have their own part of one store; only the row of counters is common.
  struct Ground {
    Engine& engine;
    const State& latest;
    const References& references;  // of `latest`
    uint64_t& next_content;        // the seed of what the next write writes
    std::string prefix;
  };

  // `change` becomes what `txn` means.
  TransactionBuilder(Ground ground, Txn& txn, Change& change)
      : ground_(std::move(ground)), txn_(txn), change_(change) {}

  // Objects with an even number share their blocks only with such, and odd ones with odd ones.
  // ENOSPC makes an op do nothing.
  void run(const OpOnObject& o);
  void put(Family family, const std::string& key, const std::string& value);
  // What the transaction adds to those of the ground.
  const References& references() const { return references_; }

 private:
  void erase(Family family, const std::string& key);
  void rows(const OpOnObject& o);
  const Blocks* find(const std::string& name) const;
  // New blocks on the disk; none where there is no space.
  std::optional<Blocks> write(uint32_t blocks);
  // The object becomes `blocks`; what is referred to no more is freed.
  void set(const std::string& name, std::optional<Blocks> blocks);
  void write_into(const std::string& name, uint32_t at, uint32_t blocks);

  const Ground ground_;
  Txn& txn_;
  Change& change_;
  References references_;
};

// Adds what a transaction has added; what is not referred to any more goes.
void add_references(References* references, const References& more);
// Those of all objects of a state.
References references_of(const State& state);

}  // namespace tablestore::sim
