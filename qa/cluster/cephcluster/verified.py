"""Runs the writer, ends it in one way or another, and then checks that every
acknowledged step is there: the crash contract of an OSD, seen by a client."""
from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import rados

from . import model
from .cluster import Cluster
from .errors import ClusterError
from .model import RUN, VERSION, Contents
from .wait import wait_until

STOP_SECONDS = 60
Possible = list[Contents | None]


class VerifiedWriter:
    """One pool's objects, what each may contain, and the process that changes
    them. Main thread only."""

    def __init__(self, cluster: Cluster, pool: str, *, objects: int = 160, threads: int = 8,
                 run: int = 0):
        self._cluster = cluster
        self._pool = pool
        self.objects = objects
        self._threads = threads
        self._run = run           # the last one; of a writer that another process has started
        self._process: subprocess.Popen[bytes] | None = None
        self._certain: dict[str, Contents | None] = {}
        self.acknowledged = 0     # in all runs

    @property
    def _log(self) -> Path:
        return self._cluster.layout.root / f"writer.{self._pool}.{self._run}.log"

    def start(self) -> None:
        self._run += 1
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "cephcluster.writer",
             "--conf", str(self._cluster.layout.conf), "--pool", self._pool,
             "--log", str(self._log), "--run", str(self._run),
             "--objects", str(self.objects), "--threads", str(self._threads)],
            cwd=Path(__file__).parent.parent, stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True)

    def wait_acknowledged(self, count: int, timeout: float = 60) -> None:
        """Until this run has `count` acknowledged steps."""

        def reached() -> bool:
            if self._process is not None and self._process.poll() is not None:
                self._raise_failure()
            return self.acknowledged_now() >= count

        wait_until(f"{count} acknowledged writes", reached, timeout, poll=0.05,
                   explain=lambda: [f"{self.acknowledged_now()} were"])

    def acknowledged_now(self) -> int:
        try:
            return self._log.read_bytes().count(b"a object")
        except FileNotFoundError:
            return 0

    def kill(self) -> None:
        """The client vanishes with its OSD: nothing is sent again afterwards."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Waits for the steps in flight; all of them must succeed."""
        if self._end(signal.SIGTERM) != 0:
            self._raise_failure()

    def _end(self, how: int) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(how)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise ClusterError(f"writes were still in flight {STOP_SECONDS} s after the"
                               " writer was told to stop") from None

    def _raise_failure(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        lines = self._process.stderr.read().decode(errors="replace").splitlines()
        raise ClusterError("the writer failed", details=lines[-8:])

    # -- checking ---------------------------------------------------------

    def check(self) -> int:
        """Every object must contain what its last acknowledged step made of
        it, or what the one step that was in flight makes of that. Returns the
        number of objects; what they contain is certain from then on."""
        possible = self._possible()
        io = self._cluster.client.open_pool(self._pool)
        wrong = []
        with ThreadPoolExecutor(self._threads) as readers:
            all_found = list(readers.map(lambda name: read(io, name), possible))
        for (name, contents), found in zip(possible.items(), all_found):
            if found in contents:
                self._certain[name] = found
            else:
                wrong.append(f"{name} {describe(found)};"
                             f" expected: {' or '.join(describe(each) for each in contents)}"
                             f"{first_difference(found, contents)}")
        strangers = {entry.key for entry in io.list_objects()} - possible.keys()
        io.close()
        wrong += [f"{name} is listed, nobody has written it" for name in strangers]
        if wrong:
            raise ClusterError(f"{len(wrong)} of {len(possible)} objects are wrong",
                               details=wrong[:10])
        return len(possible)

    def mark(self) -> int:
        """Now, as a place in the log of this run."""
        return self._log.read_bytes().rfind(b"\n") + 1

    def states_between(self, first: int, last: int) -> dict[str, Possible]:
        """What each object may have contained at a moment between two marks of this run, while no
        step was given up."""
        log = self._log.read_bytes()
        states = self._replayed(log[:first])
        for event, name, number in events(log[first:last]):
            contents = states.setdefault(name, [None])
            if event == "b":
                contents.append(model.apply(contents[-1], name, number))
        return states

    def _possible(self) -> dict[str, Possible]:
        if not self._log.exists():
            return self._replayed(b"")
        log = self._log.read_bytes()
        self.acknowledged += log.count(b"a object")
        return self._replayed(log)

    def _replayed(self, log: bytes) -> dict[str, Possible]:
        possible: dict[str, Possible] = {
            name: [contents] for name, contents in self._certain.items()}
        for event, name, number in events(log):
            contents = possible.setdefault(name, [None])
            if event == "b":
                contents.append(model.apply(contents[0], name, number))
            else:
                del contents[0]
        return possible


def events(log: bytes) -> Iterator[tuple[str, str, int]]:
    for line in log.decode().splitlines():
        event, name, digits = line.split()
        yield event, name, int(digits)


def read(io: rados.Ioctx, name: str) -> Contents | None:
    """Data, attribute and omap of an object, which must agree; and one range
    of it must be what the whole says."""
    try:
        size, _ = io.stat(name)
    except rados.ObjectNotFound:
        return None
    data = io.read(name, size + 1)
    offset = random.randrange(size + 1)
    length = random.randrange(1, 70_000)
    number = int(io.get_xattr(name, VERSION))
    with rados.ReadOpCtx() as operation:
        values, _ = io.get_omap_vals_by_keys(operation, (VERSION,))
        io.operate_read_op(operation, name)
        in_omap = int(dict(values)[VERSION])
    if len(data) != size:
        raise ClusterError(f"{name}: stat says {size} bytes, read returned {len(data)}")
    if in_omap != number:
        raise ClusterError(f"{name}: the attribute is from step {number}, the omap from {in_omap}:"
                           " a transaction was torn")
    if io.read(name, length, offset) != data[offset:offset + length]:
        raise ClusterError(f"{name}: {length} bytes from {offset} differ from a read of it all")
    return Contents(data, number)


def describe(contents: Contents | None) -> str:
    if contents is None:
        return "does not exist"
    run, number = divmod(contents.number, RUN)
    return f"has {len(contents.data)} bytes of step {run}/{number}"


def first_difference(found: Contents | None, expected: Possible) -> str:
    """Where the data went wrong, for a step that is an expected one."""
    for each in expected:
        if found and each and found.number == each.number:
            for offset, (one, other) in enumerate(zip(found.data, each.data)):
                if one != other:
                    return f" (byte {offset} is {one:#04x}, not {other:#04x})"
    return ""
