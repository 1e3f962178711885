"""Where an OSD may be, and what is refused since it would lose data or not come back."""
from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ceph_volume import conf, terminal
from ceph_volume.util import system

from . import crypt
from .mounts import LABEL, mount_of, number_of, points_of
from .osd_dir import MARKER, Marker, Osd, data_path, empty, strangers
from .shell import Refusal, attempt, run
from .undo import Undo, undone_unless_finished

T = TypeVar("T")
UNCHANGED = "ro,norecovery,nouuid"   # how XFS is mounted without a write to its disk
TESTED = ("xfs", "ext4")
# A reboot, another host or a removed container takes these away, or they cannot flush.
UNSAFE = ("tmpfs", "ramfs", "overlay", "nfs", "nfs4", "cifs", "9p", "vfat", "ext2", "ext3",
          "squashfs", "iso9660", "virtiofs")
# ceph-osd@.service does not see what is there (ProtectHome, PrivateTmp).
HIDDEN = tuple(Path(each) for each in ("/home", "/root", "/run/user", "/tmp", "/var/tmp"))


class Directory:
    """An OSD in a directory that exists. It is at /var/lib/ceph/osd by a symbolic link, which is
    the record of where it is."""

    def __init__(self, path: Path):
        self.path = path
        self.root = path
        self.begun: Marker | None = None   # by a command that was killed; from check() on

    def check(self, capacity: int | None) -> None:
        self.begun = Marker.load(self.path)
        mount = mount_of(self.path)
        if mount.kind in UNSAFE or mount.kind.startswith("fuse"):
            raise Refusal(f"{self.path} is on {mount.kind}, which cannot keep an OSD: take a"
                          " directory on XFS or ext4")
        if mount.read_only:
            raise Refusal(f"{self.path} is on a file system that is mounted read-only")
        if mount.kind not in TESTED:
            terminal.warning(f"{self.path} is on {mount.kind}: it works, with one flush per file"
                             " instead of one per commit")
        self._check_seen()
        for parent in self.path.parents:
            if is_own(parent):
                raise Refusal(f"{self.path} is in {parent}, which is an OSD's: take a directory"
                              " that is no part of one")
        if capacity is None and self.path != mount.point:
            raise Refusal(f"{self.path} shares the file system of {mount.point}: say how much of"
                          " it the OSD may use (--capacity 100G; --capacity 0 is all of it)")
        room = os.statvfs(self.path)
        if capacity and capacity > room.f_blocks * room.f_frsize:
            raise Refusal(f"--capacity {capacity >> 20}M is more than the file system of"
                          f" {self.path} has ({room.f_blocks * room.f_frsize >> 20}M)")

    def _check_seen(self) -> None:
        """By the user ceph, in the packaged unit."""
        for each in HIDDEN:
            if self.path.is_relative_to(each):
                raise Refusal(f"{self.path} is below {each}, which ceph-osd@.service hides from the"
                              " OSD: take another place, such as /srv")
        user, group = system.get_ceph_user_ids()
        for parent in self.path.parents:
            status = parent.stat()
            bits = (stat.S_IXUSR if status.st_uid == user else
                    stat.S_IXGRP if status.st_gid == group else stat.S_IXOTH)
            if not status.st_mode & bits:
                raise Refusal(f"the user ceph cannot enter {parent}: 'chmod o+x {parent}'")

    def begin(self, marker: Marker, _secrets: dict[str, str], undo: Undo) -> Marker:
        """Takes the directory; the marker that is there already, if one was killed here."""
        found = Marker.load(self.path)
        if found is None and strangers(self.path):
            names = ", ".join(strangers(self.path)[:3])
            raise Refusal(f"{self.path} is not empty ({names}): TableStore takes an empty"
                          " directory; nothing was changed")
        marker = found or marker
        undo.add(f"empty {self.path}", lambda: empty(self.path))
        marker.save(self.path)
        return marker

    def attach(self, osd_id: int, undo: Undo) -> None:
        link = data_path(osd_id)
        if link.is_symlink() and link.resolve() == self.path:
            undo.add(f"remove {link}", link.unlink)
            return
        if self.path == link:
            return
        check_free(link)
        if link.is_dir():
            link.rmdir()
        link.parent.mkdir(parents=True, exist_ok=True)
        undo.step(lambda: link.symlink_to(self.path), f"remove {link}", lambda _: link.unlink())


