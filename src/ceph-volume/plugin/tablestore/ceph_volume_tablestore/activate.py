"""activate, trigger and deactivate."""
from __future__ import annotations

from pathlib import Path

from ceph_volume import terminal

from . import crypt, units
from .listing import Found, all_osds, find, in_directory, open_and_mount
from .mounts import mounts
from .osd_dir import Osd, Settings, data_path, give_to_ceph
from .place import check_cluster, unmount
from .shell import Refusal, run


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
        except (Refusal, OSError, RuntimeError, ValueError) as error:
            failed.append(str(error))
            terminal.error(str(error))
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
    path = data_path(osd_id)
    if osd_fsid is None and is_out_of_reach(path):
        if units.here():
            units.stop_number(osd_id)
        if path in (mount.point for mount in mounts()):
            run("umount", "-l", path)
        terminal.success(f"osd.{osd_id} is stopped, and stays so; its disk cannot be read")
        return
    found = find(osd_id, osd_fsid)
    if found.problem and found.device is None:
        raise Refusal(found.problem)
    if found.osd and osd_fsid is None:
        check_cluster(found.osd)
    if units.here() and found.osd:
        units.stop(found.osd)
    if found.osd and found.osd.directory.exists() and found.osd.in_use():
        raise Refusal(f"osd.{osd_id} is in use by a process that is not ceph-osd@{osd_id}")
    detach(found)
    terminal.success(f"osd.{osd_id} is stopped, and stays so; 'ceph-volume tablestore activate"
                     f" {osd_id} {found.osd_fsid}' brings it back")


def is_out_of_reach(path: Path) -> bool:
    """The place of an OSD whose disk is gone, or gives errors."""
    found = in_directory(path)
    return path.is_symlink() and not path.exists() or found is not None and bool(found.problem)


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
