#!/usr/bin/env python3
"""TableStore beside BlueStore, KStore and MemStore on this machine's disk: the
same load, the same memory, the same durability, a fresh store for each run,
rounds interleaved. Writes all figures to a JSON file and prints what they say."""
from __future__ import annotations

import argparse
import contextlib
import datetime
import fcntl
import json
import os
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any, TextIO

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(CHECKOUT / "bench"), str(CHECKOUT / "qa/cluster")]

from cephcluster.errors import ClusterError, Interrupted  # noqa: E402
from cephcluster.file_system import KINDS  # noqa: E402
from cephcluster.wait import signals_as_exceptions  # noqa: E402
from storebench import table as tables  # noqa: E402
from storebench.calm import MOST_STOLEN, calmest, never_calm  # noqa: E402
from storebench.cells import LEVELS, Cell, chosen  # noqa: E402
from storebench.failures import failures_of  # noqa: E402
from storebench.figures import all_runs_of, summaries  # noqa: E402
from storebench.machine import describe, place, place_text  # noqa: E402
from storebench.numbers import number  # noqa: E402
from storebench.own_fs import OwnFileSystem  # noqa: E402
from storebench.runner import Runner, RunError  # noqa: E402
from storebench.sustained import is_sustained, quarters_table, work_done  # noqa: E402
from storebench.variants import VARIANTS  # noqa: E402

STATE = Path(os.environ.get("TABLESTORE_STATE", "/state"))
FOLDER = "bench"    # there, and on the file system below one of its own
SECONDS = {"quick": 2.0, "usual": 4.0, "full": 20.0, "sustained": 900.0, "clients": 15.0}
ROUNDS = {"quick": 3, "usual": 3, "full": 5, "sustained": 1, "clients": 3}
TRIES = {"sustained": 1}    # a long run averages over what the host does
DEFAULT_SECONDS = 2.0  # what Cell.lasts assumes


class Line:
    """What happens now, on a terminal only."""

    def __init__(self) -> None:
        self._shown = sys.stdout.isatty()
        self.prefix = ""

    def now(self, text: str) -> None:
        if self._shown:
            print(f"\r\033[K{self.prefix}{text}"[:160], end="", flush=True)

    def say(self, text: str) -> None:
        if self._shown:
            print("\r\033[K", end="")
        print(text, flush=True)


def estimated_seconds(cells: list[Cell], seconds: float, rounds: int) -> float:
    return rounds * sum(
        len(cell.stores) * (cell.lasts + (cell.seconds or seconds) - DEFAULT_SECONDS)
        for cell in cells)


def in_turn(stores: tuple[str, ...], round_number: int) -> tuple[str, ...]:
    """Each round begins with another store: what one of them leaves to the next, as discards or
    an idle disk's credit, does not always fall to the same one."""
    first = (round_number - 1) % len(stores)
    return stores[first:] + stores[:first]


def measure(options: argparse.Namespace, cells: list[Cell], runner: Runner,
            line: Line) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = []
    total = options.rounds * sum(len(cell.stores) for cell in cells)
    runner.write_blocks(cells)
    turn = random.randrange(1000)       # sessions of one round have not all the same order
    for number in range(1, options.rounds + 1):
        for cell in cells:
            moment = random.random()
            for variant in in_turn(cell.stores, number + turn):
                line.prefix = f"{len(runs) + 1}/{total} {cell.name} on {variant}: "
                line.now("")
                began = time.monotonic()
                try:
                    result = calmest(lambda: runner.run(cell, variant, options.seconds, moment),
                                     options.tries)
                except (RunError, ClusterError, OSError) as error:
                    if not options.keep_going:
                        raise
                    said = "\n".join([str(error), *getattr(error, "details", [])])
                    line.say(f"round {number} {cell.name} {variant}: FAILED\n{said}")
                    result = {"failed": said}
                runs.append({"round": number, "cell": cell.name, "variant": variant,
                             "took_seconds": round(time.monotonic() - began, 1),
                             "result": result})
                write_json(options, cells, runs)
                line.say(f"round {number} {cell.name:22} {variant:20} {brief(result)}")
    return runs