class Device:
    """An OSD on an XFS of its own. Label and UUID of the file system, or of LUKS around it, say
    whose it is, so that there is no record outside of it."""

    def __init__(self, path: Path, encrypted: bool = False):
        self.path = path
        self.encrypted = encrypted
        self.root = Path("/")   # where it is mounted, from begin() on
        self.begun: Marker | None = None   # by a command that was killed; from check() on

    def check(self, _capacity: int | None) -> None:
        if self.encrypted:
            crypt.check()
        number = number_of(self.path)
        sysfs = Path("/sys/dev/block") / number
        points = [point for point in points_of(number) if not is_ours(point)]
        if points:
            raise Refusal(f"{self.path} is mounted at {points[0]}: nothing was changed")
        if any(child.name.startswith(sysfs.resolve().name) for child in sysfs.resolve().iterdir()
               if (child / "partition").exists()):
            raise Refusal(f"{self.path} has partitions: name one of them, or remove them")
        holders = sysfs / "holders"
        if not self.uuid() and holders.is_dir() and any(holders.iterdir()):
            raise Refusal(f"{self.path} is in use by {next(holders.iterdir()).name} (LVM, RAID or"
                          " dm-crypt)")
        if (sysfs / "ro").read_text().strip() == "1":
            raise Refusal(f"{self.path} is read-only")
        self._check_blank(points_of(number))

    def _check_blank(self, points: list[Path]) -> None:
        if self.uuid():
            return self._check_begun()
        found = self._probe()
        if found:
            what = found.get("TYPE") or found.get("PTTYPE") or "something that blkid knows"
            raise Refusal(f"{self.path} is not blank ({what}): 'wipefs --all {self.path}' makes it"
                          " so, and destroys what is on it; nothing was changed")
        if not points:
            try:
                os.close(os.open(self.path, os.O_RDONLY | os.O_EXCL))
            except OSError as error:
                raise Refusal(f"{self.path} is in use: {error.strerror}") from None

    def _check_begun(self) -> None:
        """Our label may be on what is not ours, or on an OSD of which something is lost."""
        if self.encrypted:
            raise Refusal(f"{self.path} is not blank (it has the label of an OSD): 'ceph-volume"
                          f" tablestore zap {self.path}' makes it so, and destroys what is on it;"
                          " nothing was changed")
        def load(point: Path) -> tuple[Marker | None, list[str]]:
            return Marker.load(point), strangers(point)
        self.begun, names = load(at) if (at := self.mounted_at()) else at_a_glance(self, load)
        if self.begun is None and names:
            raise Refusal(f"{self.path} has files that are not an OSD's, or no whole OSD"
                          f" ({', '.join(names[:3])}): nothing was changed")

    def _probe(self) -> dict[str, str]:
        code, lines, _ = attempt("blkid", "-p", "-o", "export", self.path)
        if code == 8:
            return {"TYPE": "more than one thing"}
        return dict(line.split("=", 1) for line in lines if "=" in line and
                    not line.startswith("DEVNAME="))

    def uuid(self) -> str:
        """The OSD's, if this is one of ours."""
        found = self._probe()
        return found.get("UUID", "") if found.get("LABEL") == LABEL else ""

    def begin(self, marker: Marker, secrets: dict[str, str], undo: Undo) -> Marker:
        undo.add(f"make {self.path} blank", lambda: run("wipefs", "--all", self.path))
        inner = self.path
        if self.encrypted:
            inner = crypt.make(self.path, marker.osd_fsid, secrets, undo)
        if self.encrypted or not self.uuid():
            uuid = ["-m", f"uuid={marker.osd_fsid}"] if not self.encrypted else []
            run("mkfs.xfs", "-f", "-q", "-L", LABEL, *uuid, inner)
        else:
            marker.osd_fsid = self.uuid()
        self.root = undo.step(lambda: mount(inner, staging(marker.osd_fsid)),
                              f"unmount {self.path}", lambda _: unmount(inner))
        marker = Marker.load(self.root) or marker
        marker.save(self.root)
        return marker

    def attach(self, osd_id: int, _undo: Undo) -> None:
        """Its end is begin()'s."""
        point = data_path(osd_id)
        if point == self.root:
            return
        check_free(point)
        inner = crypt.mapping(self.path) if self.encrypted else self.path
        unmount(inner)
        self.root = mount(inner, point)

    def mounted_at(self) -> Path | None:
        inner = crypt.mapping(self.path) if self.is_encrypted() else self.path
        points = points_of(number_of(inner)) if inner.exists() else []
        points = [point for point in points if not is_of_a_look(point)]
        return points[0] if points else None

    def is_encrypted(self) -> bool:
        return self._probe().get("TYPE") == "crypto_LUKS"


