"""zap: an OSD's data is destroyed, and the place is as it was before."""
from __future__ import annotations

from pathlib import Path

from ceph_volume import terminal

from . import units
from .activate import detach
from .listing import Found, all_osds, find
from .osd_dir import OSDS, Marker, empty
from .place import Device, place_of
from .shell import Refusal, attempt, run


def zap(data: str | None, osd_id: int | None, osd_fsid: str | None, destroy: bool) -> None:
    """With `destroy` a directory itself goes too, and a device's blocks are discarded."""
    if data is None:
        target = find(osd_id, osd_fsid)
        where = target.device.path if target.device else target.osd.directory.resolve()
        data = str(where)
    place = place_of(data)
    found = osd_at(place.path)
    if found is None and not unfinished(place):
        raise Refusal(f"{data} holds no OSD of TableStore: nothing was changed")
    if found and found.osd:
        release(found)
    if isinstance(place, Device):
        if found:
            detach(found)
        run("wipefs", "--all", place.path)
        if destroy:
            attempt("blkdiscard", place.path)
    else:
        remove_links(place.path)
        empty(place.path)
        if destroy and not place.path.is_mount():
            place.path.rmdir()
    terminal.success(f"{data} is empty")


def osd_at(path: Path) -> Found | None:
    for found in all_osds():
        if found.device and found.device.path == path:
            return found
        if not found.device and found.osd and found.osd.directory.resolve() == path:
            return found
    from .osd_dir import Osd   # one that has no link any more
    osd = Osd.load(path) if path.is_dir() else None
    return Found(osd.osd_fsid, osd, None) if osd else None


def unfinished(place: object) -> bool:
    if isinstance(place, Device):
        return bool(place.uuid())
    return Marker.load(place.path) is not None


def release(found: Found) -> None:
    """An OSD that runs is not destroyed."""
    osd = found.osd
    if units.is_running(osd.osd_id) or (osd.directory.exists() and osd.in_use()):
        raise Refusal(f"osd.{osd.osd_id} runs: 'ceph-volume tablestore deactivate {osd.osd_id}'"
                      " first")
    if units.here():
        units.forget(osd)


def remove_links(path: Path) -> None:
    for link in OSDS.glob("*-*"):
        if link.is_symlink() and link.resolve() == path:
            link.unlink()
