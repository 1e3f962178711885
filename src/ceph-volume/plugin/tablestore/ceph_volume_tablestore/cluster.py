"""What the monitors are asked, as client.bootstrap-osd."""
from __future__ import annotations

import json
from pathlib import Path

from ceph_volume import conf

from .shell import Refusal, run

SECONDS = 60   # for the monitors to answer


def bootstrap_keyring() -> Path:
    return Path(f"/var/lib/ceph/bootstrap-osd/{conf.cluster}.keyring")


def ceph(*words: object, stdin: str | None = None) -> str:
    if not bootstrap_keyring().exists():
        raise Refusal(f"{bootstrap_keyring()} is missing: 'ceph auth get client.bootstrap-osd -o"
                      f" {bootstrap_keyring()}' on a host with the admin's key makes it")
    lines = run("ceph", "--cluster", conf.cluster, "--connect-timeout", SECONDS,
                "--name", "client.bootstrap-osd", "--keyring", bootstrap_keyring(),
                *words, stdin=stdin)
    return "\n".join(lines).strip()


def check_id(osd_id: int, own_fsid: str) -> None:
    """A number may be asked for if nobody has it, if it is of a destroyed OSD, or if this one has
    got it already and was killed before it knew."""
    osds = json.loads(ceph("osd", "dump", "-f", "json"))["osds"]
    if any(osd["osd"] == osd_id and osd["uuid"] == own_fsid for osd in osds):
        return
    tree = json.loads(ceph("osd", "tree", "-f", "json"))
    for node in tree["nodes"] + tree["stray"]:
        if node["id"] == osd_id and node.get("status") != "destroyed":
            raise Refusal(f"osd.{osd_id} exists: 'ceph osd destroy {osd_id}' gives its number free,"
                          " and its data up")


def new_osd(osd_fsid: str, secrets: dict[str, str], osd_id: int | None) -> int:
    """Again with the same UUID and secrets it is the same OSD."""
    wanted = [] if osd_id is None else [osd_id]
    return int(ceph("-i", "-", "osd", "new", osd_fsid, *wanted, stdin=json.dumps(secrets)))


def purge_new(osd_id: int) -> None:
    """Of an OSD that never ran."""
    ceph("osd", "purge-new", f"osd.{osd_id}", "--yes-i-really-mean-it")

