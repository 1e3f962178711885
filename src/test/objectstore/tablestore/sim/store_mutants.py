#!/usr/bin/env python3
"""Do the tests find bugs of the store? Breaks the ObjectStore on purpose, one way at a time.

    python3 src/test/objectstore/tablestore/sim/store_mutants.py [--seeds N] [--jobs N] [NAME ...]
    python3 src/test/objectstore/tablestore/sim/store_mutants.py --sample N [--choice SEED]

As src/test/tablestore/sim/mutants.py does with the engine. Each mutant is compiled in place of the
file that it changes, as Ceph's build would, linked with its judge, and must make that fail: with
ceph_tablestore_sim, or, where it names some of the store's own tests, with ceph_test_tablestore.
The controls change nothing, and no judge may find them: of all files that mutants change they
compile the text as it is, in the same way, and they are judged for as long as mutants are. What
does not compile, or does not come to an end in time, is unknown, and counts as failed: nothing is
known of the judge then. Runs inside the environment, where these programs have been built; ends
with a line of counts.
"""
import argparse
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tablestore/sim"))

from mutants import Mutant, Unknown, mutant, run  # noqa: E402

BUILD = Path("/ceph/build")
STORE = Path("/ceph/src/os/tablestore")
SIMULATOR, TESTS = "bin/ceph_tablestore_sim", "bin/ceph_test_tablestore"
OUT = Path("/unit/store_mutants")
DAMAGE = "errors,full,damage"

UNVERIFIED = """  data.assign(pieces.size(), {});
  for (size_t i = 0; i < pieces.size(); ++i) {
    const uint64_t length = pieces[i].physical.length_bytes();
    ceph::buffer::ptr memory(ceph::buffer::create_aligned(length, block_bytes));
    const std::span bytes(reinterpret_cast<std::byte*>(memory.c_str()), length);
    (void)engine.read(pieces[i].physical, bytes);
    data[i].push_back(std::move(memory));
  }
  const int all = 0;
"""

