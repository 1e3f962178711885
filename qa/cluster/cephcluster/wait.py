"""Waiting for conditions, with a deadline and a reason when it passes."""
from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import TypeVar

from .errors import ClusterError, Interrupted

T = TypeVar("T")

# How often a condition is looked at. The look itself is cheap (one librados
# command on an open connection).
POLL_SECONDS = 0.2


def wait_until(what: str, condition: Callable[[], T], timeout: float, *,
               explain: Callable[[], list[str]] = lambda: [],
               poll: float = POLL_SECONDS) -> T:
    """Returns the first true value of `condition`; a ClusterError that says
    `what` did not happen, with the lines of `explain`, after `timeout`
    seconds. Exceptions of `condition` end the wait at once."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise ClusterError(f"gave up after {timeout:.0f} s waiting for {what}",
                               details=explain())
        time.sleep(poll)


def signals_as_exceptions() -> None:
    """^C, kill and a closed terminal all unwind the main thread. Only the
    first one: the clean-up that follows is not to be cut short."""

    def handler(number: int, _frame: object) -> None:
        for each in HANDLED:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    for number in HANDLED:
        signal.signal(number, handler)


HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
