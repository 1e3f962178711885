// The engine's counters: exact, monotonic unless said, cheap to read at any time from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "os/tablestore/engine/format/extent.h"

namespace tablestore {

struct Counters {
  using Count = std::atomic<uint64_t>;
  // commit lane
  Count groups{0};              // log groups made durable
  Count transactions{0};        // transactions made durable
  Count flushes{0};             // flushes on the commit path, log and containers together
  Count container_flushes{0};   // of these, flushes for a first touch of an unwritten extent
  Count log_bytes{0};           // written to the log, padding included
  Count log_padding_bytes{0};
  Count log_saved_bytes{0};     // that groups would be larger if none was compressed
  Count row_bytes{0};           // rows in the log, without framing
  Count data_bytes{0};          // written to containers by transactions
  Count data_writes{0};         // write requests to containers
  Count group_ns{0};            // sum over groups: from taking the group to durable
  Count queued_ns{0};           // sum over transactions: from submit() to taking the group
  Count log_ns{0};              // sum over groups: from taking it to its record being written
  Count data_ns{0};             // sum over groups: how long each then waited for its data
  Count flush_ns{0};            // sum over flushes
  Count apply_ns{0};            // sum over groups: table write
  Count groups_here{0};         // made durable by the thread that submitted them
  Count gathers{0};             // times that a group waited a moment for more transactions
  Count gathers_in_vain{0};     // and not as many came as were expected
  Count applied_batches{0};     // of the rows of some groups each
  Count rows_left_out{0};       // of these batches: a later row of the batch replaced them
  Count passed_ranges{0};       // compacted because readers passed erased rows there
  Count listed_ranges{0};       // that were erased row by row
  Count listed_rows{0};         // of these, those that the table had
  Count range_deletions{0};     // ranges of all other rows than super's that stayed one
  Count vouching_groups{0};     // empty ones of an idle lane, with a flush of their own each; they
                                // are not among `groups` and `flushes`
  Count log_full_waits{0};      // times that the lane waited for a checkpoint
  // reads
  Count reads{0};
  Count read_bytes{0};
  Count reads_in_flight_hits{0};  // answered from a write that had not completed
  // background
  Count checkpoints{0};
  Count checkpoint_ns{0};
  Count checkpoint_takes{0};    // times that one had the commit lane
  Count checkpoint_chunks{0};   // of the allocation map, that they have copied meanwhile
  Count checkpoint_take_chunks_max{0};  // the most in one such time; no sum
  Count prepared_bytes{0};      // zeros written ahead of use
  Count punched_bytes{0};
  Count containers_created{0};
  Count containers_removed{0};
  Count containers_reclassed{0};  // given to another class
  Count first_touch_bytes{0};   // data written to extents that were not prepared
  // the last open
  Count recovery_ns{0};
  Count recovered_groups{0};
  Count recovered_transactions{0};
  Count recovered_groups_read_again{0};  // of which the rows had not been kept in memory
};

// Every counter by name, in the order above.
inline constexpr std::pair<const char*, Counters::Count Counters::*> counter_names[] = {
    {"groups", &Counters::groups},
    {"transactions", &Counters::transactions},
    {"flushes", &Counters::flushes},
    {"container_flushes", &Counters::container_flushes},
    {"log_bytes", &Counters::log_bytes},
    {"log_padding_bytes", &Counters::log_padding_bytes},
    {"log_saved_bytes", &Counters::log_saved_bytes},
    {"row_bytes", &Counters::row_bytes},
    {"data_bytes", &Counters::data_bytes},
    {"data_writes", &Counters::data_writes},
    {"group_ns", &Counters::group_ns},
    {"queued_ns", &Counters::queued_ns},
    {"log_ns", &Counters::log_ns},
    {"data_ns", &Counters::data_ns},
    {"flush_ns", &Counters::flush_ns},
    {"apply_ns", &Counters::apply_ns},
    {"groups_here", &Counters::groups_here},
    {"gathers", &Counters::gathers},
    {"gathers_in_vain", &Counters::gathers_in_vain},
    {"applied_batches", &Counters::applied_batches},
    {"rows_left_out", &Counters::rows_left_out},
    {"passed_ranges", &Counters::passed_ranges},
    {"listed_ranges", &Counters::listed_ranges},
    {"listed_rows", &Counters::listed_rows},
    {"range_deletions", &Counters::range_deletions},
    {"vouching_groups", &Counters::vouching_groups},
    {"log_full_waits", &Counters::log_full_waits},
    {"reads", &Counters::reads},
    {"read_bytes", &Counters::read_bytes},
    {"reads_in_flight_hits", &Counters::reads_in_flight_hits},
    {"checkpoints", &Counters::checkpoints},
    {"checkpoint_ns", &Counters::checkpoint_ns},
    {"checkpoint_takes", &Counters::checkpoint_takes},
    {"checkpoint_chunks", &Counters::checkpoint_chunks},
    {"checkpoint_take_chunks_max", &Counters::checkpoint_take_chunks_max},
    {"prepared_bytes", &Counters::prepared_bytes},
    {"punched_bytes", &Counters::punched_bytes},
    {"containers_created", &Counters::containers_created},
    {"containers_removed", &Counters::containers_removed},
    {"containers_reclassed", &Counters::containers_reclassed},
    {"first_touch_bytes", &Counters::first_touch_bytes},
    {"recovery_ns", &Counters::recovery_ns},
    {"recovered_groups", &Counters::recovered_groups},
    {"recovered_transactions", &Counters::recovered_transactions},
    {"recovered_groups_read_again", &Counters::recovered_groups_read_again},
};

}  // namespace tablestore