MUTANTS = (
    mutant("moved_unverified", "what is moved gets checksums of whatever was read",
           ("object/object_move.cc",
            "  const int all = read_pieces(*o, pieces, &data);\n", UNVERIFIED),
           ("object/object_move.cc", "part.first_block, extents, part.checksums);",
            "part.first_block, extents, of_memory);")),
    mutant("moved_without_row", "blocks are moved, and the object's row says where they were",
           ("object/object_move.cc", "    txn.dirty(o);\n    bytes +=",
            "    txn.touch(o);\n    bytes +=")),
    mutant("moved_for_one", "what clones share is moved for one of them",
           ("object/object_move.cc", "    const OnodeRef& o = owners[use.owner];\n",
            "    const OnodeRef& o = owners[use.owner];\n"
            "    if (use.owner != what.uses.front().owner)\n      continue;\n")),
    mutant("moved_uncounted", "whoever is found to share blocks is taken for all of them",
           ("object/object_move.cc", "  return agree && references.is_counted(name, out->blocks)",
            "  return agree && !out->blocks.empty()"),
           tests="StoreCompaction.*"),
    mutant("moved_although_changed", "what was changed since it was read is moved all the same",
           ("object/object_move.cc",
            "  return there == part.from && checksums == part.checksums;\n",
            "  return there.size() > 0;\n"),
           tests="StoreCompactionInterrupted.*"),
    mutant("moved_although_cloned", "what was cloned since it was read is moved all the same",
           ("compaction/container_compaction.cc", "|| !still.is_of(what))", ")"),
           tests="StoreCompactionInterrupted.*"),
    mutant("mover_waits_for_the_throttle", "a compaction of containers waits for others' room",
           ("txn/txn_queue.cc",
            "  const Status reserved = parts.engine.reserve(reservation);\n",
            "  txc->throttled_ops = 1;\n  wait_for_throttle(*txc, nullptr);\n"
            "  const Status reserved = parts.engine.reserve(reservation);\n"),
           tests="StoreCompactionInterrupted.ItEnds*"),
    mutant("refcount_not_written", "the references of shared blocks stay in memory",
           ("object/reference_maps.cc",
            "    txn.put(Family::super, key, map.encode());\n", "    ;\n")),
    mutant("free_while_shared", "a block is freed with the first of its owners",
           ("object/object_data.cc", "  if (!e.shared) {\n    txn.free",
            "  if (true) {\n    txn.free")),
    mutant("share_without_reference", "a clone shares blocks and takes no reference",
           ("object/reference_maps.cc", "  if (!map->add_reference(part.block, part.blocks)) {",
            "  if (false) {")),
    mutant("clone_lost_for_a_moment", "what cannot be read just now of references is damaged",
           ("object/reference_maps.cc", "    return -found.status().code();\n",
            "    return -EIO;\n"),
           tests="StoreRowRetries.*"),
    mutant("unshared_row_left", "the references of blocks that are one object's own again stay",
           ("object/reference_maps.cc",
            "    txn.dirty(map);\n    ++departures_of(*e);\n", "    ++departures_of(*e);\n")),
    mutant("unshared_too_early", "blocks that two objects have become one's own",
           ("object/reference_maps.cc", "    if (p->second.references > 1)\n",
            "    if (p->second.references > 2)\n")),
    mutant("name_handed_over", "a block that names a shared extent becomes one object's own",
           ("object/reference_maps.cc", "  return block > first_block || nothing_behind;\n",
            "  return block > first_block || nothing_behind || p != runs.end();\n"),
           tests="UnsharingTest.WhatLiesBetweenBlocksOfOthersIsHandedOver"),
    mutant("departure_unseen", "who shares with nobody any more does not look again",
           ("object/reference_maps.cc",
            "  ++departures_of(e);\n  for (const Extent& extent : lost) {\n",
            "  for (const Extent& extent : lost) {\n"),
           tests="UnsharingTest.*"),
    mutant("never_freed", "overwritten blocks are not freed",
           ("object/object_data.cc", "    txn.free(e.physical);\n", "")),
    mutant("shard_not_written", "a changed shard of the extent map is not written",
           ("object/extent_map.cc",
            "      txn.put(Family::object, key, shard.encode());\n", "")),
    mutant("shard_left_behind", "shards of a removed object stay",
           ("object/extent_map.cc", "    if (shard.has_row)\n      txn.erase",
            "    if (false)\n      txn.erase")),
    mutant("inline_left_behind", "inline data that has become blocks stays as a row",
           ("object/object_data.cc", "      txn.erase(Family::data, key);\n", "")),
    mutant("inline_checksum_stale", "the checksum of inline data is not renewed",
           ("object/object_data.cc",
            "      o->inline_checksum = o->inline_lost ? checksum_of_lost(checksum) : checksum;\n",
            "")),
    mutant("omap_left_behind", "omap rows of a removed object stay",
           ("omap/omap_writer.cc",
            "  txn.erase_range(Family::omap, first, last);\n", "")),
    mutant("omap_not_pinned", "an object whose omap alone changes may leave the cache at once",
           ("omap/omap_writer.cc", "  txn.touch(o);\n", "")),
    mutant("omap_clone_too_early", "a clone's omap is copied before the source's is applied",
           ("omap/omap_writer.cc", "  from->last_omap_change.wait_applied();\n", "")),
    mutant("statfs_forgotten", "freed blocks stay in the pool's statistics",
           ("object/object_data.cc",
            "  stats(txn, o)[PoolStats::allocated_bytes] -= extent.length_bytes();\n", "")),
    mutant("last_block_counted_whole", "a growing object's last block stays counted to its old end",
           ("object/object_data.cc",
            "  stats(txn, o)[PoolStats::stored_bytes] += tail_before - int64_t(tail_bytes(o));\n",
            "")),
    mutant("statistics_not_written", "the pool's statistics stay in memory",
           ("space/pool_totals.cc", "    txn.add(pool_stats_key(pool), delta.values);\n", "")),
    mutant("rename_keeps_old", "the old row of a renamed or removed object stays",
           ("txn/txn_builder.cc", "      erase_onode(txc, *o);\n", "")),
    mutant("onode_not_written", "an object whose attributes only are removed is not written",
           ("txn/txn_builder.cc", "    o->attrs.clear();\n    txc.dirty(o);\n",
            "    o->attrs.clear();\n")),
    mutant("meta_locked_early", "the meta collection is locked while other objects are read",
           ("txn/txn_scan.cc", "scan.meta_can_wait = kinds.meta &&",
            "scan.meta_can_wait = scan.ops == 0 && kinds.meta &&"),
           tests="StoreMetaLock.OneThatReadsHoldsUpNoOther"),
    mutant("split_not_written", "a split's bits stay in memory",
           ("txn/txn_builder_collections.cc",
            "  c.node.bits = bits;\n  put_collection_row(c);\n", "  c.node.bits = bits;\n")),
    mutant("collection_left_behind", "the row of a removed collection stays",
           ("txn/txn_builder_collections.cc",
            "  CopiedRow::erase(txc, collection_key((*c)->cid));\n", "")),
    mutant("copy_left_behind", "the copy of the row of a removed collection stays",
           ("home/copied_row.cc", "  txn.erase(Family::object, copy_key(key));\n", "")),
    mutant("no_barrier", "what another handle queued for the same objects may be overtaken",
           ("txn/txn_queue.cc",
            "      txc->follows.push_back(locked->last_change.osr.get());\n", "      ;\n"),
           ("txn/txn_builder_collections.cc", "  txc.barrier = true;\n", "")),
    mutant("numbers_again", "object numbers are given out again after a crash",
           ("object/nid_allocator.cc",
            "    NidAllocator::put(*this, max);\n", "")),
    mutant("tail_not_zeroed", "bytes behind the end of a truncated object come back",
           ("object/object_write.cc",
            "  if (int r = zero_in_block(txn, o, size, cut.first * block_bytes); r < 0)\n"
            "    return r;\n", "")),
    mutant("acknowledged_too_early", "a transaction is acknowledged when it is queued",
           ("txn/txn_queue.cc",
            "  txc->seq = txc->osr->note_queued(parts.engine, std::move(txc->on_commit));\n",
            "  txc->seq = txc->osr->note_queued(parts.engine, {});\n"
            "  callbacks.queue(txc->osr->commit_queue, txc->on_commit);\n")),
    mutant("failure_remembered", "what a transaction that fails in its middle did stays in memory",
           ("object/onode_cache.cc",
            "  // Its name is the key; the caller's reference keeps it.\n", "  return;\n")),
    mutant("reload_forgotten", "what a failed transaction did to collections stays in memory",
           ("txn/txn_queue.cc", "  if (!scan.changes_collections)\n    return;\n",
            "  return;\n")),
    mutant("split_stale", "a split's bits are written, and memory keeps those before",
           ("txn/txn_builder_collections.cc",
            "  c.node.bits = bits;\n  put_collection_row(c);\n",
            "  const auto before = c.node.bits;\n  c.node.bits = bits;\n"
            "  put_collection_row(c);\n  c.node.bits = before;\n")),
    mutant("data_cache_stale", "blocks that are freed and written anew stay in the cache",
           ("object/object_data.cc", "  cache.invalidate(extent);\n", ""),
           ("object/object_write.cc", "    cache.invalidate(extent);\n", ""),
           tests="ObjectDataTest.BlocksThatAreWrittenAnewAreReadAnew"),
    mutant("truncate_stale", "inline data that is cut off stays in memory",
           ("object/object_data.cc", "  o.inline_dirty = true;\n  o.inline_lost = false;\n"
            "  o.inline_cache.reset();\n",
            "  o.inline_dirty = true;\n  o.inline_lost = false;\n"),
           ("object/object_data.cc", "  o.inline_cache = std::move(data);\n}\n",
            "  if (!o.inline_cache || o.inline_cache->length() < data.length())\n"
            "    o.inline_cache = std::move(data);\n}\n")),
    mutant("in_flight_ignored", "data that is being written is read from the disk",
           ("engine/engine.cc", "  if (impl_->in_flight.read(run, out)) {",
            "  if (false && impl_->in_flight.read(run, out)) {")),
    mutant("omap_range_too_long", "an omap range ends behind its last key",
           ("omap/omap_writer.cc", "omap_key(prefix, first), omap_key(prefix, last));",
            "omap_key(prefix, first), omap_key(prefix, last) + '\\0');")),
    mutant("omap_seek_inclusive", "what follows an omap key begins with it",
           ("omap/omap_reader.cc", "    range.first.push_back('\\0');", "    ;")),
    mutant("listing_continues_behind", "a listing that goes on leaves out where it goes on",
           ("collection/listing.cc", "std::max(first, request.start_key);",
            "std::max(first, request.start_key + '\\0');")),
    mutant("listing_too_early", "a listing does not wait for what is queued",
           ("collection/listing.cc", "  c.flush();\n", ""),
           tests="StoreReadYourWrites.ListingSeesCreatesAndRemovesAtOnce"),
    mutant("flush_commit_too_early", "flush_commit says that all is durable",
           ("collection/op_sequencer.cc", "  if (not_durable.empty())\n    return true;",
            "  if (!not_durable.empty() || c)\n    return true;"),
           tests="CollectionsTest.*"),
    mutant("checksum_not_verified", "what is read is not compared with its checksum",
           ("object/object_read.cc", "      if (is != expected)\n",
            "      if (is != expected && is == 0)\n")),
    mutant("damage_spreads", "one bad block makes all of its object unreadable",
           ("object/object_read.cc",
            "BlockRange range{block_floor(offset), block_ceil(offset + length)};",
            "BlockRange range{0, block_ceil(o->size)};")),
    mutant("damaged_is_absent", "an object whose row is damaged is not there",
           ("object/objects.cc", "           << e.what() << dendl;\n      lose_contents(*o);\n",
            "           << e.what() << dendl;\n")),
    mutant("lost_names_forgotten", "a repair does not note which names of objects were lost",
           ("check/table_check.cc", "      lost_names.lose(first, end);\n", "      ;\n")),
    mutant("known_name_forgotten", "of a removed object with a lost name nothing is noted",
           ("txn/txn_builder.cc", "      parts.lost_names.know(txc, o->key);\n", ""),
           tests="StoreRottenTableFile.WhatIsDoneToALostObjectIsKnownFromThenOn"),
    mutant("bad_retry_believed", "what a repeated read gives is not compared again",
           ("object/object_read.cc", "    bad = read_again(bad);\n",
            "  {\n    read_again(bad);\n    bad.clear();\n  }\n")),
    mutant("lost_mark_forgotten", "a block that could not be merged gets a checksum that is right",
           ("object/object_write.cc",
            "    (*checksums)[i] = checksum_of_lost((*checksums)[i]);\n", ""),
           tests="DamagedChanges.*"),
    mutant("damage_stops_removal", "an object that cannot be read cannot be removed",
           ("object/object_write.cc", "  const BlockRange all{0,",
            "  ceph::buffer::list data;\n"
            "  if (int r = read(o, 0, o->size, data, 0); r < 0)\n    return r;\n"
            "  const BlockRange all{0,")),
    mutant("read_error_ends_the_store", "what cannot be read to change an object ends the store",
           ("txn/txn_builder.cc", "  if (r != -EIO)\n    return r;\n  const OnodeRef changed",
            "  return r;\n  const OnodeRef changed"),
           tests="StoreDamagedPart.*"),
    mutant("fast_shutdown_vouches_nothing", "a fast shutdown leaves the last group unvouched",
           ("TableStore.cc", "    store->engine.vouch();\n", "    ;\n"),
           tests="StoreFastShutdown.*"),
    mutant("unknown_part_is_a_hole", "what cannot be read of a map is a hole in the clone",
           ("object/object_clone.cc", "  for (const BlockRange& lost : unknown)\n",
            "  for (const BlockRange& lost : std::vector<BlockRange>())\n"),
           tests="DamagedChanges.*"),
    mutant("owners_unknown_without_copy", "the copy of the row of ownership is not looked at",
           ("engine/recovery.cc", "  for (const Family family : {Family::super, "
            "engine_rows::of_copies}) {\n    const auto found",
            "  for (const Family family : {Family::super}) {\n    const auto found"),
           tests="StoreRottenRows.OneOfTwo*"),
)

