#!/usr/bin/env python3
"""Do the tests find bugs? Breaks the engine on purpose, one way at a time.

    python3 src/test/tablestore/sim/mutants.py [--seed N] [--cuts N] [--powercut] [NAME ...]

Each mutant is a change of the engine's source that a tired programmer could make. It is compiled
in place of the file that it changes, linked with its judge, and must make that fail. Its judge is
the simulator, whose disk fails, fills up and decays; or some of the engine's own tests, below the
seam to the disk and where few histories come by; or a fuzz target, with its committed inputs and
random changes of these; or, with --powercut, the program that cuts the power below real file
systems. "identity" and its like change nothing, and no judge may find them: what a mutant is found
by is the mutation. A judge that does not come to an end has found nothing: such a mutant is
unknown, and unknown is not passed. Runs inside the environment, where these programs have been
built (BUILD, the first line below); ends with a line of counts in the format of the other suites:
every mutant is a test.
"""
import argparse
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
ENGINE = ROOT / "src/os/tablestore/engine"
BUILD = Path("/unit/plain")
CEPH = Path("/ceph")
HISTORIES = 400  # random ones, at the most, so that a busy machine does not matter
TIMEOUT = 1500  # seconds of a judge: many times what it takes
DAMAGE = ["--faults", "errors,full,damage"]
SIMULATOR, POWERCUT, UNIT = "tablestore_sim", "tablestore_powercut", "tablestore_engine_test"
TESTS = ROOT / "src/test/tablestore"
FUZZ = TESTS / "fuzz"
FUZZ_RUNS = 20000
SOURCES = {  # of each program, beside libraries
    SIMULATOR: [TESTS / "sim/main.cc"],
    POWERCUT: [p for p in sorted((TESTS / "powercut").glob("*.cc"))
               if not p.name.startswith("test_")],
    UNIT: [*sorted((TESTS / "engine").glob("*.cc")), TESTS / "sim/stepped_threads.cc"],
}


@dataclass(frozen=True)
class Edit:
    path: str
    before: str
    after: str


@dataclass(frozen=True)
class Mutant:
    name: str
    what: str
    edits: tuple[Edit, ...]
    # What judges it: a filter of the engine's own tests, or a fuzz target; empty: the simulator.
    tests: str = ""

    @property
    def fuzz_target(self) -> str:
        return self.tests if self.tests.startswith("fuzz_") else ""


def mutant(name: str, what: str, *edits: tuple[str, str, str], tests: str = "") -> Mutant:
    return Mutant(name, what, tuple(Edit(*edit) for edit in edits), tests)


LANE = "commit/commit_lane.cc"
GROUP = "commit/commit_group.cc"

