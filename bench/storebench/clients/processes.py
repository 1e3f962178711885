"""Client programs: several at a time, none of which outlives this one."""
from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

from cephcluster.daemons import ended
from cephcluster.errors import ClusterError
from cephcluster.wait import wait_until

MOST_OUTPUT = 16 << 20

Watch = Callable[[], None]


class ClientProcess:
    """A program. What it says goes to files, so that it never waits for a reader. Killed at the
    end of the block that it is made for, if it still runs. One thread."""

    def __init__(self, *words: object):
        self._words = [str(word) for word in words]
        self._output = tempfile.TemporaryFile()
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *self._words], stdin=subprocess.DEVNULL,
            stdout=self._output, stderr=self._errors)

    def __enter__(self) -> ClientProcess:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None,
                 _trace: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._output.close()
        self._errors.close()

    def said(self) -> str:
        """Read without moving the place at which the program writes on."""
        return os.pread(self._output.fileno(), MOST_OUTPUT, 0).decode(errors="replace")

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def has_ended(self) -> bool:
        """A ClusterError, if it has ended badly."""
        code = self._process.poll()
        if code:
            errors = os.pread(self._errors.fileno(), MOST_OUTPUT, 0).decode(errors="replace")
            raise ClusterError(f"'{' '.join(self._words)}' failed ({ended(code)})",
                               details=(errors + self.said()).splitlines()[-12:])
        return code is not None

    def wait(self, timeout: float, watch: Watch) -> str:
        """What it said in all."""
        wait_until(f"'{' '.join(self._words)}' to end", lambda: (watch(), self.has_ended())[1],
                   timeout)
        return self.said()


@contextmanager
def children_seconds() -> Iterator[Callable[[], tuple[float, float]]]:
    """What child processes that end within the block take of the processors, in their programs
    and in the kernel."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def taken() -> tuple[float, float]:
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        return now.ru_utime - before.ru_utime, now.ru_stime - before.ru_stime

    yield taken


def run_together(commands: list[list[object]], timeout: float,
                 watch: Watch) -> tuple[list[str], float, float]:
    """What each of them said, and the processor seconds of all."""
    with children_seconds() as taken, ExitStack() as stack:
        clients = [stack.enter_context(ClientProcess(*words)) for words in commands]
        deadline = time.monotonic() + timeout
        said = [client.wait(deadline - time.monotonic(), watch) for client in clients]
        return said, *taken()
