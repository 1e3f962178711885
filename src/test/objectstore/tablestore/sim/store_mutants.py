#!/usr/bin/env python3
"""Does the simulator find bugs of the store? Breaks the ObjectStore on purpose, one way at a time.

    python3 src/test/objectstore/tablestore/sim/store_mutants.py [--seeds N] [--jobs N] [NAME ...]

As src/test/tablestore/sim/mutants.py does with the engine. Each mutant is compiled in place of the
file that it changes, as Ceph's build would, linked with ceph_tablestore_sim, and must make it fail.
Runs inside the environment, where that program has been built; ends with a line of counts.
"""
import argparse
import re
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tablestore/sim"))

from mutants import Mutant, mutant, run  # noqa: E402

BUILD = Path("/ceph/build")
STORE = Path("/ceph/src/os/tablestore")
TARGET = "bin/ceph_tablestore_sim"
OUT = Path("/unit/store_mutants")

MUTANTS = (
    mutant("refcount_not_written", "the references of shared blocks stay in memory",
           ("object/reference_maps.cc",
            "    txn.put(Family::super, key, map.encode());\n", "    ;\n")),
    mutant("free_while_shared", "a block is freed with the first of its owners",
           ("object/object_data.cc", "  if (!e.shared) {\n    txn.free",
            "  if (true) {\n    txn.free")),
    mutant("share_without_reference", "a clone shares blocks and takes no reference",
           ("object/reference_maps.cc", "  if (!map->add_reference(part.block, part.blocks)) {",
            "  if (false) {")),
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
            "      o->inline_checksum = crc32c(0, row.data(), row.size());\n", "")),
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
           ("txn/txn_builder.cc", "      txc.erase(Family::object, o->key);\n", "")),
    mutant("onode_not_written", "an object whose attributes only are removed is not written",
           ("txn/txn_builder.cc", "    o->attrs.clear();\n    txc.dirty(o);\n",
            "    o->attrs.clear();\n")),
    mutant("split_not_written", "a split's bits stay in memory",
           ("txn/txn_builder_collections.cc",
            "  c.node.bits = bits;\n  put_collection_row(c);\n", "  c.node.bits = bits;\n")),
    mutant("collection_left_behind", "the row of a removed collection stays",
           ("txn/txn_builder_collections.cc",
            "  txc.erase(Family::super, collection_key((*c)->cid));\n", "")),
    mutant("no_barrier", "what another handle queued for the same objects may be overtaken",
           ("txn/txn_queue.cc",
            "locked->last_change.osr != txc->osr)\n      txc->barrier = true;",
            "locked->last_change.osr != txc->osr)\n      txc->barrier = false;"),
           ("txn/txn_builder_collections.cc", "  txc.barrier = true;\n", "")),
    mutant("numbers_again", "object numbers are given out again after a crash",
           ("object/nid_allocator.cc",
            "    put(Family::super, meta_key(row_name), bl.to_str());\n", "")),
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
)


def commands() -> list[str]:
    """What Ceph's build would run for the program; asking changes nothing of the build."""
    out = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", TARGET], check=True,
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


def link_command(all_commands: list[str], objects: list[Path], program: Path) -> str:
    line = next(c for c in reversed(all_commands) if f" -o {TARGET} " in c)
    line = re.sub(r"-Wl,--dependency-file=\S+", "", line)
    # The archive's own version of a changed file is never asked for.
    return line.replace(f" -o {TARGET} ", f" {' '.join(map(str, objects))} -o {program} ")


def build(each: Mutant, place: Path, log: Path, all_commands: list[str]) -> Path:
    changed: dict[str, str] = {}
    for edit in each.edits:
        text = changed.get(edit.path) or (STORE / edit.path).read_text(encoding="utf-8")
        if text.count(edit.before) != 1:
            raise LookupError(f"{edit.path} has {text.count(edit.before)} times: {edit.before!r}")
        changed[edit.path] = text.replace(edit.before, edit.after)
    objects = []
    for path, text in changed.items():
        source = place / path.replace("/", "_")
        source.write_text(text, encoding="utf-8")
        objects.append(source.with_suffix(".o"))
        if run(compile_command(all_commands, path, source, objects[-1]), log):
            raise LookupError(f"does not compile, see {log}")
    program = place / "sim"
    link = f"cd {BUILD} && {link_command(all_commands, objects, program)}"
    if run(["bash", "-c", link], log):
        raise LookupError(f"does not link, see {log}")
    return program


def caught_by(program: Path, seeds: int, log: Path) -> str:
    """Which part of the simulator finds it; empty: none."""
    random = [str(program), "--no-minimise", "--seeds", str(seeds)]
    short = [str(program), "--exhaustive", "--transactions", "2", "--minutes", "5"]
    for name, command in (("random", random), ("exhaustive", short)):
        if run(["timeout", "1800", *command], log):
            return name
    return ""


def try_mutant(each: Mutant, seeds: int, all_commands: list[str]) -> bool:
    place = OUT / each.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    log = place / "log"
    began = time.monotonic()
    try:
        program = build(each, place, log, all_commands)
        by = caught_by(program, seeds, log)
        program.unlink()
    except LookupError as error:
        by, log = "", Path(str(error))
    lines = log.read_text(errors="replace").splitlines() if by else []
    how = next((line for line in lines if "FAILED" in line), "")
    print(f"{'caught' if by else 'SURVIVED'} {each.name}: {each.what} "
          f"[{by or log}, {time.monotonic() - began:.0f} s] {how[:200]}", flush=True)
    return bool(by)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=500, help="random histories per mutant")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("names", nargs="*", help="only these")
    arguments = parser.parse_args()
    wanted = [m for m in MUTANTS if not arguments.names or m.name in arguments.names]
    all_commands = commands()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        caught = sum(pool.map(lambda m: try_mutant(m, arguments.seeds, all_commands), wanted))
    print(f"{caught} passed, {len(wanted) - caught} failed")
    return 1 if caught < len(wanted) else 0


if __name__ == "__main__":
    sys.exit(main())
