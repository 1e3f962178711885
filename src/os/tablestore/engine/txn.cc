#include "os/tablestore/engine/commit/data_write.h"
#include "os/tablestore/engine/engine.h"
#include "os/tablestore/engine/require.h"
#include "os/tablestore/engine/table/rows.h"

namespace tablestore {

namespace {
// Of what an OSD writes with an object.
constexpr size_t usual_row_bytes = 1000;
}  // namespace

Txn::Txn() { rows_.reserve(usual_row_bytes); }
Txn::~Txn() { require(writes_in_flight_ == 0, "a transaction outlives its writes"); }

void Txn::put(Family family, std::string_view key, std::string_view value) {
  RowWriter(rows_).put(family, key, value);
  ++row_count_;
}

void Txn::erase(Family family, std::string_view key) {
  RowWriter(rows_).erase(family, key);
  ++row_count_;
}

void Txn::erase_range(Family family, std::string_view begin, std::string_view end) {
  require(begin < end, "a range that is erased is not empty");
  RowWriter(rows_).erase_range(family, begin, end);
  ++row_count_;
}

void Txn::add(std::string_view key, std::span<const int64_t> deltas) {
  RowWriter(rows_).merge(Family::super, key,
                         {reinterpret_cast<const char*>(deltas.data()), deltas.size_bytes()});
  ++row_count_;
}

void Txn::free(const Extent& extent) {
  require(extent.blocks > 0, "an extent that is freed has blocks");
  frees_.push_back(extent);
}

size_t Txn::row_bytes() const { return rows_.size(); }

}  // namespace tablestore
