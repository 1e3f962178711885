// Which blocks of a disk short histories damage, one at a time.
//
//   label        both copies
//   log          of each group that recovery starts from, and the two blocks behind the last one,
//                which are free: where the next group would begin, and what is looked at for proof
//   containers   whatever is not zeros, also what nobody owns
//   table        each file
//
// Of many blocks in a row, as of a large group, the first, the last and one between: what is said
// of one is said of all.
#pragma once

#include <vector>

#include "test/tablestore/sim/damage_bounds.h"
#include "test/tablestore/sim/frame/block_damage.h"

namespace tablestore::sim {

// Of a disk at rest, without damage, whose live log that is. `older`: as it was before the history.
// Unless `all` are wanted, only of what the history has written, and of the group before, which it
// may vouch for.
std::vector<BlockDamage> damages_of(const DiskImage& older, const DiskImage& disk,
                                    const LiveLog& log, const EngineOptions& options, bool all);

}  // namespace tablestore::sim
