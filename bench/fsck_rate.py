#!/usr/bin/env python3
"""How fast a deep fsck reads, beside what the disk gives.

    sudo ./run exec python3 /tablestore/bench/fsck_rate.py /state/osd:4194304 --out /state/rate.json

Of each store, which no OSD has open and which has objects of so many bytes:
`ceph-tablestore-tool fsck --deep`, and fio, which reads what the store's containers hold with
direct I/O, in the order of the files in large reads, and in a random order in reads of the objects'
size; turn by turn, with cold caches. --tool: of these programs, by a name each.
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DEPTH = 16                      # as many as the tool has in flight
PIECE = 4 << 20                 # and the most that it reads at once
UNWRITTEN = {"unwritten", "delalloc", "inline"}
EXTENT = re.compile(r"^ *\d+: *\d+\.\. *\d+: *\d+\.\. *\d+: *(\d+):(?: *\d+:)? *(.*)$")


def cold() -> None:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n", encoding="utf-8")


def written(path: Path) -> list[tuple[int, int]]:
    """Offset and length of what a file holds, in blocks of 4K."""
    lines = subprocess.run(["filefrag", "-b4096", "-v", str(path)], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    found = []
    for line in lines:
        if match := EXTENT.match(line):
            if not UNWRITTEN & set(re.split(r"[, ]+", match[2])):
                found.append((int(line.split(":")[1].split("..")[0]) * 4096,
                              int(match[1]) * 4096))
    return found


def pieces(store: Path, size: int) -> list[tuple[Path, int, int]]:
    """What the containers hold, in reads of `size`."""
    return [(path, at, min(size, offset + length - at))
            for path in sorted((store / "containers").rglob("*")) if path.is_file()
            for offset, length in written(path) for at in range(offset, offset + length, size)]


def by_fio(store: Path, size: int, order: str, bytes_max: int) -> dict[str, Any]:
    """fio's rate for reads of `size`, of at most so many bytes."""
    reads = pieces(store, size)
    if order == "random":
        reads.sort(key=lambda each: hash((each[0].name, each[1])))
    reads = reads[:max(1, bytes_max // size)]
    with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
        files = sorted({path for path, _, _ in reads})
        lines = ["fio version 2 iolog", *(f"{path} add" for path in files),
                 *(f"{path} open" for path in files),
                 *(f"{path} read {offset} {length}" for path, offset, length in reads),
                 *(f"{path} close" for path in files)]
        log.write("\n".join(lines) + "\n")
        log.flush()
        cold()
        done = subprocess.run(
            ["fio", "--name=read", "--ioengine=libaio", "--direct=1", f"--iodepth={DEPTH}",
             f"--read_iolog={log.name}", "--replay_no_stall=1", "--output-format=json",
             "--readonly"], check=True, capture_output=True, text=True)
    read = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]["read"]
    seconds = read["runtime"] / 1000
    return {"bytes": read["io_bytes"], "seconds": seconds,
            "bytes_per_second": round(read["io_bytes"] / seconds)}


def processor_seconds(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def by_tool(store: Path, tool: str) -> dict[str, Any]:
    cold()
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([tool, "fsck", "--deep", "--format", "json", "--path", str(store)],
                          capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{tool}: {done.stderr[-1000:]}{done.stdout[-1000:]}")
    said = json.loads(done.stdout)
    read = (after.ru_inblock - before.ru_inblock) * 512
    return {"bytes": read, "seconds": round(seconds, 3), "objects": said["objects"],
            "bytes_per_second": round(read / seconds), "check_seconds": said["seconds"],
            "cpu_seconds": round(processor_seconds(after) - processor_seconds(before), 2)}


def measure(store: Path, object_bytes: int, tools: dict[str, str],
            options: argparse.Namespace) -> dict[str, Any]:
    rounds: list[dict[str, Any]] = []
    for number in range(options.rounds):
        one: dict[str, Any] = {"disk": by_fio(store, PIECE, "files", options.bytes_max)}
        if object_bytes < PIECE:
            one["disk_random"] = by_fio(store, object_bytes, "random", options.bytes_max)
        one |= {name: by_tool(store, tool) for name, tool in tools.items()}
        rounds.append(one)
        print(f"{store} round {number + 1}: " + ", ".join(
            f"{name} {each['bytes_per_second'] / 1e6:.0f} MB/s" for name, each in one.items()),
            flush=True)
    disks = [name for name in rounds[0] if name.startswith("disk")]
    ratios = {f"{name}/{disk}": [round(one[name]["bytes_per_second"] /
                                       one[disk]["bytes_per_second"], 3) for one in rounds]
              for name in tools for disk in disks}
    for name, each in ratios.items():
        print(f"  {name}: median {statistics.median(each):.2f} of {each}")
    return {"store": store.name, "object_bytes": object_bytes, "rounds": rounds,
            "ratios": ratios}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("store", nargs="+", metavar="DIR:OBJECT_BYTES")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=PROGRAM")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes-max", type=int, default=4 << 30, help="that fio reads")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    tools = dict(each.split("=", 1) for each in options.tool) or {"fsck": "ceph-tablestore-tool"}
    results = []
    for each in options.store:
        store, _, object_bytes = each.partition(":")
        results.append(measure(Path(store), int(object_bytes or PIECE), tools, options))
    options.out.write_text(json.dumps(
        {"what": "fsck --deep beside the disk", "commit": options.commit, "depth": DEPTH,
         "stores": results}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
