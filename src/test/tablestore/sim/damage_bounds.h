// What damage may cost, and nothing else: the bounds of a recovery from a damaged disk.
//
// Which blocks are damaged is known (DiskImage), and what lay in each is read from the same disk
// without the damage. By where a block lies:
//
//   label        One of its two copies: nothing. Both: the store is refused.
//   container    Reads of this block, which may fail; or, where it can be read, give other bytes
//                (the engine checks nothing, its caller does). Where no later group vouches for the
//                group that wrote it: this group and those after it; where the block cannot be read
//                and the group was acknowledged, the store may be refused instead.
//   log          Of a group that recovery starts from: that group and those after it, where they
//                were all unacknowledged. Where one was acknowledged the store may be refused, and
//                must be where a later group is a witness, or the table, which has it. A witness
//                says what was durable, not what was acknowledged: where nobody was told of it, the
//                store may be refused as well. A group without transactions, where the one behind
//                it is intact, and anywhere else in the log: nothing.
//   table        CURRENT, IDENTITY, the MANIFEST that CURRENT names: the store may be refused. A
//                file of rows: reads of its rows fail, all others are as they were, and so is
//                writing. Where it is one of those rows of the engine that follow from nothing
//                else, and its copy, the store may be refused: log_start, applied, or whether
//                ownership is known. Any other row, of whatever family, is no reason.
//
// A disk whose flushes lied has lost what was acknowledged, without a trace: what is left is judged
// as some state that was there in this life, or a refusal. Of the table's files that were lost so,
// in part or with their names, reads fail. Blocks that were freed later may be
// others' by now, and hold what those wrote; of earlier lives nothing is said.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/tablestore/sim/model.h"
#include "test/tablestore/sim/stepped_threads.h"

namespace tablestore::sim {

// What recovery from a disk without damage would start from.
struct LiveLog {
  struct Group {
    uint64_t begin, end;       // positions
    uint64_t first_lsn;
    uint64_t last_lsn;         // before first_lsn where it has no transactions
    uint64_t watermark;
    DamagedBlocks written;     // in containers
  };
  uint64_t applied_lsn = 0;    // the table has what is up to here
  std::vector<Group> groups;   // a chain
  std::map<std::string, unsigned> table_files;  // of rows: their family
  std::string manifest;        // the one that the table's CURRENT names

  // The last transaction that is not judged by its data, if the log ends before group `end`.
  uint64_t vouched_lsn(size_t end) const;
  uint64_t vouched_lsn() const { return vouched_lsn(groups.size()); }
};
LiveLog read_live_log(const DiskImage& whole, const EngineOptions& options);
LiveLog read_live_log(const DiskImage& whole);  // of the engine's simulator (machine.cc)

struct Bounds {
  uint64_t least_lsn = 0;  // nothing up to it is missing
  std::string refusal;     // why the store may be refused; empty: it may not be
  bool has_way_out = true;  // of it: the loss of a part of the log can be accepted
  uint64_t accepted_lsn = 0;  // nothing up to it is missing where that is
  bool may_refuse() const { return !refusal.empty(); }
};
// Of a disk after a crash, before which `acknowledged_lsn` was the last to be acknowledged.
Bounds bounds_of(const DiskImage& left, uint64_t acknowledged_lsn, const EngineOptions& options);
Bounds bounds_of(const DiskImage& left, uint64_t acknowledged_lsn);  // the same
// The same, where the live log of the disk without its damage is known.
Bounds bounds_of(const DiskImage& left, uint64_t acknowledged_lsn, const EngineOptions& options,
                 LiveLog whole);

// A row of the table, or, with an end, all of [first, end).
struct RowRange {
  Family family;
  std::string first;
  std::string end;
};
// Whether these can be read on such a disk, whatever else is wrong with it.
bool can_read(const DiskImage& left, const EngineOptions& options, const RowRange& rows);

// What a running store may not be able to read now.
Damage damage_of(const DiskImage& image, rocksdb::DB* table);
// A file of the table is missing, and may be: a sync of a directory has lied.
bool lost_table_file(const DiskImage& image, const std::string& name);
// Damaged files of the table.
bool is_table_damaged(const DiskImage& image);

}  // namespace tablestore::sim
