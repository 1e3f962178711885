"""cephx: the keys of a cluster's daemons and of its one client, client.admin."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .config import Layout
from .tool import run_tool

if TYPE_CHECKING:
    from .cluster import Cluster

ADMIN = "client.admin"


def first_keys(layout: Layout) -> Path:
    """A keyring for the mon's mkfs, with its own key and the client's."""
    admin, first = layout.key(ADMIN), layout.key("first")
    everything = [word for kind in ("mon", "osd", "mgr", "mds")
                  for word in ("--cap", kind, "allow *")]
    run_tool("ceph-authtool", "--create-keyring", admin, "--gen-key", "-n", ADMIN, *everything)
    run_tool("ceph-authtool", "--create-keyring", first, "--gen-key", "-n", "mon.",
             "--cap", "mon", "allow *")
    run_tool("ceph-authtool", first, "--import-keyring", admin)
    return first


def give_key(cluster: Cluster, name: str, **caps: str) -> None:
    """A daemon finds its key where ceph.conf says. Without cephx nobody needs one."""
    if not cluster.settings.cephx:
        return
    answer = cluster.client.mon("auth get-or-create", entity=name,
                                caps=[word for each in caps.items() for word in each])
    key = cluster.layout.key(name)
    key.touch(0o600)
    key.write_text(f"[{name}]\n\tkey = {answer[0]['key']}\n")