def brief(result: dict[str, Any]) -> str:
    parts = []
    for phase in result.get("phases", []):
        if phase["seconds"]:
            parts.append(f"{phase['name']} {phase['operations'] / phase['seconds']:.0f}/s"
                         f" {phase['latency_us']['mean']:.0f} us")
    for name, value in list(result.get("values", {}).items())[:3]:
        parts.append(f"{name} {number(value)}")
    shares = result.get("stolen_shares", [0])
    if max(shares) > 0.01:
        parts.append("stolen " + " ".join(f"{share:.0%}" for share in shares))
    return ", ".join(parts)


def write_json(options: argparse.Namespace, cells: list[Cell],
               runs: list[dict[str, Any]]) -> None:
    """After each run: what was measured is kept when something goes wrong later.
    A line for each run."""
    head = {
        "level": options.level, "seconds": options.seconds, "rounds": options.rounds,
        "most_stolen": MOST_STOLEN, "tries": options.tries,
        "started": options.started, "machine": options.machine,
        "cells": [cell.name for cell in cells],
    }
    lines = ",\n".join(json.dumps(run, separators=(",", ":")) for run in runs)
    text = json.dumps(head, indent=1)[:-2] + f',\n "runs": [\n{lines}\n]}}\n'
    part = options.json.with_suffix(".part")
    part.write_text(text)
    part.rename(options.json)


def load(paths: list[Path]) -> list[dict[str, Any]]:
    return all_runs_of(json.loads(path.read_text()) for path in paths)


def show(runs: list[dict[str, Any]]) -> None:
    """Those that failed have no figures, and come last."""
    show_figures([run for run in runs if "failed" not in run["result"]])
    failures = failures_of([{"runs": runs}])
    if failures:
        print(f"\nFAILED: {failures.total} of {len(runs)} runs")
    for (cell, variant), (failed, total) in failures.counts.items():
        print(f"  {cell} on {variant}: {failed} of {total}")


def show_figures(runs: list[dict[str, Any]]) -> None:
    long_runs = [run for run in runs if is_sustained(run)]
    if long_runs:
        show_sustained(long_runs)
    if len(long_runs) == len(runs):
        return
    runs = [run for run in runs if not is_sustained(run)]
    table = summaries(runs)
    for part in (tables.cells_table, tables.clusters_table, tables.run_values, tables.goals_table,
                 tables.contention):
        lines = list(part(table))
        print("".join(f"\n{each}" for each in lines))
    disturbed = never_calm(runs)
    if disturbed:
        print(f"Never calm, and so worth little: {', '.join(disturbed)}.")


def show_sustained(runs: list[dict[str, Any]]) -> None:
    table = summaries(runs)
    for part in (quarters_table(table), work_done(runs), tables.contention(table)):
        print()
        for each in part:
            print(each)


