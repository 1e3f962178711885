"""What systemd is told: the packaged units, and what ceph-osd@N needs to know of its OSD."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

from ceph_volume.systemd import systemctl

from .osd_dir import Osd, Settings, data_path, read
from .shell import attempt, run

DROP_INS = Path("/run/systemd/system")
WANTS = Path("/etc/systemd/system/multi-user.target.wants")


def here() -> bool:
    return os.path.isdir("/run/systemd/system")


def volume_unit(osd: Osd) -> str:
    return systemctl.volume_unit % ("tablestore", osd.osd_id, osd.osd_fsid)


def drop_in(osd_id: int) -> Path:
    return DROP_INS / f"ceph-osd@{osd_id}.service.d" / "tablestore.conf"


def is_running(osd_id: int) -> bool:
    return here() and attempt("systemctl", "is-active", "-q", f"ceph-osd@{osd_id}")[0] == 0


def start(osd: Osd) -> None:
    """Now, and at each boot by way of ceph-volume@, which comes here again."""
    path = drop_in(osd.osd_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["# Made by 'ceph-volume tablestore activate' at each boot", "[Unit]",
             f"RequiresMountsFor={osd.directory.resolve()}"]
    options = Settings.load(osd.directory).options()
    if options:
        lines += ["[Service]", f'Environment="CEPH_ARGS={" ".join(options)}"']
    path.write_text("\n".join(lines) + "\n")
    run("systemctl", "daemon-reload", show=False)
    run("systemctl", "enable", volume_unit(osd))
    # What had this OSD before `dup` would mount the old store over the new one at the next boot.
    for other in ("lvm", "simple", "raw"):
        attempt("systemctl", "--no-reload", "disable",
                systemctl.volume_unit % (other, osd.osd_id, osd.osd_fsid))
    run("systemctl", "enable", "--runtime", f"ceph-osd@{osd.osd_id}")
    # One that ran into its start limit is started all the same: somebody has asked for it.
    attempt("systemctl", "reset-failed", f"ceph-osd@{osd.osd_id}")
    run("systemctl", "start", f"ceph-osd@{osd.osd_id}")


def stop(osd: Osd) -> None:
    """Now, and it does not come back at the next boot."""
    if has_its_number(osd):
        stop_service(osd.osd_id)
    forget(osd)


def stop_number(osd_id: int) -> None:
    """The same where nobody can say which OSD it is."""
    stop_service(osd_id)
    enabled = WANTS.glob(f"ceph-volume@tablestore-{osd_id}-*.service")
    disable(osd_id, *sorted(each.name for each in enabled))


def stop_service(osd_id: int) -> None:
    """Also one that somebody has enabled by hand."""
    run("systemctl", "stop", f"ceph-osd@{osd_id}")
    run("systemctl", "disable", f"ceph-osd@{osd_id}")
    run("systemctl", "disable", "--runtime", f"ceph-osd@{osd_id}")
    attempt("systemctl", "reset-failed", f"ceph-osd@{osd_id}")


def has_its_number(osd: Osd) -> bool:
    """Or nobody has: the number may be another OSD's by now."""
    try:
        return read(data_path(osd.osd_id), "fsid") in ("", osd.osd_fsid)
    except OSError:
        return False


def forget(osd: Osd) -> None:
    if has_its_number(osd):
        disable(osd.osd_id, volume_unit(osd))
    else:
        run("systemctl", "disable", volume_unit(osd))


def disable(osd_id: int, *volume_units: str) -> None:
    if volume_units:
        run("systemctl", "disable", *volume_units)
    shutil.rmtree(drop_in(osd_id).parent, ignore_errors=True)
    run("systemctl", "daemon-reload", show=False)
