"""list, and finding an OSD by its number or UUID."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from . import crypt, units
from .mounts import LABEL, mount_of
from .osd_dir import OSDS, Osd, Settings, data_path
from .place import Device, mount, staging, unmount
from .shell import Refusal, attempt
from .undo import undone_unless_finished


@dataclass(frozen=True)
class Found:
    """Of a device that is encrypted and closed only the UUID is known."""

    osd_fsid: str
    osd: Osd | None
    device: Device | None

    def __str__(self) -> str:
        where = self.device.path if self.device else self.osd and self.osd.directory.resolve()
        return f"{f'osd.{self.osd.osd_id}' if self.osd else 'an encrypted OSD'} ({where})"


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


def all_osds() -> list[Found]:
    found = {}
    for device in devices():
        at = device.mounted_at()
        osd = Osd.load(at) if at else look(device)
        if osd or device.is_encrypted():
            found[device.uuid()] = Found(device.uuid(), osd, device)
    for path in sorted(OSDS.glob("*-*")):
        osd = Osd.load(path)
        if osd and osd.osd_fsid not in found:
            found[osd.osd_fsid] = Found(osd.osd_fsid, osd, None)
    return list(found.values())


def devices() -> list[Device]:
    """All block devices with our label; nothing that is remembered of a disk that is gone."""
    _, lines, _ = attempt("blkid", "-c", "/dev/null", "-t", f"LABEL={LABEL}", "-o", "device")
    inside = [Device(Path(line)) for line in lines
              if not line.startswith("/dev/mapper/tablestore-")]
    return [device for device in inside if device.uuid()]


def find(osd_id: int | None = None, osd_fsid: str | None = None) -> Found:
    """The one OSD that both, as far as they are given, belong to."""
    path = data_path(osd_id) if osd_id is not None else None
    if path is not None and path.is_symlink() and not path.exists():
        raise Refusal(f"{path} leads to {path.readlink()}, which is not there: is its file system"
                      " mounted?")
    for found in all_osds():
        if osd_fsid and found.osd_fsid != osd_fsid:
            continue
        if osd_id is None or found.osd is None or found.osd.osd_id == osd_id:
            if found.osd or osd_fsid:
                return found
        elif osd_fsid:
            raise Refusal(f"{osd_fsid} is osd.{found.osd.osd_id}, not osd.{osd_id}")
    name = f"osd.{osd_id}" if osd_id is not None else "an OSD"
    raise Refusal(f"there is no TableStore of {name}{f' ({osd_fsid})' if osd_fsid else ''} on this"
                  " host")


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
                 "capacity": settings.capacity, "provision": settings.provision}
        table.setdefault(str(osd.osd_id) if osd else "unknown", []).append(entry)
    return json.dumps(table, indent=4)


def as_text() -> str:
    lines = []
    for found in all_osds():
        state = "runs" if found.osd and units.is_running(found.osd.osd_id) else "does not run"
        lines.append(f"{found}  {found.osd_fsid}  {state}")
    return "\n".join(lines) if lines else "there is no OSD of TableStore on this host"


def open_and_mount(found: Found) -> Osd:
    """Where ceph-osd@ looks for it."""
    if found.device is None:
        assert found.osd is not None
        return found.osd
    inner = found.device.path
    if found.device.is_encrypted():
        inner = crypt.open_device(found.device.path)
    osd = found.osd
    if osd is None:
        osd = Osd.load(mount(inner, staging(found.osd_fsid)))
    if osd is None:
        raise Refusal(f"{found.device.path} holds no finished OSD")
    point = data_path(osd.osd_id)
    at = found.device.mounted_at()
    if at != point:
        if at is not None:
            unmount(inner)
        if point.is_dir() and any(point.iterdir()):
            raise Refusal(f"{point} is not empty: {found} cannot be mounted there")
        mount(inner, point)
    return Osd(osd.osd_id, osd.osd_fsid, osd.cluster_fsid, point)
