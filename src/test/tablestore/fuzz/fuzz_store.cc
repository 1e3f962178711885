// A whole store, damaged in any of its files: it is refused, or says what cannot be read, or is
// right.
//
//   input = store:u8 {edit: kind:u8 file:u8 offset:u32 argument:u32}
#include "test/tablestore/fuzz/store_damage.h"

namespace tablestore::fuzz {
namespace {

constexpr size_t edits_max = 16;

void run(Input in) {
  const DamagedStore& store = store_to_damage(in.u8());
  std::vector<Edit> edits;
  while (!in.empty() && edits.size() < edits_max) edits.push_back(Edit::take(in));
  sim::DiskImage image;
  const Damage done = damage(store, edits, &image);
  check_damaged(store, done, std::move(image));
}

}  // namespace
}  // namespace tablestore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tablestore::fuzz::run({data, size});
  return 0;
}
