"""File systems: which one a path is on, and where a device is mounted."""
from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

LABEL = "tablestore"       # of file systems and LUKS devices that are ours


@dataclass(frozen=True)
class Mount:
    device: str            # major:minor
    point: Path
    kind: str
    read_only: bool


def mounts() -> list[Mount]:
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, rest = (part.split() for part in line.split(" - ", 1))
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        options = fields[5].split(",") + rest[2].split(",")
        found.append(Mount(fields[2], Path(point), rest[0], "ro" in options))
    return found


def mount_of(path: Path) -> Mount:
    """The last one that covers it. After a chroot the root may be no mount."""
    path = path.resolve()
    over = [Mount("", Path("/"), "an unknown file system", False)]
    over += [mount for mount in mounts() if path.is_relative_to(mount.point)]
    return max(enumerate(over), key=lambda pair: (len(pair[1].point.parts), pair[0]))[1]


def points_of(number: str) -> list[Path]:
    return [mount.point for mount in mounts() if mount.device == number]


def is_path_of_multipath(device: Path) -> bool:
    """Or a partition of one. Then it is the multipath device that is to be used."""
    sysfs = (Path("/sys/dev/block") / number_of(device)).resolve()
    disk = sysfs.parent if (sysfs / "partition").exists() else sysfs
    return any((holder / "dm/uuid").exists() and
               (holder / "dm/uuid").read_text().startswith("mpath-")
               for holder in (disk / "holders").glob("*"))


def number_of(device: Path) -> str:
    status = os.stat(device)
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
