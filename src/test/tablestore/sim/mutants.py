#!/usr/bin/env python3
"""Does the simulator find bugs? Breaks the engine on purpose, one way at a time.

    python3 src/test/tablestore/sim/mutants.py [--minutes M] [--powercut] [NAME ...]

Each mutant is a change of the engine's source that a tired programmer could make. It is compiled
in place of the file that it changes, linked with the simulator, and must make it fail; or, with
--powercut, some of them with the program that cuts the power below real file systems, each of
which must show it. Runs inside the environment, where these programs have been built (BUILD, the
first line below); ends with a line of counts in the format of the other suites: every mutant is a
test.
"""
import argparse
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
SIMULATOR, POWERCUT = "tablestore_sim", "tablestore_powercut"
TESTS = ROOT / "src/test/tablestore"
SOURCES = {  # of each program, beside libraries
    SIMULATOR: [TESTS / "sim/main.cc"],
    POWERCUT: [p for p in sorted((TESTS / "powercut").glob("*.cc"))
               if not p.name.startswith("test_")],
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


def mutant(name: str, what: str, *edits: tuple[str, str, str]) -> Mutant:
    return Mutant(name, what, tuple(Edit(*edit) for edit in edits))


LANE = "commit/commit_lane.cc"
GROUP = "commit/commit_group.cc"

MUTANTS = (
    mutant("skip_flush", "a group is acknowledged without a flush",
           (GROUP, "  if (touched.empty()) flush(parts_.log.file(turn.header.position));\n", "")),
    mutant("flush_too_early", "the flush is issued before log and data are written",
           (LANE, "  write_group(*lane, group);\n  flush_group(*lane);\n",
            "  flush_group(*lane);\n  write_group(*lane, group);\n")),
    mutant("forget_first_touch", "no flush of a container for a first touch",
           (GROUP, "if (w->first_touch && std::ranges::find",
            "if (false && std::ranges::find")),
    mutant("reuse_unvouched", "freed slots are reused before a durable group vouches for them",
           (GROUP, "  release_frees(turn, turn.header.watermark);\n"
                   "  if (!frees.extents.empty()) "
                   "turn.pending_frees.push_back(std::move(frees));\n",
            "  if (!frees.extents.empty()) turn.pending_frees.push_back(std::move(frees));\n"
            "  release_frees(turn, turn.durable_lsn);\n")),
    mutant("reuse_at_once", "freed slots are reused before their transaction is durable",
           (GROUP, "std::span<const std::byte> CommitLane::build_group(Turn& turn) {\n",
            "std::span<const std::byte> CommitLane::build_group(Turn& turn) {\n"
            "  for (const auto& txn : turn.group)\n"
            "    for (const Extent& e : txn->frees_) {\n"
            "      parts_.containers.allocator().mark_freed(e);\n"
            "      parts_.containers.allocator().give_back(e);\n"
            "    }\n"),
           (GROUP, "    for (const Extent& e : txn->frees_) {\n"
                   "      allocator.mark_freed(e);\n",
            "    for (const Extent& e : std::vector<Extent>()) {\n")),
    mutant("ignore_watermark", "recovery judges every group by its data",
           ("recovery.cc", "if (h.transactions > 0 && h.last_lsn() > watermark) {",
            "if (h.transactions > 0) {")),
    mutant("watermark_too_high", "a group vouches for itself",
           (GROUP, "turn.header.watermark = turn.durable_lsn;",
            "turn.header.watermark = lsn - 1;")),
    mutant("verify_nothing", "recovery believes every group whose header is intact",
           ("recovery.cc", "      if (!*there) {", "      if (false) {")),
    mutant("verify_first_write", "recovery verifies the first write of a record only",
           ("recovery.cc", "      if (*checksum != w.checksum) return false;\n",
            "      if (*checksum != w.checksum) return false;\n      break;\n")),
    mutant("one_group_late", "recovery stops one group late",
           ("recovery.cc", "groups_.resize(i);", "groups_.resize(i + 1);")),
    mutant("one_group_early", "recovery leaves out the last group",
           ("recovery.cc", "  end_ = at;\n  return {};",
            "  if (!groups_.empty() && groups_.back().header.transactions > 0 &&\n"
            "      groups_.back().header.last_lsn() > applied_lsn_) groups_.pop_back();\n"
            "  end_ = at;\n  return {};")),
    mutant("older_row_kept", "of two rows of one key the older one goes to the table",
           ("table/row_combiner.cc", "      item->kept = false;\n    } else if",
            "      later->kept = false;\n      later = &*item;\n    } else if")),
    mutant("row_before_range", "rows are sorted across the erasure of a range",
           ("table/row_combiner.cc", "      begin = at + 1;\n", "      begin = kept_.begin();\n")),
    mutant("no_epoch", "recovery does not begin a new epoch",
           ("recovery.cc", "  if (auto s = begin_epoch(&log); !s.ok()) return s;\n", "")),
    mutant("epoch_not_flushed", "the beginning of an epoch is not flushed",
           ("recovery.cc", "  if (auto s = parts_.log.file(header.position).flush(); !s.ok()) "
                           "return s;\n", "")),
    mutant("any_group", "the reader takes any intact group, of whatever lap and epoch",
           ("log/log_reader.cc",
            "if (!*found || !epoch_fits || h.previous_crc != at_.previous_crc || "
            "h.first_lsn != at_.next_lsn)", "(void)epoch_fits;\n  if (!*found)"),
           ("format/log_group.cc", " || header.position != position)", ")"),
           ("format/log_group.cc", "uint64_t position) {", "uint64_t) {")),
    mutant("no_group_crc", "the checksum of a group is not looked at",
           ("log/log_reader.cc",
            "  if (!crc_matches(*header, memory.span())) return false;\n", "")),
    mutant("apply_before_durable", "rows go to the table before they are durable",
           (LANE, "  wait_for_log_space(lane, group.size());\n",
            "  {\n"
            "    RowBatch rows;\n"
            "    for (const auto& txn : lane->group) rows.append(txn->row_count_, txn->rows_);\n"
            "    std::string batch = rows.take();\n"
            "    (void)parts_.table.write(&batch).ok();\n"
            "  }\n"
            "  wait_for_log_space(lane, group.size());\n")),
    mutant("recycle_without_flush", "a checkpoint recycles the log without flushing the table",
           ("commit/checkpointer.cc", "  if (auto s = table_.flush(); !s.ok()) return s;\n", "")),
    mutant("checkpoint_without_allocation", "a checkpoint forgets the allocation rows",
           (LANE, "      engine_rows::write_allocation(writer, state);\n      ++count;\n",
            "      (void)state;\n")),
    mutant("replay_twice", "recovery replays what the table has already",
           ("recovery.cc", "if (group.header.transactions == 0 || "
                           "group.header.last_lsn() <= applied_lsn_) continue;\n"
                           "    if (group.header.first_lsn <= applied_lsn_)",
            "if (group.header.transactions == 0) continue;\n    if (false)")),
    mutant("drop_allocation", "recovery forgets what the second record of a group wrote",
           ("recovery.cc",
            "      for (const LoggedWrite& w : record.writes) "
            "allocator.mark_owned(w.run);\n",
            "      if (&record == &group.records[0])\n"
            "        for (const LoggedWrite& w : record.writes) "
            "allocator.mark_owned(w.run);\n")),
    mutant("drop_frees", "recovery forgets frees",
           ("recovery.cc",
            "      for (const Extent& e : record.frees) allocator.mark_freed(e);\n", "")),
    mutant("flush_not_atomic", "the table's families are flushed one by one",
           ("table/table.cc", "  o.atomic_flush = true;\n", ""),
           ("table/table.cc", "    all.atomic_flush = true;", "   ")),
    mutant("prepare_without_flush", "zeros written ahead count as written before a flush",
           ("container/container_space.cc", "  if (s.ok()) s = file.flush();\n", "")),
    mutant("open_without_flush", "open believes that what reads as written is durably so",
           ("container/container_files.cc",
            "    if (Status s = (*file)->flush(); !s.ok()) return s;\n", "")),
    mutant("new_name_not_synced", "a new container is used before its name is durable",
           ("container/container_files.cc",
            "  if (status.ok()) status = disk_.sync_dir(class_dir(slot_class));\n", "")),
    mutant("reclassed_name_not_synced", "a renamed container is used before its name is durable",
           ("container/container_files.cc",
            "    Status s = disk_.sync_dir(class_dir(to_class));\n"
            "    if (s.ok()) s = disk_.sync_dir(class_dir(from_class));\n", "    Status s;\n")),
    mutant("reclassed_counts_as_written", "of a renamed container all blocks count as written",
           ("container/allocator_background.cc", "  BlockBitmap unwritten = take_out(old);\n",
            "  take_out(old);\n  BlockBitmap unwritten(old.blocks);\n")),
    mutant("punched_stays_written", "a punched block counts as written",
           ("container/container_state.cc", "  unwritten_.set(first, count);\n", "")),
    mutant("append_to_manifest", "changes of the table's files are appended to its MANIFEST",
           ("table/table.cc", "  o.max_manifest_file_size = 1;\n", "")),
    mutant("short_container", "a container that has not got all of its space is used",
           ("container/container_files.cc", "    if (size < container_bytes_) {",
            "    if (false) {")),
    mutant("unreadable_is_there", "recovery takes data that it cannot read for written",
           ("recovery.cc", "      if (!checksum.ok()) return checksum.status();\n",
            "      if (!checksum.ok()) continue;\n")),
    mutant("unreadable_is_not_there", "recovery takes data that it cannot read for not written",
           ("recovery.cc", "      if (!checksum.ok()) return checksum.status();\n",
            "      if (!checksum.ok()) return false;\n")),
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
           (GROUP, "return head_position_ - tail_ + bytes + log_margin_bytes <= "
                   "parts_.log.capacity_bytes();",
            "return bytes > 0 || head_position_ > 0;")),
)

