// The merge operator of Family::super: rows of little-endian int64 counters, added up.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace rocksdb {
class MergeOperator;
}

namespace tablestore {

// Adds `operand` to `sum`, both rows of counters. False, with nothing changed, where one is none.
bool add_counters(std::string* sum, std::string_view operand);

// Rows of different lengths add up to the longer one; missing counters are zero. An operand that is
// no array of int64 makes the read of that row fail as corrupt.
std::shared_ptr<rocksdb::MergeOperator> make_counter_merge();

}  // namespace tablestore
