// Whole stores on a simulated disk, what damages them, and what may come of that.
#pragma once

#include <string>
#include <vector>

#include "os/tablestore/engine/log/log_reader.h"
#include "test/tablestore/fuzz/input.h"
#include "test/tablestore/sim/machine.h"

namespace tablestore::fuzz {

// A store as a crash left it, and what it held after each transaction.
struct DamagedStore {
  sim::DiskImage image;
  std::vector<sim::State> states;  // by the number of the last transaction
  uint64_t in_table = 0;           // the last transaction that needs no log
  LogPosition log_start;           // where recovery begins to read
  uint64_t lsn() const { return states.size() - 1; }
};

// Kinds of stores: one with nothing in its table's files; one with checkpoints behind it; one in
// the second lap of its log.
inline constexpr unsigned store_kinds = 3;
const DamagedStore& store_to_damage(unsigned kind);

// One change of one file. An input is a series of these.
struct Edit {
  enum class Kind : uint8_t {
    flip,      // bits of a byte
    number,    // four bytes
    zeros,     // a sector
    noise,     // a sector
    copy,      // a block of another place of the file
    truncate,
    remove,
    extend,
    mend,      // all checksums of label and log are made right again, after the other changes
  };
  static constexpr unsigned kinds = 9;
  uint8_t kind = 0;
  uint8_t file = 0;
  uint32_t offset = 0;
  uint32_t argument = 0;

  static Edit take(Input& in);
  void append_to(Output& out) const;
};

// What was touched.
struct Damage {
  bool label = false;
  bool log = false;
  bool table = false;
  bool containers = false;
  bool mended = false;
  sim::DamagedBlocks blocks;  // of containers
  std::set<uint32_t> removed;  // containers
};

// Applies the edits to a copy of the store's files.
Damage damage(const DamagedStore& store, const std::vector<Edit>& edits, sim::DiskImage* image);

// Opens what is left, reads everything, and closes it. Returns what came of it: "refused: ...",
// "unreadable: ...", "right". Aborts where the store shows anything that it never held, or, where
// the log is whole, less than it held.
std::string check_damaged(const DamagedStore& store, const Damage& damage, sim::DiskImage image);

}  // namespace tablestore::fuzz
