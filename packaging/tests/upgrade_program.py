#!/usr/bin/env python3
"""On a fresh host: upgrade_program.py OLD_DEBS NEW_DEBS RELEASE

A cluster of one TableStore and one BlueStore OSD on the packages of OLD_DEBS, with data. The
upgrade must leave the processes alone; afterwards the OSDs are restarted, and everything is read.
"""
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "qa/cluster"))
sys.path.insert(0, str(CHECKOUT / "packaging/tests"))

from cephcluster.cluster import Cluster  # noqa: E402
from cephcluster.config import STATE, Settings  # noqa: E402
from cephcluster.daemons import Daemon  # noqa: E402
from cephcluster.errors import ClusterError  # noqa: E402
from cephcluster.wait import signals_as_exceptions  # noqa: E402
from label import label_of  # noqa: E402

OBJECTS = 200
OURS = "/usr/lib/ceph-tablestore/ceph-osd"
PACKAGED = "/usr/lib/ceph-tablestore/packaged/ceph-osd"


class MixedCluster(Cluster):
    """osd.0 is a TableStore, osd.1 a BlueStore, both started as /usr/bin/ceph-osd."""

    def _make_osd(self, osd: Daemon) -> None:
        if osd.ident == "1":
            with open(self.layout.conf, "a", encoding="utf-8") as conf:
                conf.write("[osd.1]\n\tosd_objectstore = bluestore\n"
                           "\tbluestore_block_size = 4294967296\n")
        super()._make_osd(osd)

    def _check_store(self, osd: Daemon) -> None:
        kind = (self.layout.data(osd.name) / "type").read_text(encoding="utf-8").strip()
        expect(kind == ("bluestore" if osd.ident == "1" else "tablestore"), f"{osd.name}: {kind}")


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise ClusterError(what)


def install(directory: str) -> None:
    done = subprocess.run(["dpkg", "--force-unsafe-io", "-i",
                           *map(str, sorted(Path(directory).glob("*.deb")))],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    expect(done.returncode == 0, done.stdout + done.stderr)


def executables(cluster: Cluster) -> dict[int, str]:
    """Process -> its program; what dpkg has replaced since counts as what it was."""
    return {pid: os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
            for osd in cluster.osds if (pid := osd.pid())}


def content(number: int) -> bytes:
    return (b"object %d " % number) * (number * 37)


def write(cluster: Cluster) -> None:
    cluster.create_pool("data", groups=8)
    with cluster.client.open_pool("data") as pool:
        for number in range(OBJECTS):
            pool.write_full(f"object-{number}", content(number))
            pool.set_xattr(f"object-{number}", "number", b"%d" % number)


def check(cluster: Cluster) -> None:
    with cluster.client.open_pool("data") as pool:
        for number in range(OBJECTS):
            found = pool.read(f"object-{number}", 1 << 20)
            expect(found == content(number), f"object-{number} has other bytes")
            expect(pool.get_xattr(f"object-{number}", "number") == b"%d" % number,
                   f"object-{number} has another attribute")


def restart(cluster: Cluster) -> None:
    for osd in cluster.osds:
        booted = cluster.boots()
        osd.stop()
        osd.start()
        cluster.wait_up(booted, only=osd)
    cluster.wait_clean()


def upgrade(cluster: Cluster, new: str, release: str) -> None:
    write(cluster)
    before = executables(cluster)
    expect(sorted(before.values()) == sorted([OURS, PACKAGED]), f"wrong programs: {before}")
    install(new)
    expect(executables(cluster) == before, "the upgrade touched running OSDs")
    check(cluster)
    restart(cluster)
    after = executables(cluster)
    expect(sorted(after.values()) == sorted([OURS, PACKAGED]), f"wrong programs: {after}")
    expect(not set(after) & set(before), "the OSDs were not restarted")
    check(cluster)
    metadata = {each["id"]: each for each in cluster.client.mon("osd metadata")}
    expect(metadata[0].get("tablestore_release") == release, f"metadata: {metadata[0]}")
    expect(metadata[0]["ceph_version"].endswith(f" - tablestore {release})"),
           metadata[0]["ceph_version"])
    expect("tablestore_release" not in metadata[1], f"metadata of BlueStore: {metadata[1]}")
    label = label_of(cluster.layout.data("osd.0") / "label")
    expect(label.opened_by == release, f"label: {label}")


def main() -> int:
    old, new, release = sys.argv[1:]
    signals_as_exceptions()
    install(old)
    cluster = MixedCluster(STATE / f"package-upgrade.{os.getpid()}", Settings.new("tablestore", 2),
                           ephemeral=True)
    try:
        cluster.start()
        cluster.wait_clean()
        upgrade(cluster, new, release)
    except ClusterError as error:
        error.report("upgrade")
        return 1
    finally:
        cluster.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