MUTANTS = (
    mutant("skip_flush", "a group is acknowledged without a flush",
           (GROUP, "  if (!others_are_covered) flush(*any_other);\n", "")),
    mutant("flush_too_early", "the flush is issued before log and data are written",
           (LANE, "  write_group(*lane, group);\n"
                  "  parts_.threads.hand_over();\n"
                  "  flush_group(*lane);\n",
            "  flush_group(*lane);\n  write_group(*lane, group);\n")),
    mutant("forget_first_touch", "no flush of a container for a first touch",
           (GROUP, "add(w->op.file, w->first_touch);", "add(w->op.file, false);")),
    mutant("written_data_not_flushed",
           "no flush for a group with data, where all of it goes to what was written before",
           (GROUP, "  bool others_are_covered = !any_other;\n",
            "  bool others_are_covered = !any_other;\n"
            "  for (const auto& txn : turn.group)\n"
            "    others_are_covered |= by_themselves.empty() && !txn->writes_.empty();\n")),
    mutant("reuse_unvouched", "freed slots are reused before a durable group vouches for them",
           (GROUP, "  release_frees(turn, turn.header.watermark);\n"
                   "  if (!frees.extents.empty()) "
                   "turn.pending_frees.push_back(std::move(frees));\n",
            "  if (!frees.extents.empty()) turn.pending_frees.push_back(std::move(frees));\n"
            "  release_frees(turn, turn.durable_lsn + 1);\n")),
    mutant("reuse_vouched_once", "freed slots are reused when one group vouches for them",
           (GROUP, "PendingFrees frees{turn.head.next_lsn + turn.group.size(), {}};",
            "PendingFrees frees{turn.head.next_lsn + turn.group.size() - 1, {}};"),
           tests="VouchingTest.WhatTwoGroups*"),
    mutant("one_group_begins_an_epoch", "one group says after a recovery what was durable",
           ("recovery.cc", "  if (auto s = append_empty_group(log->head.empty_group("
            "parts_.store_uuid), log); !s.ok()) return s;\n", ""),
           tests="ReusedSpaceTest.*"),
    mutant("misplaced_is_no_witness", "a group that lies elsewhere says nothing",
           ("log/log_reader.cc", "  const auto header = parse_header(block, uuid_);\n",
            "  const auto header = parse_header(block, uuid_, position);\n"),
           tests="MisplacedGroupTest.*"),
    mutant("misplaced_at_the_start", "nor does one that ends behind the log's beginning",
           ("log/log_reader.cc", "      header->total_bytes() > ring_.capacity_bytes())\n",
            "      !fits_the_lap(*header, position))\n"),
           tests="MisplacedGroupTest.*"),
    mutant("witness_is_read_once", "nor does one whose read fails for a moment",
           ("log/log_reader.cc",
            "read_repeatedly([&] { return read_group(*header, position, block, &group); });\n",
            "read_group(*header, position, block, &group);\n"),
           ("log/log_reader.cc", "read_repeatedly([&] { return ring_.read(p + at, block); });\n",
            "ring_.read(p + at, block);\n"),
           tests="MisplacedGroupTest.*"),
    mutant("reuse_at_once", "freed slots are reused before their transaction is durable",
           (GROUP, "std::span<const std::byte> CommitLane::build_group(Turn& turn) {\n",
            "std::span<const std::byte> CommitLane::build_group(Turn& turn) {\n"
            "  for (const auto& txn : turn.group)\n"
            "    for (const Extent& e : txn->frees_) {\n"
            "      parts_.containers.allocator().mark_freed(e);\n"
            "      parts_.containers.allocator().give_back(e);\n"
            "    }\n"),
           (GROUP, "  for (const Extent& e : txn.frees_) {\n"
                   "    allocator.mark_freed(e);\n",
            "  for (const Extent& e : std::vector<Extent>()) {\n")),
    mutant("vouching_not_flushed", "a group that only vouches is believed before it is durable",
           (GROUP, "  flush(parts_.log.file(turn.header.position));\n  {\n", "  {\n")),
    mutant("ignore_watermark", "recovery judges every group by its data",
           ("recovery.cc",
            "    watermark_ = std::max(watermark_, (*group)->header.watermark);\n", "")),
    mutant("watermark_too_high", "a group vouches for itself",
           (GROUP, "turn.header.watermark = turn.durable_lsn;",
            "turn.header.watermark = turn.head.next_lsn + turn.group.size() - 1;")),
    mutant("verify_nothing", "recovery believes every group whose header is intact",
           ("recovery.cc", "      if (auto s = check_data(groups_[i]); !s.ok()) {",
            "      if (Status s; !s.ok()) {")),
    mutant("verify_first_write", "recovery verifies the first write of a record only",
           ("recovery.cc", "    for (const LoggedWrite& w : record.writes)\n"
                           "      if (auto s = check_data(w); !s.ok()) return s;\n",
            "    if (!record.writes.empty())\n"
            "      if (auto s = check_data(record.writes[0]); !s.ok()) return s;\n")),
    mutant("one_group_late", "recovery stops one group late",
           ("recovery.cc", "groups_.resize(i);", "groups_.resize(i + 1);")),
    mutant("one_group_early", "recovery leaves out the last group",
           ("recovery.cc", "  end_ = start_;\n  for (size_t i = 0;",
            "  if (!groups_.empty() && groups_.back().header.transactions > 0 &&\n"
            "      groups_.back().header.last_lsn() > applied_lsn_) groups_.pop_back();\n"
            "  end_ = start_;\n  for (size_t i = 0;")),
    mutant("older_row_kept", "of two rows of one key the older one goes to the table",
           ("table/row_combiner.cc",
            "      item->kept = false;\n      ++counters.rows_left_out;\n    } else if",
            "      later->kept = false;\n      later = &*item;\n    } else if")),
    mutant("row_before_range", "rows are sorted across the erasure of a range",
           ("table/row_combiner.cc", "      begin = at + 1;\n", "      begin = kept_.begin();\n")),
    mutant("range_after_its_rows", "a range that is listed misses the rows of its own batch",
           ("table/row_combiner.cc", ".end_of(item->row.key)) erase(*item);",
            ".end_of(item->row.key)) {}")),
    mutant("listed_twice", "rows of a listed range are erased although a batch has them anew",
           ("table/row_combiner.cc", "    if (*find(row)) continue;\n", ""),
           tests="ListedRanges.*"),
    mutant("range_forgotten", "a range that cannot be listed is not erased at all",
           ("table/row_combiner.cc",
            "    ++counters.range_deletions;\n    return false;\n",
            "    ++counters.range_deletions;\n    return true;\n")),
    mutant("half_listed", "of a range with many rows the first ones are erased",
           ("table/table.cc",
            "  if (row->status().ok() && erasures->count < delete_range_threshold_) return true;\n",
            "  if (row->status().ok()) return true;\n")),
    mutant("unreadable_rows_stay", "of a range that cannot be read, what can be is erased",
           ("table/table.cc", "  if (row->status().ok() && erasures->count <",
            "  if (erasures->count <"),
           tests="RangeDeletionTest.*"),
    mutant("no_epoch", "recovery does not begin a new epoch",
           ("recovery.cc", "  if (auto s = begin_epoch(&log); !s.ok()) return s;\n", "")),
    mutant("epoch_not_flushed", "the beginning of an epoch is not flushed",
           ("recovery.cc", "  if (auto s = parts_.log.file(position).flush(); !s.ok()) return s;\n",
            "")),
    mutant("any_group", "the reader takes any intact group, of whatever lap and epoch",
           ("log/log_reader.cc",
            "  return epoch_fits && h.previous_crc == at_.previous_crc && "
            "h.first_lsn == at_.next_lsn;", "  return (void)epoch_fits, true;"),
           ("format/log_group.cc", " || header->position != position)", ")"),
           ("format/log_group.cc", "uint64_t position) {", "uint64_t) {")),
    mutant("no_group_crc", "the checksum of a group is not looked at",
           ("log/log_reader.cc",
            "  if (!crc_matches(header, memory.span())) return false;\n", "")),
    mutant("apply_before_durable", "rows go to the table before they are durable",
           (LANE, "  wait_for_log_space(lane, group.size() + lane->saved_bytes);\n",
            "  {\n"
            "    RowBatch rows;\n"
            "    for (const auto& txn : lane->group) rows.append(txn->row_count_, txn->rows_);\n"
            "    std::string batch = rows.take();\n"
            "    (void)parts_.table.write(&batch).ok();\n"
            "  }\n"
            "  wait_for_log_space(lane, group.size() + lane->saved_bytes);\n")),
    mutant("recycle_without_flush", "a checkpoint recycles the log without flushing the table",
           ("commit/checkpointer.cc", "    const Status flushed = table_.flush();\n",
            "    const Status flushed;\n")),
    mutant("checkpoint_waits_for_no_compaction",
           "a checkpoint gives up where a compaction has the last space",
           ("commit/checkpointer.cc", "without_room = 2", "without_room = 0"),
           tests="SpaceThatACompactionHas.*"),
    mutant("checkpoint_fails_with_a_compaction",
           "a checkpoint gives up where a compaction fails that has the last space",
           ("commit/checkpointer.cc", "without_room = 2", "without_room = 1"),
           tests="SpaceThatACompactionHas.*"),
    mutant("one_group_of_an_epoch_fits",
           "a start looks for space in the log for one group, and writes two",
           ("recovery.cc", "log.tail + 2 * block_bytes", "log.tail + block_bytes"),
           tests="EndWhenFullTest.StartsOverwriteNothing*"),
    mutant("checkpoint_without_allocation", "a checkpoint forgets the allocation rows",
           (LANE, "    if (piece->chunks.empty()) break;\n",
            "    if (piece->chunks.empty()) break;\n    continue;\n")),
    mutant("piece_as_of_the_beginning",
           "each piece of a checkpoint says that it is as of the first",
           (LANE, "write_allocation(writer, chunk, piece->at.next_lsn);",
            "write_allocation(writer, chunk, start->next_lsn);"), tests="CheckpointTest.*"),
    mutant("log_start_of_the_last_piece", "a checkpoint begins where its last piece was taken",
           (LANE, "    if (!start) start = piece->at;\n", "    start = piece->at;\n"),
           tests="CheckpointTest.*"),
    mutant("as_of_not_looked_at", "recovery replays over a chunk what it has already",
           ("recovery.cc", "row->as_of > start_.next_lsn ? row->as_of : 0", "0"),
           tests="CheckpointTest.*"),
    mutant("as_of_one_late", "recovery does not replay what a chunk lacks",
           ("container/allocator_recovery.cc", "lsn >= as_of->second", "lsn > as_of->second"),
           tests="CheckpointTest.*"),
    mutant("freed_chunk_forgotten", "a chunk in which only something was freed is not written",
           ("container/allocator.cc", "  note_changed(container, extent);\n", "")),
    mutant("rest_forgotten", "a checkpoint that was given up takes the rest with it",
           ("container/allocator_capture.cc", "  next_captured_ = {0, 0};\n", ""),
           tests="AllocatorRecoveryTest.*"),
    mutant("gone_chunk_forgotten", "of a container that is gone no chunk is written",
           ("container/allocator_capture.cc",
            "    const uint32_t chunk = changed.next_set(from);\n",
            "    const uint32_t chunk =\n"
            "        here == containers_.end() ? changed.blocks() : changed.next_set(from);\n"),
           tests="*AllocatorModel*"),
    mutant("gone_too_early", "rows go while the log may name their container",
           ("container/allocator_capture.cc", "it->second.captures >= captures_",
            "it->second.captures > captures_"), tests="*AllocatorModel*"),
    mutant("old_row_stays", "a row of the old format is not erased",
           ("table/engine_rows.cc",
            "  writer.erase(Family::super, whole_allocation(gone.container));\n",
            "  writer.erase(Family::super, whole_allocation(gone.container) + \"?\");\n"),
           tests="CheckpointTest.*"),
    mutant("old_row_not_replaced", "no checkpoint writes what a row of the old format said",
           ("container/allocator_recovery.cc", "    note_changed(c, {container, b, 1});\n",
            "    continue;\n"), tests="CheckpointTest.*"),
    mutant("format_not_claimed", "an old program could open a store with rows that it misreads",
           ("recovery.cc",
            "  if (auto s = with_room(parts_.claim_format); !s.ok()) return s;\n", ""),
           tests="CheckpointTest.*"),
    mutant("claimed_before_it_opens", "a store that does not open is not as it was",
           ("recovery.cc", "  if (auto s = load_checkpoint(); !s.ok()) return s;\n",
            "  if (auto s = parts_.claim_format(); !s.ok()) return s;\n"
            "  if (auto s = load_checkpoint(); !s.ok()) return s;\n"),
           tests="*StaysOld*"),
    mutant("capture_at_once", "a checkpoint takes all that has changed while it has the lane",
           (LANE, "allocator.take_changed(limits_.capture_chunks_max)",
            "allocator.take_changed(SIZE_MAX)"), tests="CheckpointTest.*"),
    mutant("replay_twice", "recovery replays what the table has already",
           ("recovery.cc", "if (group.header.transactions == 0 || "
                           "group.header.last_lsn() <= applied_lsn_) continue;\n"
                           "    if (group.header.first_lsn <= applied_lsn_)",
            "if (group.header.transactions == 0) continue;\n    if (false)")),
    mutant("rows_read_again_are_dropped", "rows that were read again go before their batch",
           ("recovery.cc", "    ++parts_.counters.recovered_groups_read_again;\n",
            "    ++parts_.counters.recovered_groups_read_again;\n    read_again_.clear();\n"),
           tests="ReplayMemoryTest.*"),
    mutant("rows_not_kept_in_bounds", "recovery keeps the rows of the whole log",
           ("recovery.cc", "kept_bytes_ + bytes > parts_.replay_bytes", "false"),
           tests="ReplayMemoryTest.*"),
    mutant("memtables_of_each_family", "each family of the table has a bound of its own",
           ("table/table.cc", "rocksdb::WriteBufferManager>(most_memtable_bytes(options))",
            "rocksdb::WriteBufferManager>(families * options.memtable_bytes)"),
           tests="MemoryTest.*"),
    mutant("memtables_stay_large", "what was taken to open a full store is kept",
           ("table/table.cc", "bound_memtables_.exchange(false)", "false"),
           tests="SpaceTest.AStoreOpensAlsoWithoutABallast"),
    mutant("readers_tell_nobody", "erased rows that readers pass stay",
           ("table/table.cc", "compact_on_passing_(options.compact_on_passing),",
            "compact_on_passing_(0),"),
           tests="CompactOnDeletionTest.*"),
    mutant("drop_allocation", "recovery forgets what the second record of a group wrote",
           ("recovery.cc",
            "    for (const LoggedWrite& w : record.writes) "
            "allocator.replay_owned(w.run, lsn);\n",
            "    if (&record == &group.records[0])\n"
            "      for (const LoggedWrite& w : record.writes) "
            "allocator.replay_owned(w.run, lsn);\n")),
    mutant("drop_frees", "recovery forgets frees",
           ("recovery.cc",
            "    for (const Extent& e : record.frees) allocator.replay_freed(e, lsn);\n", "")),
    mutant("flush_not_atomic", "the table's families are flushed one by one",
           ("table/table.cc", "  o.atomic_flush = true;\n", ""),
           ("table/table.cc", "    all.atomic_flush = true;", "   ")),
    mutant("moved_while_parked", "a file that is opened again is taken for one that nobody moved",
           ("io/posix_file.cc", "    may_have_moved_ = disk_->in_place;\n", ""),
           tests="OpenFilesTest.*"),
    mutant("many_jobs", "an operator chooses how many background jobs RocksDB has",
           ("table/table.cc",
            "    all.max_background_jobs = std::min(all.max_background_jobs, jobs_max);\n", ""),
           tests="TableOptionsTest.*"),
    mutant("prepare_without_flush", "zeros written ahead count as written before a flush",
           ("container/container_space.cc",
            "written.ok() ? files_.flush(file) : Status();", "Status();")),
    mutant("open_without_flush", "open believes that what reads as written is durably so",
           ("container/container_files.cc",
            "  if (s.ok()) s = flush_all(all);\n", "")),
    mutant("open_commits_the_journal_alone", "what was written over is left in the disk's cache",
           ("container/container_files.cc", "*at_once && !is_first && ", "*at_once && "),
           tests="ContainersTest.OpenFlushes*"),
    mutant("new_name_not_synced", "a new container is used before its name is durable",
           ("container/container_files.cc",
            "  if (Status s = sync_class(slot_class); !s.ok()) return s;\n"
            "  auto found = unwritten_blocks(file);\n",
            "  auto found = unwritten_blocks(file);\n")),
    mutant("reclassed_name_not_synced", "a renamed container is used before its name is durable",
           ("container/container_files.cc",
            "    Status s = sync_class(to_class);\n"
            "    if (s.ok()) s = sync_class(from_class);\n", "    Status s;\n")),
    mutant("reclassed_counts_as_written", "of a renamed container all blocks count as written",
           ("container/allocator_background.cc", "  BlockBitmap unwritten = take_out(old);\n",
            "  take_out(old);\n  BlockBitmap unwritten(old.blocks);\n")),
    mutant("punched_stays_written", "a punched block counts as written",
           ("container/container_state.cc",
            "  punched_.clear(first, count);\n  unwritten_.set(first, count);\n",
            "  punched_.clear(first, count);\n")),
    mutant("append_to_manifest", "changes of the table's files are appended to its MANIFEST",
           ("table/table.cc", "  o.max_manifest_file_size = 1;\n", "")),
    mutant("short_container", "a container that has not got all of its space is used",
           ("container/container_files.cc", "  if (size == container_bytes_) found",
            "  if (size > 0) found")),
    mutant("cut_container_is_empty",
           "a container that was cut, and of which no row can be read, is taken for empty",
           ("recovery.cc",
            "  for (const uint32_t container : parts_.containers.incomplete()) "
            "chunks[container] = all_chunks;\n", ""),
           tests="AllocationDamageTest.*"),
    mutant("unreadable_is_there", "recovery takes data that it cannot read for written",
           ("recovery.cc", "      return Status(checksum.status().code(), what",
            "      return Status();\n"
            "    if (!checksum.ok())\n"
            "      return Status(checksum.status().code(), what")),
    mutant("unreadable_once_is_not_there",
           "recovery takes data for not written that it could not read at once",
           ("recovery.cc", "  return read_repeatedly([&] {\n",
            "  const auto read_once = [](auto read) { return read(); };\n"
            "  return read_once([&] {\n")),
    mutant("unreadable_free_log_is_damage",
           "recovery takes log space that it cannot read for proof that something was there",
           ("log/log_reader.cc",
            "        found.unreadable.push_back(p + at);\n",
            "        found.durable_lsn = end.next_lsn;\n")),
    mutant("unreadable_rest_is_free", "a log whose rest cannot be read is taken to end there",
           ("recovery.cc", "  rest_is_unreadable_ = !why.ok() && ",
            "  rest_is_unreadable_ = why.ok() && "),
           tests="UnreadableRestTest.*"),
    mutant("accepted_rest_is_met_again", "what cannot be read stays so after the loss was accepted",
           ("recovery.cc", "    if (auto s = clear_unreadable(); !s.ok()) return s;\n", "    ;\n"),
           tests="UnreadableRestTest.*"),
    mutant("lack_cuts_data", "recovery takes a lack of memory for data that were not written",
           ("recovery.cc", "        if (s.code() != EIO) return s;\n", ""),
           tests="*ReadsThatSayNothingTest.*"),
    mutant("lack_cuts_log", "recovery takes a lack of memory for the end of the log",
           ("log/log_reader.cc", "s.ok() || s.code() == EIO; }", "s.code() >= 0; }"),
           tests="*ReadsThatSayNothingTest.*"),
    mutant("never_vouched", "an idle lane does not vouch for its last group",
           (GROUP, "  return unvouched_since_ && log_has_space(group_bytes(0));\n",
            "  return unvouched_since_ && log_has_space(group_bytes(0)) && stopping_;\n")),
    mutant("salvage_erases_nothing", "a salvage brings older versions of lost rows to light",
           ("salvage.cc", "    txn_->erase(file.family, rows->key());\n", ""),
           tests="*WhatARangeHasErasedDoesNotComeBack"),
    mutant("log_alone_awaited", "the flush is issued when the log is written, and data may follow",
           (GROUP, "                               [](const auto& t) { return t->writes_in_flight_ "
                   "== 0; });\n  };\n",
            "                               [](const auto& t) { return t->writes_in_flight_ < "
            "1000; });\n  };\n"),
           (GROUP, "    require(txn->writes_in_flight_ == 0, \"I1: the flush comes after the "
                   "writes\");\n", "")),
    mutant("data_not_awaited", "the flush is issued when the log is written, data or not",
           (GROUP, "    return turn.log_writes_pending == 0 &&\n",
            "    return turn.log_writes_pending == 0 ||\n")),
    mutant("checkpoint_before_applied", "a checkpoint does not wait for the rows before it",
           ("commit/applier.cc", "  item.done = std::move(done);\n", "  done();\n")),
    mutant("no_capture_in_a_full_log",
           "a checkpoint does not get the lane from a group that waits for it",
           (LANE, "return stopping_ || turn_; });",
            "return stopping_ || (turn_ && turn_->group.empty()); });")),
    mutant("wrong_log_space", "the log may run over its own tail",
           (GROUP, "return unpacked_bytes() + bytes + log_margin_bytes <= "
                   "parts_.log.capacity_bytes();",
            "return bytes > 0 || head_position_ > 0;")),
    # Compressed groups.
    mutant("compressed_in_any_store", "groups are compressed in a store that others may open",
           ("engine.cc", "bool(label.incompat & incompat_compressed_groups)}", "true}"),
           tests="CompressedGroups.*"),
    mutant("packed_bytes_bound_the_log", "the log bounds what its groups take, not what is in them",
           (GROUP, "  head_saved_ += turn.saved_bytes;\n", ""), tests="CompressedGroups.*"),
    mutant("saved_bytes_forgotten", "a restart forgets what compressed groups hold",
           ("recovery.cc", "    saved_bytes_ += groups_[i].saved_bytes;\n", ""),
           tests="CompressedGroups.*"),
    mutant("unpacked_length_not_compared", "a group may unpack to less than it says",
           ("format/log_group.cc", "if (bytes != int(raw_bytes)) return damaged;",
            "if (bytes < 0) return damaged;"), tests="CompressedLogTest.*"),
    mutant("compressed_tail_kept", "a group is as long in the log as before it was compressed",
           ("format/log_group.cc", "header.payload_bytes = uint32_t(end - sizeof(header));",
            "header.payload_bytes = uint32_t(used_ - sizeof(header));")),
    # Errors and damage.
    mutant("flush_error_ignored", "a flush that fails counts as one that did not",
           (GROUP, "  if (auto s = file.flush(); !s.ok())\n    fatal(",
            "  if (auto s = file.flush(); !s.ok() && s.what().empty())\n    fatal(")),
    mutant("flush_retried", "a flush that fails is tried again",
           (GROUP, "  if (auto s = file.flush(); !s.ok())\n    fatal(",
            "  if (auto s = file.flush(); !s.ok() && !(s = file.flush()).ok())\n    fatal(")),
    mutant("stock_of_a_busy_store", "the stock is made whoever wants the disk",
           ("container/background.cc", "lull.lasts(now, operations_())",
            "operations_().has_value() || true"),
           tests="BackgroundTest.AStoreInUse*"),
    mutant("stock_counts_what_is_promised", "what only the stock has for reservations is stock",
           ("container/growth_policy.cc",
            "  uint64_t blocks = less(usage.reserved_blocks, less(usage.free_blocks, "
            "usage.whole_blocks()));\n", "  uint64_t blocks = 0;\n"),
           tests="StockTest.What*"),
    mutant("stock_is_given_back", "what was made for the stock is idle, and goes",
           ("container/allocator_background.cc",
            "    if (keeps_whole(rule, container)) continue;\n"
            "    if (unreserved_blocks() < free) continue;\n",
            "    if (unreserved_blocks() < free) continue;\n"),
           tests="StockTest.*"),
    mutant("stock_is_punched", "and space within it is given back",
           ("container/allocator_background.cc",
            "    if (keeps_whole(rule, container)) continue;\n"
            "    const uint64_t most = std::min(",
            "    const uint64_t most = std::min("),
           tests="StockTest.*"),
    mutant("stock_is_spare", "with a stock less of what is free in pieces stays as it is",
           ("container/allocator_background.cc",
            "sums.free_blocks - std::min(sums.whole_blocks, rule.whole_blocks);\n",
            "sums.free_blocks;\n"),
           tests="StockTest.*"),
    mutant("stock_passes_over_what_a_class_has",
           "an idle store leaves unwritten what classes in use have themselves",
           ("container/growth_policy.cc", "return std::min(unwritten, piece_blocks());\n",
            "return 0;\n"),
           tests="StockTest.*:GrowthPolicyTest.*"),
    mutant("stock_takes_what_was_given_to_others", "the stock is made of what the table was given",
           ("container/containers.cc",
            "  stock_pause_ = stock_pause;  // it is not for the stock, whatever the file system "
            "says\n", ""),
           tests="StockTest.WhoeverIsShort*"),
    mutant("stock_tells_of_no_space", "a stock that finds no space tells those who want some",
           ("container/containers.cc", "space_.create_unasked(slot_classes - 1)",
            "space_.create(slot_classes - 1)"),
           tests="StockTest.AFullFileSystem*"),
    mutant("container_flush_error_waits", "a flush of a container that fails ends what it was for",
           ("container/container_files.cc", "  failed_flush_(failed);\n", ""),
           tests="ContainersTest.AFlushThatFails*"),
    mutant("table_sync_error_waits", "a sync of the table that fails ends the table's writes only",
           ("table/failed_syncs.cc", "  if (teller) teller(failure);\n", ""),
           tests="FailedSyncsTest.*"),
    mutant("options_sync_error_ignored", "a store opens where a sync of its table has failed",
           ("table/failed_syncs.cc", "  is_ending_ = is_ending;\n  return first_;\n",
            "  is_ending_ = is_ending;\n  return {};\n"),
           tests="FailedSyncsTest.*"),
    mutant("log_error_ignored", "a write of the log that fails counts as one that did not",
           (GROUP, "  if (error)\n    turn.lane.fatal(", "  if (error < 0)\n    turn.lane.fatal(")),
    mutant("data_error_ignored", "a write of data that fails counts as one that did not",
           (LANE, "  if (error)\n    lane.fatal(", "  if (error < 0)\n    lane.fatal(")),
    mutant("unreadable_reads_as_good", "a block that cannot be read is given to the reader",
           ("container/containers.cc",
            "  return space_.files().file(run.container).read(run.offset_bytes(), out);",
            "  (void)space_.files().file(run.container).read(run.offset_bytes(), out).ok();\n"
            "  return {};")),
    mutant("one_label", "a store whose first copy of the label is damaged is refused",
           ("format/label.cc", "  if (!copies[0].block) return 1;\n",
            "  if (!copies[0].block) return std::nullopt;\n"),
           tests="LabelTest.*"),
    # Transactions that are too large for the log.
    mutant("large_not_flushed", "what is too large for the log is acknowledged without a flush",
           ("commit/commit_by_checkpoint.cc", "nullopt) || !flush_table())", "nullopt))")),
    mutant("large_data_not_flushed", "the data of what is too large for the log is not flushed",
           ("commit/commit_by_checkpoint.cc", "  flush_data(*txn);\n", "")),
    mutant("large_without_position", "the log before what is too large for it is replayed again",
           ("commit/commit_by_checkpoint.cc",
            "  engine_rows::write_with_copy(writer, engine_rows::log_start(), behind.encode());\n"
            "  count += 2 * engine_rows::rows_with_copy;\n",
            "  count += engine_rows::rows_with_copy;\n")),
    mutant("large_amidst_a_capture", "older rows of a checkpoint come over those of what is too "
           "large for the log",
           ("commit/commit_by_checkpoint.cc", "  return capturing_ && ", "  return false && "),
           tests="LargeTransactionTest.*"),
    mutant("taken_not_put_back", "what a checkpoint that failed had taken is in no later one",
           ("container/allocator_capture.cc", "    changed.set(taken.chunk, 1);\n", ""),
           tests="AllocatorRecoveryTest.*"),
    # Space.
    mutant("short_is_promised", "what the table lacks of its reserve is shown as available",
           ("container/growth_policy.cc",
            "obtainable_bytes(state), state.short_bytes);\n", "obtainable_bytes(state), 0);\n"),
           tests="GrowthPolicyTest.*:SpaceTest.*"),
    mutant("short_is_reserved", "objects get what the table lacks of its reserve",
           ("container/growth_policy.cc", "         blocks * block_bytes + state.short_bytes;\n",
            "         blocks * block_bytes;\n"),
           tests="GrowthPolicyTest.*:ContainersRelief*"),
    mutant("capacity_without_table", "the capacity is of containers alone",
           ("container/growth_policy.cc",
            "file_bytes(usage) + others.taken_bytes + others.reserve_bytes;\n",
            "file_bytes(usage);\n"),
           tests="GrowthPolicyTest.*:SpaceTest.TheCapacity*"),
    mutant("small_runs_stay", "free space in small pieces is never given back",
           ("container/growth_policy.cc", "          PunchSize{1, most}};\n",
            "          PunchSize{punch_min_blocks / 16, most}};\n"),
           tests="ContainersRelief*"),
    mutant("holes_are_free", "what has no space counts as free after a start",
           ("container/container_space.cc",
            "std::move(found.unwritten), std::move(found.holes));\n",
            "std::move(found.unwritten));\n"),
           tests="ContainersTest.Holes*:ContainersRelief*"),
    mutant("owned_stays_a_hole", "what is owned and has no space is free without any later",
           ("container/container_state.cc", "  hollow.remove(punched_);\n",
            "  hollow = BlockBitmap(blocks());\n"),
           tests="ContainersTest.Holes*"),
    mutant("ballast_is_kept", "the ballast is not given up where the file system is full",
           ("space/ballast.cc", "  held_bytes_ = 0;\n  return true;\n", "  return false;\n"),
           tests="SpaceTest.WhatOthersTake*"),
    mutant("no_last_ballast", "a start that has used the last ballast does not make it again",
           ("engine.cc", "  if (!options.read_only) last_ballast->make();\n", ""),
           tests="SpaceTest.AStoreOpensAgainAndAgain*"),
    mutant("no_relief", "the table waits, and nobody gives it space",
           ("space/relief.cc", "  if (given > 0) return true;\n", "  return false;\n"),
           tests="SpaceTest.WhatOthersTake*"),
    mutant("replay_needs_space", "a start flushes what it replays, also to a full file system",
           ("engine.cc", "  if (space->available_bytes < 2 * label.log_bytes)\n",
            "  if (space->available_bytes < 1)\n"),
           tests="SpaceTest.AStoreOpensAlso*"),
    mutant("quota_is_an_error", "a quota that is used up is an error of the table's disk",
           ("table/quota_fs.cc", "  if (lack_in(s) != EDQUOT) return s;\n",
            "  if (lack_in(s) != ENOSPC) return s;\n"),
           tests="SpaceTest.AQuota*"),
    # Below the seam.
    mutant("short_write_is_whole", "a write that was cut short counts as whole",
           ("io/posix_file.cc", "  for (iov_advance(&iov, 0); !iov.empty() && !error;) {",
            "  for (bool once = true; once && !error; once = false) {"),
           tests="WriteQueue*:*WriteQueue*:*FileDisk*"),
    mutant("file_error_ignored", "an error of a system call that writes is forgotten",
           ("io/posix_file.cc", "      error = n < 0 ? errno : EIO;", "      break;"),
           tests="*WriteQueue*:*FileDisk*"),
    mutant("ring_error_ignored", "an error in a completion of the ring is forgotten",
           ("io/uring_write_queue.cc",
            "          if (op->first_error == 0) op->first_error = *error;\n", "(void)error;\n"),
           tests="*WriteQueue*:*FreeRing*"),
    mutant("dirty_files_forgotten", "where it is not in place, a flush covers its own file only",
           ("io/dirty_files.cc", "    files.swap(dirty_);\n", "    dirty_.clear();\n"),
           tests="*DirtyFiles*:*FileDisk*"),
    mutant("always_in_place", "every file system counts as one that writes in place",
           ("io/file_disk.cc", "  state->in_place = state->direct && in_place_type;",
            "  state->in_place = true;"),
           tests="*FileDisk*"),
    mutant("sync_dir_does_nothing", "names are not made durable",
           ("io/file_disk.cc",
            "  if (uninterrupted([&] { return ::fsync(handle.fd()); }) == 0) return Status();\n",
            "  if (handle.fd() >= 0) return Status();\n"),
           tests="*SyncsOfDirectories*"),
    mutant("shared_file_not_flushed", "a commit does not flush the files that somebody copies",
           (GROUP, "    if (!first_touch && !file->needs_own_flush())\n",
            "    if (!first_touch)\n"),
           tests="SharedStoreTest.ACommitFlushes*"),
    mutant("lease_given_back_silently", "who waits in open() gets the file unnoticed",
           ("io/posix_file.cc", "    if (lease_.is_wanted()) {\n      own_flush_ = true;\n",
            "    if (lease_.is_wanted()) {\n"),
           tests="WatchedFileTest.*"),
    mutant("open_file_unguarded", "a file that somebody has open already counts as alone",
           ("io/posix_file.cc", "  if (error == EAGAIN) {\n    own_flush_ = true;\n",
            "  if (error == EAGAIN) {\n"),
           tests="WatchedFileTest.*"),
    mutant("log_stays_sparse", "a log that was restored with holes is used as it is",
           ("log/log_ring.cc", "    if (auto s = make_plain(**file, warn); !s.ok()) return s;\n",
            "    if (Status s; !s.ok()) return make_plain(**file, warn);\n"),
           tests="LogTest.SegmentsThatWereRestoredSparsely*"),
    mutant("open_not_repeated", "a container that cannot be opened for a moment ends the store",
           ("container/container_files.cc",
            "  auto file = mode == OpenMode::create_new ? open() : read_repeatedly(open);\n",
            "  auto file = open();\n"),
           tests="*Containers*"),
    mutant("statvfs_not_repeated", "space that cannot be told for a moment is an error",
           ("container/container_space.cc",
            "ContainerSpace::state() const {\n"
            "  const auto space = read_repeatedly([this] { return disk_.space(); });\n",
            "ContainerSpace::state() const {\n  const auto space = disk_.space();\n"),
           tests="*Containers*"),
    mutant("posted_bytes_unlimited", "all data waits for the lane's next group, however much",
           (LANE, "  if (is_small && deferred_bytes_.fetch_add(txn.data_bytes_) < "
                  "limits_.deferred_bytes_max)\n", "  if (is_small)\n"),
           tests="PostedBytesTest.*"),
    mutant("posted_bytes_kept", "what the lane has written counts as waiting for it",
           (GROUP, "  deferred_bytes_ = 0;\n", ""),
           tests="PostedBytesTest.*"),
    mutant("data_waits_for_the_log", "a group's data begin with its log, not before",
           (LANE, "  begin_data(*lane);\n", ""),
           tests="PostedBytesTest.*"),
    mutant("waits_for_everybody", "a group waits for clients that do not come back soon",
           ("commit/gathering.cc", "!return_time_.count() || return_time_ >= most()",
            "!return_time_.count()"),
           tests="Gathering*"),
    mutant("waits_for_long", "a group waits for as long as five take",
           ("commit/gathering.cc", "std::min(most(), patience * return_time_)",
            "5 * group_time_"),
           tests="Gathering*"),
    mutant("waits_for_much_data", "a group waits also where the disk's bandwidth is the limit",
           (LANE, "turn.is_full || turn.has_much_data", "turn.is_full"),
           tests="*WhoBringsMuchData*"),
    mutant("waits_for_nobody", "a group waits for nobody",
           ("commit/gathering.cc", "  return Wait{expected_,", "  return Wait{0,"),
           tests="*WhoeverWasJustServed*:Gathering*"),
    mutant("writes_tables_without_a_pause", "who writes a file of the table does not yield",
           ("table/table.cc", "make_yielding_writer(yield_turn)", "make_yielding_writer([] {})"),
           tests="YieldingEngineTest.*"),
    mutant("directory_without_space", "a sync of the table's directory may find no space",
           ("table/failed_syncs.cc",
            "  return s.IsNoSpace() ? IOStatus::IOError(s.ToString()) : s;\n", "  return s;\n"),
           tests="FailedSyncs*"),
    mutant("erasures_not_compacted", "files full of erased rows are left to themselves",
           ("table/table.cc", "  if (family == Family::object || family == Family::omap)\n",
            "  if (options.compact_on_deletion_window == 0)\n"),
           tests="CompactOnDeletionTest.*"),
    mutant("salvage_counts_on_old_damage", "a file is written anew with more damage than was known",
           ("table/table_damage.cc",
            "      if (*damage) note_more(db, *file, std::move(**damage));\n", ""),
           tests="RottenTableTest.WhatRotsDuring*"),
    mutant("salvage_passes_over_others", "files that were sound when it began lose rows, too",
           ("table/table_damage.cc", "damaged_.at(number); !is_seen_to(now))",
            "damaged_.at(number); false && !is_seen_to(now))"),
           tests="*RottenElsewhere*"),
    mutant("filter_counts_as_rows", "where only a filter cannot be read, all rows count as lost",
           ("table/table_damage.cc", "    damage->no_row_lost = damage->gaps.empty();\n", ""),
           tests="RottenTableTest.AFilter*"),
    mutant("each_reader_counts", "readers that meet one error together condemn a sound file",
           ("table/table_damage.cc", "  if (!damage) found_sound_[number] = verdicts_;\n", ""),
           tests="VerdictTest.*"),
    mutant("salvage_takes_less_for_all", "rows that a salvage has left out unseen are not missed",
           ("salvage.cc", "  if (found.crc() == crc) return {};\n", "  if (crc >= 0) return {};\n"),
           tests="RottenTableTest.WhatRotsWhile*"),
    mutant("erasures_wait_for_scarcity", "erased rows rest in memory where space is plenty",
           ("space/erasures.cc", "  if (quiet_looks_ < quiet_looks_where_space_is_plenty && ",
            "  if ("),
           tests="SpaceTest.Erased*"),
    mutant("erasures_grow_and_are_flushed", "erased rows are flushed though there are more",
           ("space/erasures.cc", "are_many && !grows ?", "are_many ?"),
           tests="SpaceTest.Erased*"),
    mutant("large_page_given_twice", "a piece of a large page that is in use is given again",
           ("io/large_pages.cc", "  page.used |= bits(units, at);\n", ""),
           tests="LargePagesTest.*"),
    mutant("large_page_lost", "what is given back counts as in use",
           ("io/large_pages.cc", "    page.used &= ~mask;\n", ""),
           tests="LargePagesTest.*:LargeReadTest.*"),
    mutant("large_page_forbidden", "a daemon that Ceph forbids large pages has none",
           ("io/large_pages.cc",
            "    if (forbidden_ > 0) ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);\n", ""),
           tests="LargePageTest.*"),
    mutant("large_pages_for_all", "who asks for a large page allows them to the whole process",
           ("io/large_pages.cc", "    if (forbidden_ > 0) ::prctl(PR_SET_THP_DISABLE, 1, "
            "forbidden_ & ~1, 0, 0);\n", ""),
           tests="LargePageTest.*"),
    mutant("large_page_shared", "a child that is forked breaks large pages up",
           ("io/large_pages.cc", "  return ::madvise(memory, bytes, MADV_DONTFORK) == 0;\n",
            "  return true;\n"),
           tests="LargePageTest.AChild*"),
    mutant("large_page_unasked", "whether a page is a large one is not asked",
           ("io/large_pages.cc", "  if (kernel_tells && "
            "::madvise(memory, bytes, MADV_COLLAPSE) != 0) return false;\n", ""),
           tests="LargePageTest.*"),
    mutant("large_page_awaited", "who wants a large page waits while another one is made",
           ("io/large_pages.cc", "  lock.unlock();\n", ""),
           ("io/large_pages.cc", "  lock.lock();\n", ""),
           tests="LargePagesTest.WhileOneIsMadeNobodyWaits"),
    mutant("large_read_not_copied", "what was read through a large page does not arrive",
           ("io/posix_file.cc", "    std::memcpy(to, piece.iov_base, piece.iov_len);\n", ""),
           tests="LargeReadTest.*"),
    mutant("large_read_repeats", "all pieces of a large read arrive at one place",
           ("io/posix_file.cc", "    to += piece.iov_len;\n", ""),
           tests="LargeReadTest.*"),
    mutant("parked_unflushed", "a file that was written is parked before it is flushed",
           ("io/posix_file.cc", "  if (disk_->in_place && unflushed_.exchange(false)) {\n",
            "  if (false) {\n"),
           tests="OpenFilesTest.*"),
    mutant("parked_in_use", "a file is parked while somebody uses it",
           ("io/posix_file.cc",
            "  if (!uses_.compare_exchange_strong(none, parked, std::memory_order_acq_rel)) "
            "return false;\n", "  uses_ |= parked | none;\n"),
           tests="OpenFilesTest.OneThatIsHeldStaysOpen"),
    mutant("flush_of_a_parked_file", "a flush of a file that is parked does nothing",
           ("io/posix_file.cc", "    const Status opened = begin_use();\n",
            "    if (is_parked()) return Status();\n    const Status opened = begin_use();\n"),
           tests="OpenFilesTest.AFlushOfAParkedOneReachesTheDisk"),
    mutant("flush_beside_a_failed_one", "a flush counts though another one failed meanwhile",
           ("io/posix_file.cc",
            "  if (const int beside = disk_->flush_error) "
            'return failed(beside, "flush, beside one that failed");\n', ""),
           tests="OpenFilesTest.AFlushForWhich*"),
    mutant("unreachable_is_rotten", "a file that cannot be opened again just now counts as rotten",
           ("io/posix_file.cc", "  return is_lack(s.code()) || is_path_error(s.code()) ? s ",
            "  return is_lack(s.code()) ? s "),
           tests="OpenFilesTest.OneThatCannotBeReached*"),
    mutant("one_erased_range_skipped", "a clone gets keys of the second of two erased ranges",
           ("table/row_overlay.cc", "  while (table.valid()) {\n", "  if (table.valid()) {\n"),
           tests="RowOverlayTest.BehindAnErasedRange*"),
    mutant("removals_wait_for_the_table", "rows that wait for space keep removals out of the log",
           ("commit/applier.cc", "      lacks_space_ = is_lack_of_space(s.code());\n", ""),
           tests="SpaceTest.RemovalsGetDurable*"),
    mutant("log_given_up_at_the_end", "behind a flush that failed the log is recycled",
           (LANE, "  if (parts_.is_ending) return false;\n", ""),
           ("engine.cc", "      }, &is_ending);\n", "      });\n"),
           tests="FailedSyncsTest.NothingIsGivenUp*"),
    mutant("syncs_succeed_at_the_end", "behind a flush that failed the table's syncs count",
           ("table/failed_syncs.cc", "    if (first_.ok() && !(is_ending_ && *is_ending_)) ",
            "    "),
           tests="FailedSyncs*"),
    mutant("misread_header_ends_the_log", "a header of the log that comes wrong once is believed",
           ("log/log_reader.cc", "  if (found.ok() && !*found) {\n    // It may",
            "  if (false) {\n    // It may"),
           tests="LogDamageTest.AHeaderThatComesWrong*"),
    mutant("read_ahead_believed", "the second look at a header sees what the first one has read",
           ("log/log_reader.cc", "    ahead_bytes_ = 0;\n    found = look();\n",
            "    found = look();\n"),
           tests="LogDamageTest.AHeaderThatComesWrong*"),
    mutant("only_holes_relieve", "where no hole can be punched nothing is given back",
           ("container/containers.cc",
            "  return remove_idle(nothing_is_spared, bytes_done);\n}\n\n// Some runs",
            "  return Worked::nothing_to_do;\n}\n\n// Some runs"),
           tests="ContainersReliefTest.WhereNothingCanBePunched*"),
    mutant("holes_given_back", "a container that is all holes is given to who lacks space",
           ("container/containers.cc", "  nothing_is_spared.min_free_blocks = 1;", "  "),
           tests="ContainersReliefTest.AContainerThatIsAllHoles*"),
    mutant("names_lost_one_by_one", "a name that is not durable costs the next container, too",
           ("container/container_space.cc",
            "    memory_.note_name_refused();\n    allocator_.lose_reclassed(*old);\n",
            "    allocator_.lose_reclassed(*old);\n"),
           tests="ContainersTest.WhereNewNames*"),
    mutant("incomplete_left", "what is left of a container stays where nothing is prepared",
           ("container/container_space.cc",
            "  if (Status s = remove_incomplete(); !s.ok()) return s;\n", ""),
           tests="ContainersReliefTest.AFileThatCouldNotBeMade*"),
    mutant("renamed_unflushed", "what was moved in a container before its new name may not be so",
           ("container/container_files.cc",
            "return flushed(all.status());\n  if (Status s = flush(**file); !s.ok()) return s;\n",
            "return flushed(all.status());\n"),
           tests="ContainersTest.TheNewNameIsDurable*"),
    mutant("follower_overtakes", "what follows another sequencer passes its transactions",
           (GROUP, "  if (std::ranges::any_of(txn.follows, is_overtaken)) {\n", "  if (false) {\n"),
           tests="EngineTest.WhatFollowsAnotherSequencerDoesNotPassIt"),
    mutant("lent_twice", "the lane is lent while somebody has it",
           (LANE, "  return is_free() && !has_work() && !parts_.is_ending &&\n",
            "  return !has_work() && !parts_.is_ending &&\n"),
           tests="CommitHereTest.ALaneThatIsTakenIsNotLent"),
    mutant("geometry_believed", "a label whose log has no whole segments is used",
           ("format/label.cc",
            "                        block.log_bytes % block.segment_bytes == 0 &&\n", ""),
           tests="fuzz_label"),
    mutant("range_backwards", "a range of rows may end before it begins",
           ("table/rows.cc", "      return row->key <= row->value;\n", "      return true;\n"),
           tests="fuzz_rows"),
)

