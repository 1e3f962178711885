"""rados bench, and the latency's tail, of which it does not tell."""
from __future__ import annotations

import json
import subprocess
import threading
import time
from dataclasses import dataclass

import rados

from .cluster import Cluster
from .errors import ClusterError

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

    Each completion starts the next write, in librados' thread; the main
    thread only waits. After wait() everything belongs to the main thread."""

    def __init__(self, io: rados.Ioctx, size: int, depth: int, most: int):
        self._io = io
        self._content = b"z" * (size - STAMP_BYTES)
        self._depth = depth
        self._most = most
        self._ended = threading.Semaphore(0)
        self._issued = 0
        self._deadline = 0.0
        self.error = 0
        self.milliseconds: list[float] = []

    def start(self, seconds: float) -> None:
        self._deadline = time.perf_counter() + seconds
        for _ in range(self._depth):
            self._issue()

    def wait(self, timeout: float) -> bool:
        """False when not all of it has ended in time."""
        deadline = time.monotonic() + timeout
        return all(self._ended.acquire(timeout=max(0.0, deadline - time.monotonic()))
                   for _ in range(self._depth))

    def _issue(self) -> None:
        self._issued += 1
        data = b"%*d" % (STAMP_BYTES, self._issued) + self._content
        began = time.perf_counter()

        def completed(completion: rados.Completion) -> None:
            now = time.perf_counter()
            self.milliseconds.append((now - began) * 1000)
            self.error = self.error or min(0, completion.get_return_value())
            if self.error or now >= self._deadline or self._issued >= self._most:
                self._ended.release()
            else:
                self._issue()

        self._io.aio_write_full(tail_name(self._issued), data, oncomplete=completed)

    def p99(self) -> float:
        ordered = sorted(self.milliseconds)
        return ordered[int(len(ordered) * 0.99)]

    def remove(self) -> None:
        removals = [self._io.aio_remove(tail_name(number))
                    for number in range(1, self._issued + 1)]
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
        if not run.wait(seconds + 60):
            self._cluster.check_daemons()
            raise ClusterError(f"writes of {size} bytes did not end within 60 s")
        if run.error:
            raise ClusterError(f"a write of {size} bytes failed: error {run.error}")
        run.remove()
        io.close()
        return run.p99()

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
        command = ["rados", "-c", str(self._cluster.layout.conf), "-p", self._pool, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            self._cluster.check_daemons()
            raise ClusterError(f"'{' '.join(command)}' did not end in {timeout:.0f} s") from None
        if done.returncode != 0:
            self._cluster.check_daemons()
            raise ClusterError(f"'{' '.join(command)}' failed",
                               details=done.stderr.splitlines()[-8:])
        return done.stdout
