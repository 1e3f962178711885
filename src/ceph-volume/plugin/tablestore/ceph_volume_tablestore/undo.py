"""What was done, taken back in the reverse order when it is not finished."""
from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ceph_volume import terminal

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """^C, kill or a closed terminal."""


class Undo:
    """The steps of one command. One thread."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Callable[[], object]]] = []

    def add(self, what: str, how: Callable[[], object]) -> None:
        self._steps.append((what, how))

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
    handlers = {number: signal.signal(number, raise_interrupted) for number in HANDLED}
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


def raise_interrupted(number: int, _frame: object) -> None:
    raise Interrupted(f"interrupted ({signal.Signals(number).name}): nothing is left of it")
