"""What is in an OSD's directory: Ceph's small files, and two of ours."""
from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from ceph_volume import conf
from ceph_volume.util import system

from .shell import Refusal

OSDS = Path("/var/lib/ceph/osd")
MARKER = "ceph-volume.unfinished"
SETTINGS = "ceph-volume.json"
FLOCK = "hhqqi4x"   # struct flock: type, whence, start, length, process


def data_path(osd_id: int | str) -> Path:
    """Where ceph-osd@.service looks for an OSD."""
    return OSDS / f"{conf.cluster}-{osd_id}"


@dataclass
class Settings:
    """What ceph-osd is told at each start."""

    capacity: int = 0
    provision: int = 0

    def options(self) -> list[str]:
        options = []
        if self.capacity:
            options.append(f"--tablestore-capacity={self.capacity}")
        if self.provision:
            options.append(f"--tablestore-provision-size={self.provision}")
        return options

    @staticmethod
    def load(directory: Path) -> "Settings":
        """Those that this version knows."""
        kept = load_json(directory / SETTINGS, {})
        return Settings(**{each.name: kept[each.name] for each in fields(Settings)
                           if each.name in kept})

    def save(self, directory: Path) -> None:
        save_json(directory / SETTINGS, asdict(self))


@dataclass
class Marker:
    """An OSD that is being made. With it a `create` that was killed goes on where it was: the
    monitors give the same number to the same UUID and key."""

    osd_fsid: str
    secret: str
    osd_id: int | None = None

    @staticmethod
    def load(directory: Path) -> "Marker | None":
        found = load_json(directory / MARKER, None)
        return Marker(**found) if found else None

    def save(self, directory: Path) -> None:
        save_json(directory / MARKER, asdict(self))


def load_json(path: Path, missing: object) -> object:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return missing
    except ValueError:
        raise Refusal(f"{path} is not JSON: somebody changed it; mend it, or remove it") from None


def save_json(path: Path, value: object) -> None:
    """Whole or not at all, and only for its owner: there are keys in it."""
    part = path.with_name(path.name + ".new")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


@dataclass(frozen=True)
class Osd:
    """A finished OSD of this store."""

    osd_id: int
    osd_fsid: str
    cluster_fsid: str
    directory: Path

    @staticmethod
    def load(directory: Path) -> "Osd | None":
        if read(directory, "type") != "tablestore" or not read(directory, "whoami"):
            return None
        if not (directory / "ready").exists() or (directory / MARKER).exists():
            return None
        return Osd(int(read(directory, "whoami")), read(directory, "fsid"),
                   read(directory, "ceph_fsid"), directory)

    def in_use(self) -> bool:
        """By an OSD or a tool: these lock the file `fsid`. Asked without a lock of our own, as on a
        file system that has gone read-only."""
        question = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        try:
            with open(self.directory / "fsid", "rb") as file:
                answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, question)
        except FileNotFoundError:
            return False
        return struct.unpack(FLOCK, answer)[0] != fcntl.F_UNLCK


def read(directory: Path, name: str) -> str:
    try:
        return (directory / name).read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def strangers(directory: Path) -> list[str]:
    """All but what a file system has by itself."""
    return sorted(name for name in os.listdir(directory) if name != "lost+found")


def empty(directory: Path, keep: tuple[str, ...] = ()) -> None:
    for name in strangers(directory):
        path = directory / name
        if name in keep:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def give_to_ceph(directory: Path) -> None:
    """All of it belongs to the user that ceph-osd runs as."""
    user, _ = system.get_ceph_user_ids()
    if any(path.lstat().st_uid != user for path in (directory, *directory.iterdir())
           if path.name != "lost+found"):
        system.chown(str(directory))