def place_of(data: str, encrypted: bool = False) -> Directory | Device:
    path = Path(data)
    if not path.is_absolute():
        raise Refusal(f"--data {data}: the path must be absolute")
    if not path.exists():
        raise Refusal(f"{data} does not exist: it must be an empty directory, or a device")
    path = path.resolve()
    if path.is_block_device():
        return Device(path, encrypted)
    if not path.is_dir():
        raise Refusal(f"{data} is neither a directory nor a block device")
    if encrypted:
        raise Refusal("--dmcrypt needs a device: for a directory, encrypt below its file system")
    return Directory(path)


def is_of_this_cluster(osd: Osd) -> bool:
    ours = conf.ceph.get_safe("global", "fsid", "", check_valid=False) if conf.ceph else ""
    return not ours or not osd.cluster_fsid or ours == osd.cluster_fsid


def check_cluster(osd: Osd, where: Path | None = None) -> None:
    """An OSD of another cluster is nobody's to start or to write over."""
    if not is_of_this_cluster(osd):
        raise Refusal(f"{where or osd.directory} has osd.{osd.osd_id} of another cluster"
                      f" ({osd.cluster_fsid})")


def check_free(path: Path) -> None:
    """The place of an OSD may be there, but empty."""
    try:
        path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise Refusal(f"{path} is taken, and cannot be read ({error.strerror}): unmount what is"
                      f" there first ('umount -l {path}')") from None
    if path.is_symlink() or (path.is_dir() and (path.is_mount() or any(path.iterdir()))):
        raise Refusal(f"{path} is taken: deactivate and zap what is there first")


def is_own(directory: Path) -> bool:
    try:
        return (directory / MARKER).exists() or Osd.load(directory) is not None
    except IsADirectoryError:   # somebody's own `type`
        return False
    except (OSError, ValueError):
        return True   # nobody can say that it is none


def is_ours(point: Path) -> bool:
    return point.parent in (data_path(0).parent, staging("x").parent)


def staging(osd_fsid: str) -> Path:
    """Where a file system is mounted as long as its OSD has no number."""
    return Path("/run/ceph-volume-tablestore") / osd_fsid


def is_of_a_look(point: Path) -> bool:
    """That was killed: see at_a_glance()."""
    return point.parent == staging("x").parent and mount_of(point).read_only


def mount(device: Path, point: Path, options: str = "noatime") -> Path:
    """Of a device that is mounted already, the place where it is."""
    there = points_of(number_of(device))
    left = [each for each in there if is_of_a_look(each)]
    for each in left:
        run("umount", each)
    there = [each for each in there if each not in left]
    if there:
        return there[0]
    point.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "xfs", "-o", options, device, point)
    if options != UNCHANGED and shutil.which("selinuxenabled"):
        system.set_context(str(point))
    return point


def at_a_glance(device: Device, load: Callable[[Path], T], options: str = "noatime") -> T:
    """What `load` finds on it, mounted for that moment."""
    with undone_unless_finished() as undo:
        point = undo.step(lambda: mount(device.path, staging(device.uuid()), options),
                          f"unmount {device.path}", lambda _: unmount(device.path))
        found = load(point)
        unmount(device.path)
    return found


def unmount(device: Path) -> None:
    for point in points_of(number_of(device)):
        run("umount", point)
        try:
            point.rmdir()
        except OSError:
            pass   # it was there before, and holds something
