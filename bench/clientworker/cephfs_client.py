"""Small files by libcephfs, as mdtest does it: each process has directories of its own. What one
has made another one looks at, since its maker's cache would answer."""
from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import count
from typing import Any

import cephfs

from .phase import Step

FILES_PER_DIRECTORY = 100


def directory(process: int, number: int) -> str:
    return f"/{process}/{number}"


def path(process: int, number: int, name: str = "file") -> str:
    return f"{directory(process, number // FILES_PER_DIRECTORY)}/{name}.{number}"


class Files:
    """One mount. "files" of a phase is how many files each process has made until then."""

    def __init__(self, settings: dict[str, Any]):
        self._number = settings["number"]
        self._next = (self._number + 1) % settings["of"]
        self._content = random.Random(self._number).randbytes(settings["size"])
        self._renamed = 0
        self._fs = cephfs.LibCephFS(conffile=settings["conf"])
        self._fs.mount()
        self._make_directory(f"/{self._number}")

    def steps(self, wanted: dict[str, Any]) -> Iterator[Step]:
        phase, files = wanted["phase"], wanted["files"]
        mine, others = files[self._number], files[self._next]
        if phase == "create":
            return (lambda number=number: self._create(number) for number in count(mine))
        if phase == "readdir":
            directories = (others + FILES_PER_DIRECTORY - 1) // FILES_PER_DIRECTORY
            return (lambda number=number: self._list(number, others)
                    for number in range(directories))
        step, end = {"stat": (self._stat, others), "rename": (self._rename, mine),
                     "unlink": (self._unlink, mine)}[phase]
        return (lambda number=number: step(number) for number in range(end))

    def finish(self) -> None:
        """Until the metadata server and the OSDs have all of it."""
        self._fs.sync_fs()

    def close(self) -> None:
        self._fs.shutdown()

    def _make_directory(self, name: str) -> None:
        try:
            self._fs.mkdir(name, 0o755)
        except cephfs.ObjectExists:
            pass

    def _create(self, number: int) -> None:
        if number % FILES_PER_DIRECTORY == 0:
            self._make_directory(directory(self._number, number // FILES_PER_DIRECTORY))
        file = self._fs.open(path(self._number, number), os.O_CREAT | os.O_EXCL | os.O_WRONLY,
                             0o644)
        self._fs.write(file, self._content, 0)
        self._fs.close(file)

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