# The unchanged text of everything that mutants change, for each judge; of the fuzz targets, of what
# these judge.
IDENTITY = "identity"
IDENTITIES = (mutant(IDENTITY, "nothing is changed"),
              mutant("identity_below", "nothing is changed",
                     tests=":".join(sorted({each.tests for each in MUTANTS
                                            if each.tests and not each.fuzz_target}))),
              *(mutant(f"identity_{target}", "nothing is changed", tests=target)
                for target in sorted({each.fuzz_target for each in MUTANTS} - {""})))

# What a power cut below a real file system must find as well: flushes that somebody forgot.
POWERCUT_MUTANTS = ("skip_flush", "forget_first_touch")


def changed_files(each: Mutant) -> dict[str, str]:
    changed: dict[str, str] = {}
    for edit in each.edits:
        text = changed.get(edit.path) or (ENGINE / edit.path).read_text(encoding="utf-8")
        if text.count(edit.before) != 1:
            raise LookupError(f"{edit.path} has {text.count(edit.before)} times: {edit.before!r}")
        changed[edit.path] = text.replace(edit.before, edit.after)
    if each in IDENTITIES:
        for path in {edit.path for other in MUTANTS if other.fuzz_target == each.fuzz_target
                     for edit in other.edits}:
            changed[path] = (ENGINE / path).read_text(encoding="utf-8")
    return changed


