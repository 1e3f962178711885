#!/usr/bin/env python3
"""Ceph's own qa/standalone scripts, run on OSDs of this store. One test is one function TEST_* of
a script."""
import argparse
import os
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))

from cephcluster.config import LOGS, STATE, Layout  # noqa: E402
from cephcluster.ephemeral import sweep  # noqa: E402
from cephcluster.errors import ClusterError, Interrupted  # noqa: E402
from cephcluster.wait import signals_as_exceptions  # noqa: E402
from standalone.copy import copy_scripts  # noqa: E402
from standalone.room import Bench, Outcome, Room, check_store  # noqa: E402
from standalone.scripts import QUICK, Test, find_tests  # noqa: E402

CEPH = Path("/ceph")
STORES = ("tablestore", "bluestore")    # with checksums, and errors that can be injected
HINT = "one alone: './run test qa --only NAME'; '--store bluestore' tells whether it is ours"


class Runner:
    """Runs tests side by side; prints and counts each as it ends."""

    def __init__(self, bench: Bench, jobs: int):
        self.bench = bench
        self.jobs = jobs
        self.passed = self.failed = self.skipped = 0
        self._rooms: list[Room] = []
        self._lock = threading.Lock()   # of _rooms and _ended
        self._ended = False

    def run(self, tests: list[Test]) -> None:
        for test in tests:
            if test.skipped:
                self.skipped += 1
                print(f"skip {test.name}: {test.skipped}", flush=True)
        pool = ThreadPoolExecutor(self.jobs)
        try:
            running = [pool.submit(self._one, test) for test in tests if not test.skipped]
            for each in as_completed(running):
                self._report(each.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self._end()
            pool.shutdown(wait=True)

    def _one(self, test: Test) -> Outcome:
        room = Room(self.bench, test)
        with self._lock:
            if self._ended:
                raise ClusterError(f"{test.name} was not run")
            self._rooms.append(room)
        return room.run()

    def _end(self) -> None:
        with self._lock:
            self._ended = True
            for room in self._rooms:
                room.kill()

    def _report(self, outcome: Outcome) -> None:
        name = outcome.test.name
        seconds = f"({outcome.seconds:.0f} s, processors {outcome.processor_seconds} s)"
        if not outcome.failure:
            self.passed += 1
            print(f"ok   {name} {seconds}", flush=True)
            return
        self.failed += 1
        logs = Layout(self.bench.scratch).on_host(self.bench.logs / name)
        print(f"FAIL {name} {seconds}\n     {outcome.failure}; logs in {logs}")
        for line in outcome.details:
            print(f"         {line}")
        sys.stdout.flush()


def chosen(tests: list[Test], options: argparse.Namespace) -> list[Test]:
    found = [test for test in tests
             if (not options.only or any(word in test.name for word in options.only))
             and (not options.quick or test.quick)]
    if not found:
        sys.exit("no test is called like that; --list shows all")
    return sorted(found, key=lambda test: QUICK.index(test.function)) if options.quick else found


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run test qa", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few minutes: what CI runs")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="only tests with NAME in their name; may be repeated")
    parser.add_argument("--store", choices=STORES, default="tablestore",
                        help="(default: %(default)s)")
    parser.add_argument("--jobs", type=int, metavar="N", default=os.cpu_count(),
                        help="tests side by side (default: %(default)s)")
    parser.add_argument("--patience", type=int, metavar="N", default=1,
                        help="all waits N times as long, for a slow machine (default: 1)")
    parser.add_argument("--list", action="store_true", help="names of all tests")
    options = parser.parse_args()
    signals_as_exceptions()
    began = time.monotonic()
    sweep("qa")
    scratch = STATE / f"qa.{os.getpid()}"
    try:
        bench = Bench(scratch, LOGS / "qa", options.store, options.patience)
        changes = copy_scripts(CEPH, bench.ceph_root)
        tests = chosen(find_tests(bench.ceph_root / "qa" / "standalone"), options)
        if options.list:
            for test in tests:
                print(f"{test.name}{' (quick)' if test.quick else ''}")
            return
        bench.logs.mkdir(exist_ok=True)
        (bench.logs / "substitutions.diff").write_text(changes)
        check_store(bench)
        runner = Runner(bench, options.jobs)
        runner.run(tests)
    except ClusterError as error:
        error.report("qa")
        print("0 passed, 1 failed")
        sys.exit(1)
    except Interrupted as interrupted:
        print("\ninterrupted; everything is stopped and removed", file=sys.stderr)
        sys.exit(128 + interrupted.signal_number)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{time.monotonic() - began:.0f} s on {options.store}")
    if runner.failed:
        print(HINT)
    print(f"{runner.passed} passed, {runner.failed} failed, {runner.skipped} skipped")
    sys.exit(1 if runner.failed else 0)


if __name__ == "__main__":
    main()
