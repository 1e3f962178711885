"""rados bench, and the latency's tail, of which it does not tell."""
from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass

import rados

from .cluster import Cluster
from .errors import ClusterError
from .tool import run_tool
from .wait import wait_until

# rados bench ends a verified read when all objects were read; this is for a
# store that is very much slower in reading than in writing.
READ_SECONDS = 120

STAMP_BYTES = 32     # at the start of each object of a TailRun


@dataclass(frozen=True)
class Written:
    operations: int
    iops: float
    mb_per_second: float     # 10^6 bytes
    mean_ms: float


@dataclass(frozen=True)
class ReadBack:
    operations: int
    iops: float
    mb_per_second: float


class TailRun:
    """Writes for the latency's tail, of which rados bench says nothing: as many
    in flight, of the same size, every single one timed.

    Each completion starts the next write, in librados' one thread for such
    callbacks; once ended(), everything belongs to the main thread."""

    def __init__(self, io: rados.Ioctx, size: int, depth: int, most: int):
        self._io = io
        self._content = b"z" * (size - STAMP_BYTES)
        self._depth = depth
        self._most = most
        self._ended = 0
        self._numbers = itertools.count()
        self._deadline = 0.0
        self.error = 0
        self.milliseconds: list[float] = []

    def start(self, seconds: float) -> None:
        self._deadline = time.perf_counter() + seconds
        for _ in range(self._depth):
            self._issue()

    def ended(self) -> bool:
        return self._ended == self._depth

    def _issue(self) -> None:
        number = next(self._numbers)
        data = b"%*d" % (STAMP_BYTES, number) + self._content
        began = time.perf_counter()

        def completed(completion: rados.Completion) -> None:
            now = time.perf_counter()
            self.milliseconds.append((now - began) * 1000)
            self.error = self.error or min(0, completion.get_return_value())
            if self.error or now >= self._deadline or number >= self._most:
                self._ended += 1
            else:
                self._issue()

        self._io.aio_write_full(tail_name(number), data, oncomplete=completed)

    def p99(self) -> float:
        ordered = sorted(self.milliseconds)
        return ordered[int(len(ordered) * 0.99)]

    def remove(self) -> None:
        removals = [self._io.aio_remove(tail_name(number))
                    for number in range(len(self.milliseconds))]
        for removal in removals:
            removal.wait_for_complete()


def tail_name(number: int) -> str:
    return f"tail_{number}"


class RadosBench:
    """rados bench on one pool of a cluster. One size writes `most_bytes` at
    most, so that a long run does not fill the store."""

    def __init__(self, cluster: Cluster, pool: str, threads: int, most_bytes: int):
        self._cluster = cluster
        self._pool = pool
        self._threads = threads
        self._most_bytes = most_bytes

    def write(self, size: int, seconds: int) -> Written:
        result = self._run(["bench", str(seconds), "write", "-b", str(size), "-t",
                            str(self._threads), "--no-cleanup", "--max-objects",
                            str(self._most_bytes // size)], seconds)
        operations = int(result["total_writes_made"])
        iops = operations / result["total_time_run"]
        return Written(operations, iops, iops * size / 1e6, result["average_latency"] * 1000)

    def read_back(self) -> ReadBack:
        """Reads everything that the last write() wrote and compares every
        byte; a ClusterError names the objects that differ."""
        result = self._run(["bench", str(READ_SECONDS), "seq", "-t", str(self._threads)],
                           READ_SECONDS)
        operations = int(result["total_reads_made"])
        iops = operations / result["total_time_run"]
        return ReadBack(operations, iops, iops * result["read_size"] / 1e6)

    def clean_up(self) -> None:
        self._command(["cleanup", "-t", str(self._threads)], 120)

    def tail(self, size: int, seconds: float) -> float:
        """The 99th percentile of a write's latency, in ms."""
        io = self._cluster.client.open_pool(self._pool)
        run = TailRun(io, size, self._threads, self._most_bytes // size)
        run.start(seconds)
        wait_until(f"the last writes of {size} bytes", lambda: self._ended(run), seconds + 60)
        if run.error:
            raise ClusterError(f"a write of {size} bytes failed: error {run.error}")
        run.remove()
        io.close()
        return run.p99()

    def _ended(self, run: TailRun) -> bool:
        self._cluster.check_daemons()
        return run.ended()

    def _run(self, arguments: list[str], seconds: int) -> dict[str, float]:
        """The figures that rados bench prints as one JSON object of strings,
        after a line of another kind."""
        printed = self._command([*arguments, "--format", "json"], seconds + 120)
        try:
            figures = json.loads(printed[printed.index("{"):])
            return {name: float(text) for name, text in figures.items()
                    if isinstance(text, str) and name != "object_prefix"}
        except ValueError:
            raise ClusterError("rados bench printed no result",
                               details=printed.splitlines()[-5:]) from None

    def _command(self, arguments: list[str], timeout: float) -> str:
        return run_tool("rados", "-c", self._cluster.layout.conf, "-p", self._pool, *arguments,
                        timeout=timeout, watch=self._cluster.check_daemons)
