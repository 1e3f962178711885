"""S3: small objects are put, read and deleted through radosgw, in a cluster with cephx."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cephcluster.cluster import Cluster
from cephcluster.services import HOST, start_gateway

from ..consumption import settle
from .load import Load
from .meter import measured
from .workers import Workers

USER = "bench"
# Of a cluster that is gone after some minutes, on the loopback interface.
ACCESS_KEY = "BENCHBENCHBENCHBENCH"
SECRET_KEY = "bench" * 8
FIRST_SECONDS = 2


def phases(cluster: Cluster, load: Load, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    progress("starting radosgw")
    gateway = start_gateway(cluster, USER, ACCESS_KEY, SECRET_KEY)
    cluster.wait_clean()
    settings = {"kind": "s3", "host": HOST, "port": gateway.port, "access_key": ACCESS_KEY,
                "secret_key": SECRET_KEY, "bucket": "bench", "size": load.size}
    with Workers(load.depth, settings, cluster.check_daemons) as workers:
        progress("first objects")
        workers.phase("put", FIRST_SECONDS)     # the gateway makes pools for these
        cluster.wait_clean()
        workers.phase("put", FIRST_SECONDS)
        settle(cluster, load.seconds)
        found = []
        for name in ("put", "get", "delete"):
            progress(name)
            found.append(measured(cluster, name, load.depth,
                                  lambda: workers.done(name, load.seconds),
                                  0 if name == "delete" else load.size,
                                  0 if name == "get" else load.seconds))
    return found
