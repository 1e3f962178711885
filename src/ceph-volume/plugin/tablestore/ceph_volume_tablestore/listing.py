"""list, and finding an OSD by its number or UUID."""
from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from . import crypt, units
from .mounts import LABEL, is_path_of_multipath, mount_of
from .osd_dir import MARKER, OSDS, Osd, Settings, data_path, strangers
from .place import (UNCHANGED, Device, at_a_glance, check_cluster, is_of_this_cluster, mount,
                    staging, unmount)
from .shell import Refusal, attempt
from .undo import undone_unless_finished


@dataclass(frozen=True)
class Found:
    """Of a device that is encrypted and closed, or cannot be read, only the UUID is known; of a
    directory that cannot be read, nothing."""

    osd_fsid: str
    osd: Osd | None
    device: Device | None
    problem: str = ""   # why it cannot be read

    def __str__(self) -> str:
        where = self.device.path if self.device else (
            self.osd.directory.resolve() if self.osd else "a directory")
        name = "an OSD that cannot be read" if self.problem else "an encrypted OSD"
        return f"{f'osd.{self.osd.osd_id}' if self.osd else name} ({where})"


def look(device: Device) -> Osd | None:
    """Mounts it for a moment. Whose it is nobody knows yet, and another host or a guest of this one
    may be using it: so nothing is written, but where XFS's log may have what is missing."""
    if device.is_encrypted():
        return None

    def seen(point: Path) -> tuple[Osd | None, bool]:
        names = strangers(point)
        return Osd.load(point), not names or MARKER in names or "type" in names
    try:
        osd, its_log_may = at_a_glance(device, seen, UNCHANGED)
    except (Refusal, OSError, ValueError):
        osd, its_log_may = None, True
    return osd or (at_a_glance(device, Osd.load) if its_log_may else None)


def on_device(device: Device) -> Found | None:
    """A disk that is broken keeps no other OSD from anything."""
    osd_fsid = device.uuid()
    if not osd_fsid:
        return None
    try:
        at = device.mounted_at()
        osd = Osd.load(at) if at else look(device)
    except (Refusal, OSError, ValueError) as error:
        return Found(osd_fsid, None, device, f"{device.path} cannot be read: {error}")
    return Found(osd_fsid, osd, device) if osd or device.is_encrypted() else None


def on_one_of(devices: list[Device]) -> Found | None:
    """Of those with one UUID, as a disk and its copy have: the one that is in use."""
    if len(devices) == 1:
        return on_device(devices[0])
    mounted = [device for device in devices if is_mounted(device)]
    if len(mounted) == 1:
        return on_device(mounted[0])
    names = " and ".join(str(device.path) for device in devices)
    return Found(devices[0].uuid(), None, None, f"{names} have the same UUID: take all but one"
                 " away, or give them others ('xfs_admin -U generate')")


def is_mounted(device: Device) -> bool:
    try:
        return device.mounted_at() is not None
    except (Refusal, OSError):
        return False


def in_directory(path: Path) -> Found | None:
    try:
        osd = Osd.load(path)
    except (OSError, ValueError) as error:
        return Found("", None, None, f"{path} cannot be read: {error}")
    return Found(osd.osd_fsid, osd, None) if osd else None


def all_osds() -> list[Found]:
    found = {}
    for osd_fsid, those in groupby(sorted(devices(), key=Device.uuid), Device.uuid):
        if osd_fsid and (each := on_one_of(list(those))):
            found[osd_fsid] = each
    for path in sorted(OSDS.glob("*-*")):
        each = in_directory(path)
        if each:
            found.setdefault(each.osd_fsid or str(path), each)
    return list(found.values())


def devices() -> list[Device]:
    """All block devices with our label, but for mappings of ours and paths of what multipath has;
    nothing that is remembered of a disk that is gone."""
    _, lines, _ = attempt("blkid", "-c", "/dev/null", "-t", f"LABEL={LABEL}", "-o", "device")
    return [Device(Path(line)) for line in lines
            if not crypt.is_mapping(line) and not is_path_of_multipath(Path(line))]