# What a power cut below a real file system must find as well: flushes that somebody forgot.
POWERCUT_MUTANTS = ("skip_flush", "forget_first_touch")


def run(command: list[str], log: Path) -> int:
    with log.open("a") as out:
        return subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode


def compile_mutant(each: Mutant, place: Path, log: Path, target: str) -> Path:
    changed: dict[str, str] = {}
    for edit in each.edits:
        text = changed.get(edit.path) or (ENGINE / edit.path).read_text(encoding="utf-8")
        if text.count(edit.before) != 1:
            raise LookupError(f"{edit.path} has {text.count(edit.before)} times: {edit.before!r}")
        changed[edit.path] = text.replace(edit.before, edit.after)
    objects = []
    for path, text in changed.items():
        source = place / path.replace("/", "_")
        source.write_text(text, encoding="utf-8")
        objects.append(str(source.with_suffix(".o")))
        flags = ["-std=c++20", "-O1", f"-I{ROOT}/src", "-isystem", f"{CEPH}/src/rocksdb/include",
                 "-idirafter", f"{CEPH}/src", "-idirafter", f"{CEPH}/src/rocksdb"]
        if run(["g++", *flags, "-c", str(source), "-o", objects[-1]], log):
            raise LookupError(f"does not compile, see {log}")
    program = place / target
    libraries = [str(BUILD / "libtablestore_sim_room.a"), str(BUILD / "libtablestore_engine.a"),
                 f"{CEPH}/build/src/rocksdb/librocksdb.a"]
    # The archive's own version of a changed file is never asked for.
    own = [str(BUILD / f"CMakeFiles/{target}.dir" / f"{each.relative_to(ROOT)}.o")
           for each in SOURCES[target]]
    fuse = ["-lfuse3"] if target == POWERCUT else []
    if run(["g++", *own, *objects, *libraries, "-lsnappy", "-llz4", "-lz", "-luring",
            "-lpthread", *fuse, "-o", str(program)], log):
        raise LookupError(f"does not link, see {log}")
    return program


