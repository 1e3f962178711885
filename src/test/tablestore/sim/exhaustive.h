// All short histories of the engine.
//
// A history is one to three transactions, each one op of the thirteen (transaction_builder.h), on a
// fresh store, on one in the log's second lap, and on one whose containers mkfs has made. There is
// no split of a collection among the ops: the engine has rows and blocks, and no collections. That
// is for the simulator of the store above (src/test/objectstore/tablestore/sim).
#pragma once

#include "test/tablestore/sim/frame/exhaustive.h"

namespace tablestore::sim {

ExhaustiveResult run_exhaustive(const ExhaustiveOptions& options, const ExhaustiveLog& log);

}  // namespace tablestore::sim
