"""Errors for the person who reads them at night: what, where, what to do."""
from __future__ import annotations

import sys
from collections.abc import Sequence


class ClusterError(Exception):
    """Something that the operator must know. `details` are log lines or the
    like, `hint` says what to do next."""

    def __init__(self, message: str, *, details: Sequence[str] = (), hint: str = ""):
        super().__init__(message)
        self.details = list(details)
        self.hint = hint

    def report(self, program: str) -> None:
        print(f"{program}: {self}", file=sys.stderr)
        for line in self.details:
            print(f"    {line}", file=sys.stderr)
        if self.hint:
            print(f"{program}: {self.hint}", file=sys.stderr)
        sys.stderr.flush()


class Interrupted(Exception):
    """SIGINT, SIGTERM or SIGHUP arrived; raised in the main thread so that
    every `finally` runs."""

    def __init__(self, signal_number: int):
        super().__init__(f"interrupted by signal {signal_number}")
        self.signal_number = signal_number
