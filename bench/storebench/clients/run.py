"""One run of a cluster of one to three OSDs under librados, RBD, CephFS or S3."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cephcluster.ephemeral import EphemeralCluster

from . import cephfs, rados_clients, rbd, s3
from .load import Load

# By the cells' workloads.
KINDS = {"clients-rados": rados_clients, "clients-rbd": rbd, "clients-cephfs": cephfs,
         "clients-s3": s3}
WITH_CEPHX = ("clients-s3",)


def measure(kind: str, store: str, options: dict[str, str], load: Load,
            progress: Callable[[str], None]) -> dict[str, Any]:
    """One run, in the form of ceph_tablestore_bench's result."""
    with EphemeralCluster("bench", store, load.osds, osd_options=options,
                          cephx=kind in WITH_CEPHX, progress=progress) as cluster:
        phases = KINDS[kind].phases(cluster, load, progress)
    return {"options": {"store": store, "workload": kind, "osds": load.osds, "size": load.size,
                        "depth": load.depth, "settings": options},
            "phases": phases, "values": {}}