def compile_mutant(each: Mutant, place: Path, log: Path, target: str) -> Path:
    objects = []
    flags = ["-std=c++20", "-O1", f"-I{ROOT}/src", "-isystem", f"{CEPH}/src/rocksdb/include",
             "-idirafter", f"{CEPH}/src", "-idirafter", f"{CEPH}/src/rocksdb"]
    for path, text in changed_files(each).items():
        source = place / path.replace("/", "_")
        source.write_text(text, encoding="utf-8")
        objects.append(str(source.with_suffix(".o")))
        if run(["g++", *flags, "-c", str(source), "-o", objects[-1]], log):
            raise LookupError(f"does not compile, see {log}")
    program = place / target
    libraries = [str(BUILD / "libtablestore_engine.a"), f"{CEPH}/build/src/rocksdb/librocksdb.a"]
    if target != UNIT:
        libraries.insert(0, str(BUILD / "libtablestore_sim_room.a"))
    # The archive's own version of a changed file is never asked for.
    if each.fuzz_target:
        own = [*flags, *map(str, (FUZZ / f"{target}.cc", FUZZ / "driver_main.cc",
                                  TESTS / "engine/memory_disk.cc"))]
    else:
        own = [str(BUILD / f"CMakeFiles/{target}.dir" / f"{source.relative_to(ROOT)}.o")
               for source in SOURCES[target]]
    more = {POWERCUT: ["-lfuse3"], UNIT: ["-lgtest", "-lgmock", "-lgtest_main"]}.get(target, [])
    if run(["g++", *own, *objects, *libraries, *more, "-lsnappy", "-llz4", "-lz", "-luring",
            "-lpthread", "-o", str(program)], log):
        raise LookupError(f"does not link, see {log}")
    return program


