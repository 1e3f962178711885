"""A file system that is made for a benchmark."""
from __future__ import annotations

import tempfile
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from cephcluster.errors import ClusterError
from cephcluster.file_system import MKFS, run

from .variants import LoopDevice, write_zeros


class OwnFileSystem(AbstractContextManager):
    """New, and mounted over a directory: in this program's mount namespace, so that it and its
    file are gone with the program at the latest. On a loop device with direct I/O, whose file is
    written: what a first touch costs is what the new file system makes of it. Mounted as an
    operator does it, without discards: the file below keeps its space. `below` is where the
    directory is as it was before, for other devices beside this one."""

    def __init__(self, kind: str, size: int, directory: Path):
        self._kind, self._size, self._directory = kind, size, directory

    def __enter__(self) -> OwnFileSystem:
        file = self._directory / "bench.disk"
        with ExitStack() as stack:
            try:
                write_zeros(file, self._size)
                device = stack.enter_context(LoopDevice(file))
            except OSError as error:
                raise ClusterError(f"cannot make a disk of {self._size >> 30} GiB in {file.parent}:"
                                   f" {error.strerror or error}; --fs-size chooses another size"
                                   ) from None
            finally:
                file.unlink(missing_ok=True)    # the device has what it needs of it
            run(*MKFS[self._kind], device)
            self.below = Path(tempfile.mkdtemp(prefix="bench.below."))
            run("mount", "--bind", str(self._directory), str(self.below))
            run("mount", device, str(self._directory))
        return self

    def __exit__(self, *_: object) -> None:
        run("umount", "--lazy", str(self._directory))
        run("umount", "--lazy", str(self.below))
        self.below.rmdir()
