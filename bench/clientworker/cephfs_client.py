"""Small files by libcephfs, as mdtest does it: each process has directories of its own. What one
has made another one looks at, since its maker's cache would answer."""
from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import cephfs

from .phase import Step

FILES_PER_DIRECTORY = 100


def directory(process: int, number: int) -> str:
    return f"/{process}/{number}"


def path(process: int, number: int, name: str = "file") -> str:
    return f"{directory(process, number // FILES_PER_DIRECTORY)}/{name}.{number}"


class Files:
    """One mount. "others" of a phase is how many files the next process has made."""

    def __init__(self, settings: dict[str, Any]):
        self._number = settings["number"]
        self._next = (self._number + 1) % settings["of"]
        self._content = random.Random(self._number).randbytes(settings["size"])
        self._made = 0
        self._renamed = 0
        self._fs = cephfs.LibCephFS(conffile=settings["conf"])
        self._fs.mount()
        self._fs.mkdir(f"/{self._number}", 0o755)

    def steps(self, wanted: dict[str, Any]) -> Iterator[Step]:
        phase = wanted["phase"]
        if phase == "create":
            return self._creations()
        if phase == "rename":
            return (lambda number=number: self._rename(number) for number in range(self._made))
        if phase == "unlink":
            return (lambda number=number: self._unlink(number) for number in range(self._made))
        others = wanted["others"]
        if phase == "stat":
            return (lambda number=number: self._stat(number) for number in range(others))
        assert phase == "readdir", phase
        directories = (others + FILES_PER_DIRECTORY - 1) // FILES_PER_DIRECTORY
        return (lambda number=number: self._list(number, others) for number in range(directories))

    def finish(self) -> None:
        """Until the metadata server and the OSDs have all of it."""
        self._fs.sync_fs()

    def close(self) -> None:
        self._fs.shutdown()

    def _creations(self) -> Iterator[Step]:
        while True:
            yield self._create

    def _create(self) -> None:
        number = self._made
        if number % FILES_PER_DIRECTORY == 0:
            self._fs.mkdir(directory(self._number, number // FILES_PER_DIRECTORY), 0o755)
        file = self._fs.open(path(self._number, number), os.O_CREAT | os.O_EXCL | os.O_WRONLY,
                             0o644)
        self._fs.write(file, self._content, 0)
        self._fs.close(file)
        self._made += 1

    def _stat(self, number: int) -> None:
        found = self._fs.stat(path(self._next, number)).st_size
        if found != len(self._content):
            raise ValueError(f"{path(self._next, number)} has {found} bytes,"
                             f" not {len(self._content)}")

    def _list(self, number: int, others: int) -> None:
        handle = self._fs.opendir(directory(self._next, number))
        names = set()
        while entry := self._fs.readdir(handle):
            names.add(entry.d_name)
        self._fs.closedir(handle)
        expected = min(FILES_PER_DIRECTORY, others - number * FILES_PER_DIRECTORY)
        if len(names - {b".", b".."}) != expected:
            raise ValueError(f"{directory(self._next, number)} lists {len(names)} names,"
                             f" not {expected}, . and ..")

    def _rename(self, number: int) -> None:
        self._fs.rename(path(self._number, number), path(self._number, number, "renamed"))
        self._renamed = number + 1

    def _unlink(self, number: int) -> None:
        name = "renamed" if number < self._renamed else "file"
        self._fs.unlink(path(self._number, number, name))
