"""zap: an OSD's data is destroyed, and the place is as it was before."""
from __future__ import annotations

import errno
import uuid
from pathlib import Path

from ceph_volume import terminal
from ceph_volume.util import prepare as ceph_prepare

from . import units
from .activate import detach
from .listing import Found, all_osds, find, in_directory
from .mounts import mounts, number_of
from .osd_dir import MARKER, OSDS, Marker, Osd, empty
from .place import Device, check_cluster, is_own, place_of
from .shell import Refusal, attempt, run


def zap(data: str | None, osd_id: int | None, osd_fsid: str | None, destroy: bool) -> None:
    """With `destroy` a directory itself goes too, and a device's blocks are discarded."""
    if data is None:
        target = find(osd_id, osd_fsid)
        if target.problem and not target.device:
            raise Refusal(target.problem)
        if target.osd and osd_fsid is None:
            check_cluster(target.osd, target.device and target.device.path)
        where = target.device.path if target.device else target.osd.directory.resolve()
        data = str(where)
    place = place_of(data)
    found = osd_at(place.path)
    if found is None and not unfinished(place):
        raise Refusal(f"{data} holds no OSD of TableStore: nothing was changed")
    if found and found.osd:
        check_stopped(found.osd)
    if isinstance(place, Device):
        if found:
            detach(found)
        run("wipefs", "--all", place.path)
        if destroy:
            attempt("blkdiscard", place.path)
    else:
        check_nothing_below(place.path)
        # With it, what is left of a zap that was killed can be zapped again, or made an OSD.
        try:
            Marker(str(uuid.uuid4()), ceph_prepare.create_key()).save(place.path)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
        remove_links(place.path)
        empty(place.path, keep=(MARKER,))
        (place.path / MARKER).unlink(missing_ok=True)
        if destroy and not place.path.is_mount():
            place.path.rmdir()
    if found and found.osd and units.here():
        units.forget(found.osd)
    terminal.success(f"{data} is empty")


def osd_at(path: Path) -> Found | None:
    for found in all_osds():
        if found.device and path.is_block_device() and \
                number_of(found.device.path) == number_of(path):
            return found
        if not found.device and found.osd and found.osd.directory.resolve() == path:
            return found
    found = in_directory(path) if path.is_dir() else None   # one that has no link any more
    if found and found.problem:
        raise Refusal(found.problem)
    return found


def unfinished(place: object) -> bool:
    if isinstance(place, Device):
        return bool(place.uuid())
    return Marker.load(place.path) is not None


def check_stopped(osd: Osd) -> None:
    """One that runs is not destroyed. Another one may have its number here by now."""
    runs = units.has_its_number(osd) and units.is_running(osd.osd_id)
    if runs or (osd.directory.exists() and osd.in_use()):
        raise Refusal(f"osd.{osd.osd_id} runs: 'ceph-volume tablestore deactivate {osd.osd_id}'"
                      " first")


def check_nothing_below(path: Path) -> None:
    """What somebody has put into an OSD's directory, and is no part of it."""
    for mount in mounts():
        if mount.point != path and mount.point.is_relative_to(path):
            raise Refusal(f"{mount.point} is mounted in {path}: unmount it first")
    of_others = [link.resolve() for link in OSDS.glob("*-*")]
    of_others += [child for child in path.iterdir()
                  if child.is_dir() and not child.is_symlink() and is_own(child)]
    for other in of_others:
        if other != path and other.is_relative_to(path):
            raise Refusal(f"{other} is another OSD's: take that away first")


def remove_links(path: Path) -> None:
    for link in OSDS.glob("*-*"):
        if link.is_symlink() and link.resolve() == path:
            link.unlink()