class Unknown(Exception):
    """The judge did not come to an end, and has said nothing."""


def run(command: list[str], log: Path) -> int:
    with log.open("a") as out:
        try:
            return subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False,
                                  timeout=TIMEOUT).returncode
        except subprocess.TimeoutExpired as error:
            raise Unknown(f"no end after {TIMEOUT} s") from error


def caught_below(program: Path, arguments: argparse.Namespace, log: Path) -> str:
    """Below which file systems it is found: empty where one does not show it."""
    for fs in ("ext4", "xfs"):
        scratch = program.parent / fs
        scratch.mkdir()
        # 1: something was lost; 77: the power could not be cut here
        if run([str(program), "--dir", str(scratch), "--fs", fs, "--cuts",
                str(arguments.cuts)], log) != 1:
            return ""
        shutil.rmtree(scratch)
    return "ext4 and xfs"


def caught_by_simulator(program: Path, arguments: argparse.Namespace, log: Path) -> str:
    """Which part of the simulator finds it; empty: none."""
    seed = ["--no-minimise", "--seed", str(arguments.seed), "--seeds", str(HISTORIES)]
    parts = {"random": seed, "damage": [*seed, *DAMAGE],
             "exhaustive": ["--exhaustive", "--transactions", "2"],
             "exhaustive_damage": ["--exhaustive", "--damage"]}
    for name, words in parts.items():
        if arguments.part in ("", name) and run([str(program), *words], log):
            return name
    return ""