def only_one() -> TextIO:
    """Two at a time would measure each other. Held until the program ends."""
    lock = open(STATE / "bench.lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("bench: another ./run bench is measuring; wait for it or end it")
    return lock


def run(options: argparse.Namespace) -> None:
    cells = chosen(options.level, options.workloads, options.stores)
    if not cells:
        sys.exit("bench: no workload matches; ./run bench --list names them")
    if options.list:
        for cell in cells:
            print(f"{cell.name:24} {' '.join(cell.stores)}")
        return
    options.out.mkdir(parents=True, exist_ok=True)
    with only_one(), contextlib.ExitStack() as stack:
        place_below, below = {}, None
        if options.fs:
            place_below = {"below": place(STATE)}
            print(f"making {options.fs} on a disk of {options.fs_size} GiB", flush=True)
            shutil.rmtree(STATE / FOLDER, ignore_errors=True)   # what a killed run has left
            own = stack.enter_context(OwnFileSystem(options.fs, options.fs_size << 30, STATE))
            below = own.below / FOLDER
        options.machine = describe(STATE, options.commit) | place_below
        measure_all(options, cells, below)


def measure_all(options: argparse.Namespace, cells: list[Cell], below: Path | None) -> None:
    options.started = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    options.json = options.out / f"{options.started[:16].replace(':', '')}-{options.level}.json"
    line = Line()
    runner = Runner(STATE / FOLDER, line.now, below)
    line.say(f"on {place_text(options.machine)}")
    if options.machine["file_system"].get("journal") == "none":
        line.say("No store should be on such a file system, and a first touch of space costs less"
                 " there than on others: --fs ext4 or --fs xfs measures on one of its own.")
    minutes = estimated_seconds(cells, options.seconds, options.rounds) / 60
    line.say(f"{len(cells)} workloads, {options.rounds} rounds, {options.seconds:g} s each:"
             f" about {minutes:.0f} minutes on a calm machine")
    began = time.monotonic()
    try:
        runs = measure(options, cells, runner, line)
    finally:
        line.now("removing the stores")
        runner.close()
        line.now("")
    show(runs)
    print(f"\n{options.json} has all of it; it took {(time.monotonic() - began) / 60:.0f} minutes")


def names(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def stores(text: str) -> list[str]:
    for name in names(text):
        if name not in VARIANTS:
            raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join(VARIANTS)}")
    return names(text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__,
                                     allow_abbrev=False)
    level = parser.add_mutually_exclusive_group()
    level.add_argument("--quick", dest="level", action="store_const", const="quick",
                       help="a first picture in half an hour")
    level.add_argument("--full", dest="level", action="store_const", const="full",
                       help="everything, as for the documents: many hours")
    level.add_argument("--sustained", dest="level", action="store_const", const="sustained",
                       help="a quarter of an hour for each store and workload, by quarters")
    level.add_argument("--clients", dest="level", action="store_const", const="clients",
                       help="one to three OSDs under rados bench, rbd bench, CephFS and S3:"
                       " hours")
    parser.set_defaults(level="usual")
    parser.add_argument("--stores", type=stores, default=[], metavar="LIST",
                        help="only these; also variants that are not compared by default")
    parser.add_argument("--workloads", type=names, default=[], metavar="LIST",
                        help="only those whose names begin so, or match (new-*-qd1)")
    parser.add_argument("--rounds", type=int, metavar="N",
                        help=f"(default: {ROUNDS['usual']}, with --full {ROUNDS['full']}, with"
                        f" --sustained {ROUNDS['sustained']})")
    parser.add_argument("--seconds", type=float, metavar="S", help="of measuring in each run")
    parser.add_argument("--minutes", type=float, metavar="M",
                        help="the same; at least 15 for what --sustained is to show")
    parser.add_argument("--tries", type=int, metavar="N",
                        help="a run is made so often at most, until a virtual machine's host took"
                        f" no more than {MOST_STOLEN * 100:.0f} %% of the processors;"
                        " the calmest counts (default: 3, with --sustained 1)")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench/results", metavar="DIR",
                        help="where the JSON goes (default: bench/results)")
    parser.add_argument("--fs", choices=KINDS, default="",
                        help="measure on a new file system of this kind, on a loop device with"
                        " direct I/O on a file that is written first; for a machine whose disk has"
                        " another one (default: where TABLESTORE_CACHE is)")
    parser.add_argument("--fs-size", type=int, default=40, metavar="GIB",
                        help="of that file (default: 40)")
    parser.add_argument("--commit", default="unknown", help=argparse.SUPPRESS)
    parser.add_argument("--keep-going", action="store_true",
                        help="a run that fails does not end the whole")
    parser.add_argument("--list", action="store_true", help="names the workloads, runs nothing")
    parser.add_argument("--show", nargs="+", type=Path, metavar="JSON",
                        help="prints the tables of earlier results, runs nothing")
    options = parser.parse_args()
    options.rounds = options.rounds or ROUNDS[options.level]
    options.tries = options.tries or TRIES.get(options.level, 3)
    if options.minutes:
        options.seconds = options.minutes * 60
    options.seconds = options.seconds or SECONDS[options.level]
    return options


def main() -> None:
    options = parse()
    if options.show:
        show(load(options.show))
        return
    signals_as_exceptions()
    try:
        run(options)
    except RunError as error:
        print(f"\nbench: {error}", file=sys.stderr)
        sys.exit(1)
    except ClusterError as error:
        print(flush=True)
        error.report("bench")
        sys.exit(1)
    except Interrupted as interrupted:
        print("\nbench: interrupted; the stores are removed, the results so far are kept",
              file=sys.stderr)
        sys.exit(128 + interrupted.signal_number)


if __name__ == "__main__":
    main()
