"""Runs a command of Ceph's and says what it said when it fails."""
from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable

from .daemons import ended
from .errors import ClusterError

COMMAND_SECONDS = 120
WATCH_SECONDS = 0.5


def run_tool(*words: object, timeout: float = COMMAND_SECONDS,
             environment: dict[str, str] | None = None,
             watch: Callable[[], None] = lambda: None) -> str:
    """The command's output, or a ClusterError. `watch` is called twice a
    second: what it raises ends the command, so that nobody waits for an OSD
    that is dead. The command never outlives this program."""
    command = [str(word) for word in words]
    deadline = time.monotonic() + timeout
    with subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=os.environ | (environment or {})) as process:
        try:
            while True:
                try:
                    output, errors = process.communicate(timeout=WATCH_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    watch()
                    if time.monotonic() > deadline:
                        raise ClusterError(f"'{' '.join(command)}' did not end within"
                                           f" {timeout:.0f} s") from None
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        watch()
        said = (errors + output).decode(errors="replace").splitlines()
        raise ClusterError(f"'{' '.join(command)}' failed ({ended(process.returncode)})",
                           details=said[-12:])
    return output.decode(errors="replace")
