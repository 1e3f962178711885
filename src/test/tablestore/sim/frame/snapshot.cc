#include "test/tablestore/sim/frame/snapshot.h"

namespace tablestore::sim {

const char* moment_name(Moment moment) {
  static constexpr const char* names[moments] = {
      "recovering", "checkpointing", "flushing the table", "compacting", "preparing",
      "growing",    "punching",      "removing containers",
      "giving containers another class", "at wrap", "at full disk"};
  return names[unsigned(moment)];
}

}  // namespace tablestore::sim
