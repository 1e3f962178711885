"""What stands between clients and OSDs: a metadata server for CephFS, a gateway for S3. Both are
Debian's. They stop with their cluster; a cluster that is started again has none."""
from __future__ import annotations

import socket
from contextlib import closing

from .cluster import Cluster
from .config import Layout, free_port
from .daemons import Daemon
from .keys import give_key
from .tool import run_tool
from .wait import wait_until

ACTIVE_SECONDS = 60
GATEWAY_SECONDS = 120       # it makes its pools first
FILE_SYSTEM = "cephfs"
HOST = "127.0.0.1"


def start_file_system(cluster: Cluster) -> Daemon:
    """CephFS with one metadata server, which is active when this comes back."""
    mds = Daemon(cluster.layout, "mds", "a", ephemeral=cluster.ephemeral)
    cluster.layout.data(mds.name).mkdir()
    give_key(cluster, mds.name, mon="allow profile mds", mgr="allow profile mds",
             osd="allow rwx", mds="allow *")
    for kind in ("metadata", "data"):
        cluster.create_pool(f"{FILE_SYSTEM}.{kind}", application="cephfs")
    cluster.client.mon("fs new", fs_name=FILE_SYSTEM, metadata=f"{FILE_SYSTEM}.metadata",
                       data=f"{FILE_SYSTEM}.data")
    cluster.services.append(mds)
    mds.start()

    def active() -> bool:
        mds.check_alive()
        found = cluster.client.mon("fs dump")["filesystems"]
        return any(each["state"] == "up:active"
                   for each in found[0]["mdsmap"]["info"].values())

    wait_until("the metadata server to be active", active, ACTIVE_SECONDS,
               explain=mds.last_lines)
    return mds


class Gateway(Daemon):
    """radosgw, with a user who may do everything with what is his."""

    def __init__(self, layout: Layout, *, ephemeral: bool):
        super().__init__(layout, "client", "rgw.a", ephemeral=ephemeral)
        self.program = "radosgw"
        self.port = free_port()

    def command(self, *arguments: str) -> list[str]:
        return [*super().command(*arguments),
                # Else a small answer waits for the acknowledgement of its own head.
                "--rgw-frontends", f"beast endpoint={HOST}:{self.port} tcp_nodelay=1",
                "--log-file", str(self.layout.log(self.name)),
                "--admin-socket", str(self.layout.socket(self.name))]

    def answers(self) -> bool:
        self.check_alive()
        with closing(socket.socket()) as probe:
            return probe.connect_ex((HOST, self.port)) == 0


def start_gateway(cluster: Cluster, user: str, access_key: str, secret_key: str) -> Gateway:
    gateway = Gateway(cluster.layout, ephemeral=cluster.ephemeral)
    give_key(cluster, gateway.name, mon="allow rw", mgr="allow rw", osd="allow rwx")
    cluster.services.append(gateway)
    gateway.start()
    wait_until("radosgw to answer", gateway.answers, GATEWAY_SECONDS, explain=gateway.last_lines)
    run_tool("radosgw-admin", "-c", cluster.layout.conf, "user", "create", "--uid", user,
             "--display-name", user, "--access-key", access_key, "--secret-key", secret_key,
             watch=cluster.check_daemons)
    return gateway
