"""list, and finding an OSD by its number or UUID."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from . import crypt, units
from .mounts import LABEL, mount_of
from .osd_dir import OSDS, Osd, Settings, data_path
from .place import Device, check_cluster, is_of_this_cluster, mount, staging, unmount
from .shell import Refusal, attempt
from .undo import undone_unless_finished


@dataclass(frozen=True)
class Found:
    """Of a device that is encrypted and closed, or that cannot be read, only the UUID is known."""

    osd_fsid: str
    osd: Osd | None
    device: Device | None
    problem: str = ""   # why it cannot be read

    def __str__(self) -> str:
        where = self.device.path if self.device else self.osd and self.osd.directory.resolve()
        name = "an OSD that cannot be read" if self.problem else "an encrypted OSD"
        return f"{f'osd.{self.osd.osd_id}' if self.osd else name} ({where})"


def look(device: Device) -> Osd | None:
    """Mounts it for a moment."""
    if device.is_encrypted():
        return None
    with undone_unless_finished() as undo:
        point = undo.step(lambda: mount(device.path, staging(device.uuid())),
                          f"unmount {device.path}", lambda _: unmount(device.path))
        osd = Osd.load(point)
        unmount(device.path)
    return osd


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


def all_osds() -> list[Found]:
    found = {each.osd_fsid: each for device in devices() if (each := on_device(device))}
    for path in sorted(OSDS.glob("*-*")):
        osd = Osd.load(path)
        if osd and osd.osd_fsid not in found:
            found[osd.osd_fsid] = Found(osd.osd_fsid, osd, None)
    return list(found.values())


def devices() -> list[Device]:
    """All block devices with our label; nothing that is remembered of a disk that is gone."""
    _, lines, _ = attempt("blkid", "-c", "/dev/null", "-t", f"LABEL={LABEL}", "-o", "device")
    return [Device(Path(line)) for line in lines
            if not line.startswith("/dev/mapper/tablestore-")]


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
        found = next((each for each in all_osds() if each.osd_fsid == osd_fsid), None)
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
        settings = Settings.load(osd.directory) if osd and osd.directory.exists() else Settings()
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
            mount(inner, point)
    return Osd(osd.osd_id, osd.osd_fsid, osd.cluster_fsid, point)
