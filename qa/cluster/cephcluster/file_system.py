"""A file system of its own below an OSD's directory: another kind, or one that can be filled."""
from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import ClusterError

MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
}
KINDS = tuple(MKFS)


@dataclass(frozen=True)
class FileSystem:
    """On a loop device over a sparse file. Mounted in this program's mount namespace, it is gone
    with it at the latest."""

    image: Path
    directory: Path

    def make(self, kind: str, size: int) -> None:
        """In the place of what was there. The directory is there, and empty."""
        self.remove()
        with open(self.image, "wb") as image:
            image.truncate(size)
        run(*MKFS[kind], str(self.image))
        self.mount()

    def mount(self) -> None:
        """Also where it is mounted already, by who made it in this namespace."""
        if not os.path.ismount(self.directory):
            run("mount", "-o", "loop", str(self.image), str(self.directory))

    def unmount(self) -> None:
        if os.path.ismount(self.directory):
            run("umount", str(self.directory))

    def change_features(self, words: str) -> None:
        """Of an ext4, as `tune2fs -O` has them. Nothing has a file of it open."""
        self.unmount()
        run("tune2fs", "-O", words, str(self.image))
        self.mount()

    def remove(self) -> None:
        self.unmount()
        self.image.unlink(missing_ok=True)


def run(*words: str) -> None:
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ClusterError(f"there is no {words[0]}") from error
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(words)} failed", details=done.stderr.splitlines())