# Those which damage shows at once; the others show under errors and full disks, or in short
# histories. What the one judge does not find the others are asked for.
DAMAGE_FIRST = ("checksum_not_verified", "damage_spreads", "damaged_is_absent",
                "lost_names_forgotten", "bad_retry_believed",
                "damage_stops_removal", "moved_unverified")

# The unchanged text of everything that mutants change, for each judge.
CONTROLS = (mutant("control", "nothing is changed"),
            mutant("control_of_tests", "nothing is changed",
                   tests=":".join(sorted({each.tests for each in MUTANTS if each.tests}))))


def judge_of(each: Mutant) -> str:
    return TESTS if each.tests else SIMULATOR


def commands(target: str) -> list[str]:
    """What Ceph's build would run for a program; asking changes nothing of the build."""
    out = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", target], check=True,
                         capture_output=True, text=True).stdout
    return out.splitlines()


def compile_command(all_commands: list[str], path: str, source: Path, target: Path) -> list[str]:
    original = str(STORE / path)
    line = next(c for c in all_commands if c.endswith(f" -c {original}"))
    words = [w for w in shlex.split(line) if "ccache" not in w and w != "-MD"]
    for option in ("-MT", "-MF", "-o"):
        at = words.index(option)
        del words[at:at + 2]
    words[words.index(original)] = str(source)
    return [*words, "-o", str(target)]