def caught_by_tests(program: Path, tests: str, log: Path) -> str:
    scratch = program.parent / "tests"
    scratch.mkdir()
    # What finds no test finds nothing, and a filter may have got old.
    listed = subprocess.run([str(program), f"--gtest_filter={tests}", "--gtest_list_tests"],
                            capture_output=True, text=True, check=True).stdout
    if not any(line.startswith("  ") for line in listed.splitlines()):
        raise LookupError(f"there is no test {tests}")
    found = run(["env", f"TABLESTORE_TEST_DIR={scratch}", str(program), f"--gtest_filter={tests}",
                 "--gtest_brief=1", "--gtest_fail_fast"], log)
    return "unit tests" if found else ""


def caught_by_fuzzing(program: Path, target: str, log: Path) -> str:
    inputs = FUZZ / "corpus" / target.removeprefix("fuzz_")
    ended = run(["env", "-C", str(program.parent), str(program), "-timeout=30",
                 f"-runs={FUZZ_RUNS}", str(inputs)], log)
    if ended > 0:  # what a target finds ends it by a signal
        raise LookupError(f"the inputs of {target} cannot be run, see {log}")
    return "fuzzing" if ended else ""


def judge(each: Mutant, target: str, arguments: argparse.Namespace, here: Path, log: Path) -> str:
    """What finds it; empty: nothing."""
    target = each.fuzz_target or (UNIT if each.tests else target)
    program = compile_mutant(each, here, log, target)
    if each.fuzz_target:
        return caught_by_fuzzing(program, target, log)
    if target == UNIT:
        return caught_by_tests(program, each.tests, log)
    if target == POWERCUT:
        return caught_below(program, arguments, log)
    return caught_by_simulator(program, arguments, log)


