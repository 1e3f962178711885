#!/usr/bin/env python3
"""What Debian's hardening flags cost the store: hardening.py --out FILE

    sudo ./run exec python3 /tablestore/bench/hardening.py --out /state/hardening.json

Ceph's build has these flags, so what is packaged is what all other figures are of. Here the store
is compiled once more without them, and linked to the benchmark in the place of the other; RocksDB
and Ceph's own parts stay. Both run turn by turn.
"""
import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "packaging/tests"))

from rebuild import BUILD, Step, commands, compilations  # noqa: E402

PROGRAM = "bin/ceph_tablestore_bench"
ROOM = Path("/unit/unhardened")
WITHOUT = {"-D_FORTIFY_SOURCE=2", "-fstack-clash-protection", "-fcf-protection",
           "-fstack-protector-strong"}
INSTEAD = ["-U_FORTIFY_SOURCE", "-fno-stack-clash-protection", "-fcf-protection=none",
           "-fno-stack-protector"]
CELLS = {
    "new-4K-qd16": ["--workload", "new", "--size", "4K", "--depth", "16"],
    "overwrite-4K-qd16": ["--workload", "overwrite", "--size", "4K", "--depth", "16",
                          "--objects", "256"],
    "read-4K-qd16-hot": ["--workload", "read", "--size", "4K", "--depth", "16", "--objects", "64"],
    "metadata": ["--workload", "metadata", "--objects", "20000"],
}


def compile_plain(step: Step) -> str:
    at = ROOM / step.output.replace("/", "_")
    words = [word for word in step.again(at) if word not in WITHOUT]
    subprocess.run([*words[:1], "-O2", *INSTEAD, *words[1:]], cwd=BUILD, check=True)
    return str(at)


def build(jobs: int) -> Path:
    ROOM.mkdir(parents=True, exist_ok=True)
    steps = [step for step in compilations() if "/os/tablestore/" in step.words[-1]]
    with ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(compile_plain, steps))
    line = next(each for each in reversed(commands(PROGRAM)) if f" -o {PROGRAM} " in each)
    program = ROOM / "ceph_tablestore_bench"
    line = re.sub(r"-Wl,--dependency-file=\S+", "", line)
    line = line.replace(f" -o {PROGRAM} ", f" -o {program} ")
    # Before the library, of which then no object of the store is asked for.
    line = re.sub(r"(/usr/bin/(?:c|g)\+\+) ", rf"\1 {' '.join(objects)} ", line, count=1)
    subprocess.run(["bash", "-c", line], cwd=BUILD, check=True)
    for each in objects:
        Path(each).unlink()
    return program


def run(program: Path, words: list[str], seconds: int) -> dict[str, float]:
    directory = Path("/state/hardening")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    done = subprocess.run(
        [str(program), "--store", "tablestore", "--dir", str(directory), "--seconds", str(seconds),
         "--set", "tablestore_capacity=8G", "--set", "tablestore_provision_size=2G", *words],
        check=True, capture_output=True, text=True)
    shutil.rmtree(directory)
    phases = json.loads(done.stdout[done.stdout.index('{"'):])["phases"]
    operations = sum(each["operations"] for each in phases)
    processor = sum(each["usage"]["user_seconds"] + each["usage"]["system_seconds"]
                    for each in phases)
    return {"operations": operations,
            "per_second": round(operations / sum(each["seconds"] for each in phases)),
            "processor_us": round(processor / operations * 1e6, 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    programs = {"hardened": BUILD / PROGRAM, "plain": build(options.jobs)}
    rounds: dict[str, list[dict[str, Any]]] = {cell: [] for cell in CELLS}
    for number in range(options.rounds):
        for cell, words in CELLS.items():
            names = list(programs) if number % 2 else list(programs)[::-1]
            rounds[cell].append({name: run(programs[name], words, options.seconds)
                                 for name in names})
    ratios = {}
    for cell, each in rounds.items():
        for figure in ("per_second", "processor_us"):
            found = [one["hardened"][figure] / one["plain"][figure] for one in each]
            ratios[f"{cell} {figure}"] = [round(ratio, 3) for ratio in found]
            print(f"{cell} {figure}: hardened / plain {statistics.median(found):.3f}"
                  f" ({min(found):.3f} - {max(found):.3f})")
    options.out.write_text(json.dumps({"what": "the store with and without hardening flags",
                                       "without": sorted(WITHOUT), "commit": options.commit,
                                       "rounds": rounds, "hardened/plain": ratios}, indent=1)
                           + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
