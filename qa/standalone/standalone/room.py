"""Runs one test of a script: its cluster, its ports and its processes are in namespaces of their
own, so that tests may run side by side and nothing of them stays behind."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from cephcluster.config import all_mgr_modules, store_options
from cephcluster.daemons import cause_of_death, ended, tail_of
from cephcluster.errors import ClusterError
from cephcluster.tool import run_tool

from . import inside
from .scripts import Test

# What `set -x` shows of a statement that gives up, with PS4 of Ceph's helpers.
GIVES_UP = re.compile(r"\S+:\d+: \w+:\s+return 1$")
LINES_BEFORE = 6


@dataclass(frozen=True)
class Outcome:
    test: Test
    seconds: float
    processor_seconds: str  # of daemons too; does not depend on how busy the machine is
    failure: str            # nothing when it passed
    details: list[str]


@dataclass(frozen=True)
class Bench:
    """Where and how tests are run."""

    scratch: Path           # on a real disk: the OSDs' stores are in there
    logs: Path              # outlive the run
    store: str
    patience: int = 1       # how many times as long as usual everything is waited for
    test_seconds: int = 1800

    @property
    def ceph_root(self) -> Path:
        return self.scratch / "ceph"


def ceph_conf(bench: Bench, logs: Path) -> str:
    osd = {"osd_objectstore": bench.store, "osd_class_load_list": "*",
           "osd_class_default_list": "*", "crash_dir": str(logs / "crash"),
           **store_options(bench.store)}
    sections = {
        # The mon is Debian's, which knows no store but BlueStore to have checksums.
        "mon": {"mon_debug_no_require_bluestore_for_ec_overwrites": "true"},
        # Of Debian's mgr: they fail to load, or would make a pool of their own.
        "mgr": {"mgr_disabled_modules": all_mgr_modules(), "mgr_initial_modules": ""},
        "osd": osd,
    }
    return "\n".join(f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in each.items())
                     for name, each in sections.items())


def check_store(bench: Bench) -> None:
    """A ceph-osd that does not know a store's name takes its default."""
    conf = bench.scratch / "ceph.conf"
    conf.write_text(ceph_conf(bench, bench.logs))
    used = run_tool("ceph-osd", "-c", conf, "-i", "0", "--show-config-value",
                    "osd_objectstore").strip()
    if used != bench.store:
        raise ClusterError(f"ceph-osd does not know {bench.store}: it would make a {used}",
                           hint="build the OSD of this project first: ./run setup")


class Room:
    """One running test. Used by one thread; `kill` by any."""

    def __init__(self, bench: Bench, test: Test):
        self.bench = bench
        self.test = test
        self.directory = bench.scratch / test.name
        self.logs = bench.logs / test.name
        self._lock = threading.Lock()   # of what follows
        self._killed = False
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> Outcome:
        began = time.monotonic()
        self._prepare()
        try:
            failure = self._run_script()
            details = self._why() if failure else []
            crash = self._crash()
            if crash:
                failure, details = f"a daemon crashed ({failure or 'the script passed'})", crash
            self._keep_logs(bool(failure))
            used = self._processor_seconds()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
        return Outcome(self.test, time.monotonic() - began, used, failure, details)

    def kill(self) -> None:
        """Ends all processes of the namespaces, now or as soon as they have started."""
        with self._lock:
            self._killed = True
            if self._process is not None:
                self._process.kill()

    def _prepare(self) -> None:
        shutil.rmtree(self.logs, ignore_errors=True)
        (self.logs / "crash").mkdir(parents=True)
        self.directory.mkdir(parents=True)
        (self.directory / "ceph.conf").write_text(ceph_conf(self.bench, self.logs))

    def _run_script(self) -> str:
        """Nothing, or how it failed."""
        environment = os.environ | {
            "CEPH_ROOT": str(self.bench.ceph_root),
            "TESTDIR": str(self.logs),     # where the helpers move the logs of a failed test
            "TABLESTORE_QA_CONF": str(self.directory / "ceph.conf"),
            "TABLESTORE_QA_STORE": self.bench.store,
            "TABLESTORE_QA_PATIENCE": str(self.bench.patience)}
        # Mounts are private already, where ./run has entered the environment.
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--pid", "--fork",
                   "--kill-child=KILL", "--mount", "--propagation", "unchanged",
                   sys.executable, inside.__file__, str(self.directory),
                   "bash", str(self.bench.ceph_root / "qa" / "standalone" / self.test.script),
                   self.test.function]
        limit = self.bench.test_seconds * self.bench.patience
        with open(self.logs / "output", "wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=output, env=environment)
            with self._lock:
                self._process = process
                if self._killed:
                    process.kill()
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return f"not done after {limit} s"
        return ended(code) if code != 0 else ""

    def _why(self) -> list[str]:
        """What the script did before it gave up."""
        lines = tail_of(self.logs / "output", 100_000)
        for at, line in enumerate(lines):
            if GIVES_UP.match(line) and all_give_up(lines[at:]):
                lines = lines[:at + 1]
                break
        return [line[:300] for line in lines[-LINES_BEFORE:]]

    def _crash(self) -> list[str]:
        reports = [path for path in (self.logs / "crash").glob("*") if path.name != "posted"]
        if not reports:
            return []
        return cause_of_death(tail_of(reports[0] / "log", 10_000)) or [str(reports[0])]

    def _processor_seconds(self) -> str:
        try:
            return (self.directory / inside.PROCESSOR_SECONDS).read_text()
        except FileNotFoundError:   # it was ended
            return "?"

    def _keep_logs(self, failed: bool) -> None:
        """Of a test that failed, the daemons' logs: Ceph's helpers have moved them already, unless
        they were ended."""
        if failed:
            for log in self.directory.glob("td/*/*.log"):
                target = self.logs / "archive" / "log" / log.name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(log, target)
        else:
            shutil.rmtree(self.logs / "archive", ignore_errors=True)


def all_give_up(lines: list[str]) -> bool:
    """Whether from the first line on every function returned its error to its caller, up to
    `main`, which then cleans up."""
    for line in lines:
        if ": main:" in line and line.endswith("code=1"):
            return True
        if not GIVES_UP.match(line):
            return False
    return False
