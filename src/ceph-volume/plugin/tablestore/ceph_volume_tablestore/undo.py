"""What was done, taken back in the reverse order when it is not finished."""
from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ceph_volume import terminal

T = TypeVar("T")
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """^C, kill or a closed terminal."""


class Undo:
    """The steps of one command. One thread."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Callable[[], object]]] = []
        self._in_step = False
        self._signal = 0

    def step(self, do: Callable[[], T], what: str, how: Callable[[T], object]) -> T:
        """Does it, and notes how to take it back. A signal waits until both are done; the
        program that `do` has started gets a ^C by itself."""
        self._in_step = True
        try:
            result = do()
            self.add(what.format(result), lambda: how(result))
        finally:
            self._in_step = False
        if self._signal:
            self._interrupt()
        return result

    def add(self, what: str, how: Callable[[], object]) -> None:
        self._steps.append((what, how))

    def on_signal(self, number: int, _frame: object) -> None:
        self._signal = number
        if not self._in_step:
            self._interrupt()

    def _interrupt(self) -> None:
        raise Interrupted(f"interrupted ({signal.Signals(self._signal).name}): nothing is left"
                          " of it")

    def all(self) -> None:
        """A step that cannot be taken back is told of, and does not keep the others."""
        while self._steps:
            what, how = self._steps.pop()
            terminal.info(f"undo: {what}")
            try:
                how()
            except Exception as error:
                terminal.warning(f"could not {what}: {error}")


@contextmanager
def undone_unless_finished() -> Iterator[Undo]:
    """Its body is done whole or not at all, unless this process is killed with -9."""
    undo = Undo()
    handlers = {number: signal.signal(number, undo.on_signal) for number in HANDLED}
    try:
        yield undo
    except BaseException:
        for number in HANDLED:
            signal.signal(number, signal.SIG_IGN)
        undo.all()
        raise
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
