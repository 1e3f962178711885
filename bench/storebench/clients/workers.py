"""Client processes of our own, for what has no tool that does it: bench/clientworker."""
from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from cephcluster.daemons import ended
from cephcluster.errors import ClusterError

from .together import Done, Reported, of_workers

BENCH = Path(__file__).resolve().parents[2]
READY_SECONDS = 60
LATE_SECONDS = 120          # a phase may take so much longer than it was told to
TOGETHER_SECONDS = 0.3      # until all of them have heard when to begin


class Workers:
    """So many processes of a kind, that begin each phase together. They end with the block that
    they are made for. One thread."""

    def __init__(self, count: int, settings: dict[str, Any], watch: Callable[[], None]):
        self._watch = watch
        self._errors = tempfile.TemporaryFile()
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            for number in range(count):
                said = json.dumps(settings | {"number": number, "of": count})
                self._processes.append(subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "clientworker", said],
                    cwd=BENCH, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=self._errors))
            self._answers(READY_SECONDS)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None,
                 _trace: TracebackType | None) -> None:
        if kind is None:
            for process in self._processes:
                assert process.stdin
                process.stdin.close()
            try:
                for process in self._processes:
                    self._wait(process)
            except BaseException:
                self._end()
                raise
        self._end()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """It has been told to end. One that does not may have files open still."""
        try:
            status = process.wait(READY_SECONDS)
        except subprocess.TimeoutExpired:
            raise ClusterError("a client process does not end", details=self._said()) from None
        if status != 0:
            raise ClusterError(f"a client process failed ({ended(status)})", details=self._said())

    def phase(self, name: str, seconds: float, **more: Any) -> list[Reported]:
        """`more` is for all of them."""
        at = time.monotonic() + TOGETHER_SECONDS
        wanted = json.dumps({"phase": name, "at": at, "seconds": seconds} | more)
        for process in self._processes:
            assert process.stdin
            try:
                process.stdin.write(wanted.encode() + b"\n")
                process.stdin.flush()
            except BrokenPipeError:
                raise self._failed(process) from None
        return self._answers(seconds + LATE_SECONDS)

    def done(self, name: str, seconds: float, **more: Any) -> Done:
        return of_workers(self.phase(name, seconds, **more))

    def _answers(self, timeout: float) -> list[Reported]:
        deadline = time.monotonic() + timeout
        return [self._answer(process, deadline) for process in self._processes]

    def _answer(self, process: subprocess.Popen[bytes], deadline: float) -> Reported:
        assert process.stdout
        while not select.select([process.stdout], [], [], 0.5)[0]:
            self._watch()
            if time.monotonic() > deadline:
                raise ClusterError("a client process does not answer", details=self._said())
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self._failed(process)
        return json.loads(line)

    def _failed(self, process: subprocess.Popen[bytes]) -> ClusterError:
        return ClusterError(f"a client process failed ({ended(process.wait())})",
                            details=self._said())

    def _said(self) -> list[str]:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").splitlines()[-12:]

    def _end(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with suppress(BrokenPipeError):     # of what it has not read
                        pipe.close()
        self._errors.close()