def link_command(all_commands: list[str], target: str, objects: list[Path], program: Path) -> str:
    line = next(c for c in reversed(all_commands) if f" -o {target} " in c)
    line = re.sub(r"-Wl,--dependency-file=\S+", "", line)
    # The archive's own version of a changed file is never asked for.
    return line.replace(f" -o {target} ", f" {' '.join(map(str, objects))} -o {program} ")


def changed_files(each: Mutant) -> dict[str, str]:
    changed: dict[str, str] = {}
    for edit in each.edits:
        text = changed.get(edit.path) or (STORE / edit.path).read_text(encoding="utf-8")
        if text.count(edit.before) != 1:
            raise LookupError(f"{edit.path} has {text.count(edit.before)} times: {edit.before!r}")
        changed[edit.path] = text.replace(edit.before, edit.after)
    if each in CONTROLS:
        changed = {edit.path: (STORE / edit.path).read_text(encoding="utf-8")
                   for other in MUTANTS if judge_of(other) == judge_of(each)
                   for edit in other.edits}
    return changed


def build(each: Mutant, place: Path, log: Path) -> Path:
    target = judge_of(each)
    all_commands = commands(target)
    objects = []
    for path, text in changed_files(each).items():
        source = place / path.replace("/", "_")
        source.write_text(text, encoding="utf-8")
        objects.append(source.with_suffix(".o"))
        if run(compile_command(all_commands, path, source, objects[-1]), log):
            raise LookupError(f"does not compile, see {log}")
    program = place / Path(target).name
    link = f"cd {BUILD} && {link_command(all_commands, target, objects, program)}"
    if run(["bash", "-c", link], log):
        raise LookupError(f"does not link, see {log}")
    return program


