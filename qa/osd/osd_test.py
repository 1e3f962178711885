#!/usr/bin/env python3
"""Tests of a real OSD in a real cluster: clients, snapshots, crashes, scrub,
an operator's tools."""
import argparse
import faulthandler
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))

from cephcluster.cluster import Cluster  # noqa: E402
from cephcluster.config import STORES  # noqa: E402
from cephcluster.daemons import cause_of_death, tail_of  # noqa: E402
from cephcluster.ephemeral import EphemeralCluster  # noqa: E402
from cephcluster.errors import ClusterError, Interrupted  # noqa: E402
from cephcluster.file_system import KINDS  # noqa: E402
from cephcluster.wait import signals_as_exceptions  # noqa: E402
from osdtests import (boot, crash, damage, decay, dup, fast_commit,  # noqa: E402,F401
                      full, full_file_system, growth_errors, objects, rotten_rows,
                      store_tool, tools)  # they register their tests
from osdtests.bed import TESTS, Bed, Kind, Test  # noqa: E402

TEST_SECONDS = 900      # far more than any test takes; what waits for a client gives up earlier
HINT = "run it alone with './run test osd --only NAME'; --keep leaves its cluster running"


class Count:
    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    @contextmanager
    def one(self, name: str, explain: Callable[[], list[str]] = lambda: []
            ) -> Iterator[list[str]]:
        """Runs one test in its body: prints how it ended, swallows failures, with what `explain`
        says then. What the body puts into the list is printed beside "ok". A test that does not
        end says where it is, and ends the program."""
        began = time.monotonic()
        remarks: list[str] = []
        faulthandler.dump_traceback_later(TEST_SECONDS, exit=True, file=sys.stdout)
        try:
            yield remarks
        except Interrupted:
            raise
        except Exception as error:
            self.failed += 1
            print(f"FAIL {name} ({time.monotonic() - began:.1f} s)", flush=True)
            if isinstance(error, ClusterError):
                print(f"     {error}")
                for line in error.details:
                    print(f"         {line}")
            else:
                print(f"     {type(error).__name__}: {error}{place_of(error)}")
            for line in explain():
                print(f"         {line}")
            sys.stdout.flush()
        else:
            self.passed += 1
            remark = f": {remarks[0]}" if remarks else ""
            print(f"ok   {name} ({time.monotonic() - began:.1f} s){remark}", flush=True)
        finally:
            faulthandler.cancel_dump_traceback_later()


def place_of(error: Exception) -> str:
    trace = error.__traceback__
    places = []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{Path(code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f" ({' > '.join(places[1:])})"


def check_no_crash(cluster: Cluster) -> None:
    """An abort leaves a report; kill -9 does not. A manager also reports what a Python module of
    its own throws, and goes on."""
    reports = [path for path in (cluster.layout.root / "log" / "crash").glob("*")
               if path.name != "posted"
               and not any('"mgr_module"' in line for line in tail_of(path / "meta", 10_000))]
    if reports:
        raise ClusterError(f"{len(reports)} daemon(s) crashed",
                           details=cause_of_death(tail_of(reports[0] / "log", 10_000)))


def run_group(kind: Kind, tests: list[Test], options: argparse.Namespace, count: Count) -> None:
    """All tests that want a cluster of this kind, on one cluster."""
    bed_of = EphemeralCluster(f"osd-test{kind.title}", options.store, kind.osds, keep=options.keep,
                              osd_options=dict(kind.osd_options),
                              file_system=options.fs or kind.file_system,
                              file_system_bytes=kind.file_system_bytes)
    with count.one(f"cluster_of_{kind.title}_starts") as remarks:
        cluster = bed_of.__enter__()
        remarks.append(f"logs in {cluster.layout.on_host(cluster.layout.root / 'log')}")
    if not cluster_started(remarks):
        count.failed += len(tests)
        print(f"     {len(tests)} tests could not run")
        return
    try:
        bed = Bed(cluster)
        for test in tests:
            with count.one(test.name, bed.state) as remarks:
                bed.heal()
                remark = test.run(bed)
                if remark:
                    remarks.append(remark)
        with count.one(f"no_crash_in_cluster_of_{kind.title}"):
            check_no_crash(cluster)
    finally:
        bed_of.__exit__(*sys.exc_info())


def cluster_started(remarks: list[str]) -> bool:
    return bool(remarks)


def chosen(options: argparse.Namespace) -> list[Test]:
    tests = [test for test in TESTS if options.store in test.stores and (
        not options.only or any(word in test.name for word in options.only))]
    if not tests:
        sys.exit(f"no test is called like '{' '.join(options.only)}'; --list shows all")
    return sorted(tests, key=lambda test: (test.kind.osds, test.kind.name))


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run test osd", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="only tests with NAME in their name; may be repeated")
    parser.add_argument("--store", choices=STORES, default="tablestore",
                        help="(default: %(default)s)")
    parser.add_argument("--fs", choices=KINDS, default="", help="each OSD on a file system of its"
                        " own, of this kind (default: the cache's)")
    parser.add_argument("--list", action="store_true", help="names of all tests")
    parser.add_argument("--keep", action="store_true", help="leave the clusters running")
    options = parser.parse_args()
    tests = chosen(options)
    if options.list:
        for test in tests:
            osds = test.kind.osds
            print(f"{test.name} ({osds} {test.kind.name}{' ' if test.kind.name else ''}"
                  f"OSD{'s' if osds > 1 else ''})")
        return
    signals_as_exceptions()
    count = Count()
    began = time.monotonic()
    try:
        for kind, group in groupby(tests, key=lambda test: test.kind):
            run_group(kind, list(group), options, count)
    except Interrupted as interrupted:
        print("\ninterrupted; everything is stopped and removed", file=sys.stderr)
        sys.exit(128 + interrupted.signal_number)
    print(f"{time.monotonic() - began:.0f} s on {options.store}"
          f"{f' on {options.fs}' if options.fs else ''}")
    if count.failed:
        print(HINT)
    print(f"{count.passed} passed, {count.failed} failed")
    sys.exit(1 if count.failed else 0)


if __name__ == "__main__":
    main()