def caught_below(program: Path, minutes: float, log: Path) -> str:
    """Below which file systems it is found: empty where one does not show it."""
    for fs in ("ext4", "xfs"):
        scratch = program.parent / fs
        scratch.mkdir()
        if not run([str(program), "--dir", str(scratch), "--fs", fs, "--minutes", str(minutes)],
                   log):
            return ""
        shutil.rmtree(scratch)
    return "ext4 and xfs"


def caught_by(program: Path, _minutes: float, log: Path) -> str:
    """Which part of the simulator finds it; empty: none."""
    random = [str(program), "--no-minimise", "--seeds", str(HISTORIES)]
    short = [str(program), "--exhaustive", "--transactions", "2"]
    for name, command in (("random", random), ("exhaustive", short)):
        if run(command, log):
            return name
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=1.0,
                        help="of power cuts, per mutant and file system")
    parser.add_argument("--powercut", action="store_true",
                        help="below real file systems: " + ", ".join(POWERCUT_MUTANTS))
    parser.add_argument("names", nargs="*", help="only these")
    arguments = parser.parse_args()
    default = POWERCUT_MUTANTS if arguments.powercut else [each.name for each in MUTANTS]
    target, find = (POWERCUT, caught_below) if arguments.powercut else (SIMULATOR, caught_by)
    place = BUILD / "mutants"
    caught = survived = 0
    for each in MUTANTS:
        if each.name not in (arguments.names or default):
            continue
        here = place / target / each.name
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir(parents=True)
        log = here / "log"
        began = time.monotonic()
        try:
            by = find(compile_mutant(each, here, log, target), arguments.minutes, log)
        except LookupError as error:
            by, log = "", Path(str(error))
        lines = log.read_text(errors="replace").splitlines() if by else []
        how = next((line for line in reversed(lines) if "FAILED" in line or "broken" in line or
                    "ssert" in line or "terminate" in line), "")
        caught += bool(by)
        survived += not by
        print(f"{'caught' if by else 'SURVIVED'} {each.name}: {each.what} "
              f"[{by or log}, {time.monotonic() - began:.0f} s] {how[:160]}", flush=True)
    print(f"{caught} passed, {survived} failed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
