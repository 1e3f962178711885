"""activate, trigger and deactivate."""
from __future__ import annotations

from ceph_volume import terminal

from . import crypt, units
from .listing import Found, all_osds, find, open_and_mount
from .osd_dir import Osd, Settings, give_to_ceph
from .place import unmount
from .shell import Refusal


def activate(found: Found, systemd: bool, capacity: int | None = None) -> Osd:
    """Runs, and will after a reboot. Of one that runs already nothing changes, unless it gets
    another capacity: then it has that from its next start on."""
    osd = open_and_mount(found)
    if capacity is not None:
        settings = Settings.load(osd.directory)
        settings.capacity = capacity
        settings.save(osd.directory)
    give_to_ceph(osd.directory.resolve())
    if not systemd:
        terminal.success(f"osd.{osd.osd_id} is in {osd.directory}; start it with ceph-osd"
                         f" {' '.join(Settings.load(osd.directory).options())}")
        return osd
    if not units.here():
        raise Refusal("systemd does not run here: --no-systemd leaves the start to somebody else")
    units.start(osd)
    terminal.success(f"osd.{osd.osd_id} runs")
    return osd


def activate_all(systemd: bool) -> None:
    """Those that cannot be are told of, and do not keep the others."""
    failed = []
    for found in all_osds():
        try:
            activate(found, systemd)
        except Refusal as refusal:
            failed.append(str(refusal))
            terminal.error(str(refusal))
    if failed:
        raise Refusal(f"{len(failed)} OSD(s) could not be activated")


def trigger(words: str) -> None:
    """What the unit ceph-volume@tablestore-N-UUID says."""
    number, _, osd_fsid = words.partition("-")
    if not number.isdigit() or not osd_fsid:
        raise Refusal(f"'{words}' is not NUMBER-UUID")
    activate(find(int(number), osd_fsid), systemd=True)


def deactivate(osd_id: int, osd_fsid: str | None) -> None:
    """Its data stays; `activate` brings it back."""
    found = find(osd_id, osd_fsid)
    if units.here() and found.osd:
        units.stop(found.osd)
    if found.osd and found.osd.directory.exists() and found.osd.in_use():
        raise Refusal(f"osd.{osd_id} is in use by a process that is not ceph-osd@{osd_id}")
    detach(found)
    terminal.success(f"osd.{osd_id} is stopped, and stays so; 'ceph-volume tablestore activate"
                     f" {osd_id} {found.osd_fsid}' brings it back")


def detach(found: Found) -> None:
    """Unmounts and closes it."""
    if found.device is None:
        return
    if found.device.is_encrypted():
        if crypt.mapping(found.device.path).exists():
            unmount(crypt.mapping(found.device.path))
        crypt.close(found.device.path)
    else:
        unmount(found.device.path)
