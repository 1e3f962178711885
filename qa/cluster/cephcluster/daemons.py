"""One Ceph daemon as a process: start, find again, stop, explain."""
from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

from .config import Layout
from .errors import ClusterError
from .wait import wait_until

# A daemon that was asked to stop and has not after this time gets SIGKILL.
STOP_SECONDS = 30
KILLED_SECONDS = 180    # the kernel keeps it until the disk has answered


class Daemon:
    """A mon, mgr or OSD of one cluster.

    The process is found by its pid file, and only if /proc says that it is
    this program with this cluster's ceph.conf: a recycled process id is
    never signalled. That also works from another ./run, in another mount
    namespace. Called from the main thread only."""

    def __init__(self, layout: Layout, kind: str, ident: str, *, ephemeral: bool = False):
        self.layout = layout
        self.kind = kind
        self.ident = ident
        self.name = f"{kind}.{ident}"
        self.program = f"ceph-{kind}"
        # Ephemeral daemons die with the program that started them, even if
        # that is killed with SIGKILL.
        self.ephemeral = ephemeral
        self._child: subprocess.Popen[bytes] | None = None
        self.environment: dict[str, str] = {}   # more than this program's, from its next start

    # -- the process ------------------------------------------------------

    def command(self, *arguments: str) -> list[str]:
        path = shutil.which(self.program)
        if path is None:
            raise ClusterError(f"{self.program} is not installed",
                               hint="set the environment up first: ./run setup")
        return [path, "-c", str(self.layout.conf), "-i", self.ident, *arguments]

    def pid(self) -> int | None:
        """The process id while the daemon runs."""
        if self._child is not None:
            return self._child.pid if self._child.poll() is None else None
        try:
            pid = int(self.layout.pid(self.name).read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return None
        ours = (os.path.basename(words[0]) == self.program
                and str(self.layout.conf) in words and state not in "ZX")
        return pid if ours else None

    def start(self) -> None:
        if self.pid():
            return
        self.layout.socket(self.name).unlink(missing_ok=True)
        command = self.command("-f")
        if self.ephemeral:
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        with open(self.layout.output(self.name), "ab") as output:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                cwd=self.layout.root, start_new_session=True, env=os.environ | self.environment)
        pid_file = self.layout.pid(self.name)
        part = pid_file.with_suffix(".part")
        part.write_text(f"{self._child.pid}\n")
        part.rename(pid_file)

    def signal(self, number: int) -> bool:
        pid = self.pid()
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait_gone(self, timeout: float) -> None:
        wait_until(f"{self.name} to end", lambda: self.pid() is None, timeout, poll=0.05)
        self.layout.pid(self.name).unlink(missing_ok=True)

    def kill(self) -> None:
        """kill -9, as a power cut of this one process."""
        self.signal(signal.SIGKILL)
        self.wait_gone(KILLED_SECONDS)

    def stop(self) -> None:
        if self.signal(signal.SIGTERM):
            try:
                self.wait_gone(STOP_SECONDS)
                return
            except ClusterError:
                print(f"{self.name} did not stop within {STOP_SECONDS} s: killed", flush=True)
        self.kill()

    # -- preparation ------------------------------------------------------

    def run_once(self, *arguments: str, timeout: float = 120) -> None:
        """Runs the daemon's program for a task that ends, e.g. --mkfs."""
        command = self.command(*arguments)
        output = self.layout.output(self.name)
        with open(output, "ab") as sink:
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
                                      timeout=timeout, cwd=self.layout.root)
            except subprocess.TimeoutExpired:
                raise ClusterError(f"'{' '.join(command)}' did not end within {timeout:.0f} s",
                                   details=self.last_lines()) from None
        if done.returncode != 0:
            raise ClusterError(f"'{' '.join(command)}' failed ({ended(done.returncode)})",
                               details=self.last_lines())

    # -- what it says -----------------------------------------------------

    def check_alive(self) -> None:
        if self.pid() is None:
            code = self._child.returncode if self._child else None
            how = f" ({ended(code)})" if code is not None else ""
            raise ClusterError(f"{self.name} is not running{how}", details=self.last_lines())

    def last_lines(self, count: int = 12) -> list[str]:
        """Why it ended, if it has said so; else the ends of its log and of
        what it printed. And where they are."""
        output, log = self.layout.output(self.name), self.layout.log(self.name)
        cause = cause_of_death(tail_of(output, 10_000))
        if cause:
            return [*cause, f"(from {self.layout.on_host(output)})"]
        lines: list[str] = []
        for path in (output, log):
            tail = tail_of(path, count)
            if tail:
                lines += [*tail, f"(that was the end of {self.layout.on_host(path)})"]
        return lines or [f"(nothing in {self.layout.on_host(log)})"]

    def ask(self, prefix: str, wait_seconds: float = 30, **arguments: Any) -> Any:
        """A command on its admin socket: works without a mon."""
        request = json.dumps({"prefix": prefix, "format": "json", **arguments})
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(wait_seconds)
            try:
                connection.connect(str(self.layout.socket(self.name)))
                connection.sendall(request.encode() + b"\0")
                length, = struct.unpack(">I", receive(connection, 4))
                answer = receive(connection, length)
            except OSError as error:
                raise ClusterError(f"{self.name} does not answer '{prefix}': {error}",
                                   details=self.last_lines()) from error
        return json.loads(answer) if answer else None


def receive(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = connection.recv(length - len(data))
        if not more:
            raise ConnectionError("the connection was closed")
        data += more
    return data


def ended(code: int) -> str:
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit status {code}"


# What a dying daemon says before it prints thousands of lines of history.
DEATH = re.compile(r"FAILED ceph_assert|ceph_abort|terminate called|\*\*\* Caught signal")


def cause_of_death(lines: list[str]) -> list[str]:
    """The first such line and a few around it."""
    for index, line in enumerate(lines):
        if DEATH.search(line):
            return lines[max(0, index - 3):index + 8]
    return []


def tail_of(path: Path, count: int) -> list[str]:
    """The last `count` lines, of the last 256 KiB."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - (256 << 10)))
            return file.read().decode(errors="replace").splitlines()[-count:]
    except FileNotFoundError:
        return []