def told(log: Path) -> str:
    if not log.exists():
        return ""
    lines = log.read_text(errors="replace").splitlines()
    return next((line for line in reversed(lines) if "FAILED" in line or "broken" in line or
                 "ssert" in line or "terminate" in line), "")[:160]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cuts", type=int, default=2000,
                        help="of power, per mutant and file system, until it is found")
    parser.add_argument("--seed", type=int, default=1, help="the simulator's first")
    parser.add_argument("--sample", type=int, default=0, help="so many, chosen anew each time")
    parser.add_argument("--choice", type=int, default=0, help="that choice again")
    parser.add_argument("--part", default="", help="of the simulator, alone: random, damage, "
                        "exhaustive, exhaustive_damage")
    parser.add_argument("--powercut", action="store_true",
                        help="below real file systems: " + ", ".join(POWERCUT_MUTANTS))
    parser.add_argument("names", nargs="*", help="only these")
    arguments = parser.parse_args()
    target = POWERCUT if arguments.powercut else SIMULATOR
    everything = (*MUTANTS, *IDENTITIES)
    names = arguments.names or (POWERCUT_MUTANTS if arguments.powercut
                                else [each.name for each in everything])
    if arguments.sample:
        choice = arguments.choice or random.SystemRandom().randrange(1, 1 << 31)
        print(f"a choice of {arguments.sample}: --choice {choice}", flush=True)
        # Without the control: who runs a sample runs the simulator, too.
        names = random.Random(choice).sample([each.name for each in MUTANTS], arguments.sample)
    passed = failed = 0
    for each in everything:
        if each.name not in names:
            continue
        here = BUILD / "mutants" / target / each.name
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir(parents=True)
        log = here / "log"
        began = time.monotonic()
        try:
            by = judge(each, target, arguments, here, log)
            as_wanted = bool(by) != (each in IDENTITIES)
            verdict = f"caught by {by}" if by else "not found"
        except Unknown as error:
            as_wanted, verdict = False, f"unknown: {error}"
        except LookupError as error:
            as_wanted, verdict = False, f"not judged: {error}"
        passed += as_wanted
        failed += not as_wanted
        print(f"{'ok' if as_wanted else 'FAILED'} {each.name}: {each.what} "
              f"[{verdict}, {time.monotonic() - began:.0f} s] {told(log)}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