def find(osd_id: int | None = None, osd_fsid: str | None = None) -> Found:
    """The one OSD that both, as far as they are given, belong to."""
    path = data_path(osd_id) if osd_id is not None else None
    if path is not None and path.is_symlink() and not path.exists():
        raise Refusal(f"{path} leads to {path.readlink()}, which is not there: is its file system"
                      " mounted?")
    name = f"osd.{osd_id}" if osd_id is not None else "an OSD"
    none = Refusal(f"there is no TableStore of {name}{f' ({osd_fsid})' if osd_fsid else ''} on this"
                   " host")
    if osd_fsid:
        # Nothing else is looked at: at a boot each OSD comes here for itself.
        found = on_one_of(those) if (those := [
            device for device in devices() if device.uuid() == osd_fsid]) else None
        found = found or next((each for each in all_osds() if each.osd_fsid == osd_fsid), None)
        if found and found.osd and osd_id not in (None, found.osd.osd_id):
            raise Refusal(f"{osd_fsid} is osd.{found.osd.osd_id}, not osd.{osd_id}")
    else:
        found = with_number(osd_id)
    if found is None:
        raise none
    return found


def with_number(osd_id: int | None) -> Found | None:
    """Of this cluster, where another one has the same number on a disk here."""
    those = [each for each in all_osds() if each.osd and each.osd.osd_id == osd_id]
    those = [each for each in those if each.osd and is_of_this_cluster(each.osd)] or those
    if len(those) > 1:
        raise Refusal(f"{len(those)} OSDs here are osd.{osd_id}: name one by its UUID, too: "
                      + ", ".join(f"{each.osd_fsid} {each}" for each in those))
    return those[0] if those else None


def as_json() -> str:
    table: dict[str, list[dict[str, object]]] = {}
    for found in all_osds():
        osd = found.osd
        settings = settings_of(osd)
        entry = {"type": "tablestore", "osd_id": osd and osd.osd_id, "osd_fsid": found.osd_fsid,
                 "cluster_fsid": osd and osd.cluster_fsid,
                 "device": str(found.device.path) if found.device else None,
                 "encrypted": bool(found.device and found.device.is_encrypted()),
                 "data": str(osd.directory.resolve()) if osd and not found.device else None,
                 "file_system": "xfs" if found.device else
                 mount_of(osd.directory).kind if osd else None,
                 "running": bool(osd and units.is_running(osd.osd_id)),
                 "capacity": settings.capacity, "provision": settings.provision,
                 "problem": found.problem}
        table.setdefault(str(osd.osd_id) if osd else "unknown", []).append(entry)
    return json.dumps(table, indent=4)


def settings_of(osd: Osd | None) -> Settings:
    """As far as they can be read."""
    try:
        return Settings.load(osd.directory) if osd and osd.directory.exists() else Settings()
    except (Refusal, OSError, TypeError):
        return Settings()


def as_text() -> str:
    lines = []
    for found in all_osds():
        state = "runs" if found.osd and units.is_running(found.osd.osd_id) else "does not run"
        lines.append(f"{found}  {found.osd_fsid}  {found.problem or state}")
    return "\n".join(lines) if lines else "there is no OSD of TableStore on this host"


def open_and_mount(found: Found) -> Osd:
    """Where ceph-osd@ looks for it. What belongs to another cluster stays where it is."""
    if found.problem:
        raise Refusal(found.problem)
    if found.device is None:
        assert found.osd is not None
        check_cluster(found.osd)
        return found.osd
    with undone_unless_finished() as undo:
        inner = found.device.path
        if found.device.is_encrypted() and not crypt.mapping(inner).exists():
            undo.step(lambda: crypt.open_device(found.device.path), f"close {inner}",
                      lambda _: crypt.close(found.device.path))
        if found.device.is_encrypted():
            inner = crypt.mapping(inner)
        osd = found.osd
        if osd is None:
            osd = Osd.load(undo.step(lambda: mount(inner, staging(found.osd_fsid)),
                                     f"unmount {inner}", lambda _: unmount(inner)))
        if osd is None:
            raise Refusal(f"{found.device.path} holds no finished OSD")
        check_cluster(osd, found.device.path)
        point = data_path(osd.osd_id)
        at = found.device.mounted_at()
        if at != point:
            if at is not None:
                unmount(inner)
            if point.is_dir() and any(point.iterdir()):
                raise Refusal(f"{point} is not empty: {found} cannot be mounted there")
            undo.step(lambda: mount(inner, point), f"unmount {inner}", lambda _: unmount(inner))
        # Whole, where a look had to do without XFS's log.
        osd = Osd.load(point)
        if osd is None:
            raise Refusal(f"{found.device.path} holds no finished OSD")
        check_cluster(osd, found.device.path)
    return osd