def caught_by_tests(program: Path, tests: str, log: Path) -> str:
    scratch = program.parent / "tests"
    scratch.mkdir()
    in_scratch = ["env", "-C", str(scratch), f"TABLESTORE_TEST_DIR={scratch}", str(program),
                  f"--gtest_filter={tests}"]
    # What finds no test finds nothing, and a filter may have got old.
    listed = subprocess.run([*in_scratch, "--gtest_list_tests"], capture_output=True, text=True,
                            check=True).stdout
    if not any(line.startswith("  ") for line in listed.splitlines()):
        raise LookupError(f"there is no test {tests}")
    found = "tests" if run(in_scratch, log) else ""
    shutil.rmtree(scratch)
    return found


def caught_by(each: Mutant, program: Path, seeds: int, log: Path) -> str:
    """What finds it; empty: nothing does."""
    if each.tests:
        return caught_by_tests(program, each.tests, log)
    common = ["--no-minimise", "--seeds", str(seeds), "--faults"]
    parts = [("random", [*common, "errors,full"]), ("damage", [*common, DAMAGE]),
             ("exhaustive", ["--exhaustive", "--transactions", "2", "--minutes", "5"])]
    if each.name in DAMAGE_FIRST:
        parts[:2] = reversed(parts[:2])
    for part, words in parts:
        if run([str(program), *words], log):
            return part
    return ""


def try_mutant(each: Mutant, seeds: int) -> bool:
    """Whether all is as it should be: a mutant is caught, and a control is not."""
    place = OUT / each.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    log = place / "log"
    began = time.monotonic()
    good, found = False, ""
    try:
        program = build(each, place, log)
        by = caught_by(each, program, seeds, log)
        program.unlink()
        good = bool(by) != (each in CONTROLS)
        found = f"caught by {by}" if by else "not found"
    except (LookupError, Unknown) as error:
        found = f"unknown: {error}"
    lines = log.read_text(errors="replace").splitlines() if "caught" in found else []
    how = next((line for line in lines if "FAILED" in line), "")
    print(f"{'ok' if good else 'FAILED'} {each.name}: {each.what} "
          f"[{found}, {time.monotonic() - began:.0f} s] {how[:200]}", flush=True)
    return good


def chosen(arguments: argparse.Namespace) -> list[Mutant]:
    if arguments.sample:
        choice = arguments.choice or random.SystemRandom().randrange(1, 1 << 31)
        print(f"a choice of {arguments.sample}: --choice {choice}", flush=True)
        # Without a control: who runs a sample runs the simulator and the tests, too.
        return random.Random(choice).sample(MUTANTS, arguments.sample)
    return [each for each in (*CONTROLS, *MUTANTS)
            if not arguments.names or each.name in arguments.names]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=500, help="random histories of each part")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--sample", type=int, default=0, help="so many, chosen anew each time")
    parser.add_argument("--choice", type=int, default=0, help="that choice again")
    parser.add_argument("names", nargs="*", help="only these")
    arguments = parser.parse_args()
    wanted = chosen(arguments)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        good = sum(pool.map(lambda each: try_mutant(each, arguments.seeds), wanted))
    print(f"{good} passed, {len(wanted) - good} failed")
    return 1 if good < len(wanted) else 0


if __name__ == "__main__":
    sys.exit(main())
