// Gets what can be read out of damaged files of the table, and lets go of the rest.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "os/tablestore/engine/container/allocator.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/table/table.h"

namespace tablestore {

struct SalvageParts {
  Table& table;
  Allocator& allocator;
  std::function<Status()> checkpoint;
  std::function<void(std::shared_ptr<Txn>)> commit;  // returns when it was applied
  SalvageFound found;
};

// What it does, in order:
//   1 finds all damage: reads every file, and tells `found`
//   2 writes the engine's own rows anew, from memory
//   3 erases each row that get() cannot tell any more (its newest version, or what had erased it,
//     may have been in the damage), so that step 5 brings no older version to light
//   4 makes that durable in the table
//   5 looks whether more has become unreadable since step 1, of these files or of others that
//     somebody has met: EIO, and the next salvage has that, too
//     writes the damaged files anew without what cannot be read
//   6 reads the rows that were there after step 3 again. EIO where one is another now: more has
//     become unreadable since, of which nobody knows what it was
// A crash leaves the damage where it was, or some of the files repaired: until step 5 no file has
// changed, and each file's end is one change of the MANIFEST. A row that step 3 has erased was not
// readable before.
Result<std::vector<DamagedTableFile>> salvage(
    const SalvageParts& parts,
    const std::function<void(Family family, std::string_view key)>& lost);

}  // namespace tablestore
