"""rbd bench: random overwrites of an image that is full. Without librbd's cache, so that a write
is done when the OSDs have it."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from cephcluster.cluster import Cluster
from cephcluster.tool import run_tool
from cephcluster.wait import wait_until

from ..consumption import settle
from .load import Load
from .meter import measured
from .processes import ClientProcess, children_seconds
from .together import Done, of_rbd_bench

POOL = "rbd"
IMAGE = f"{POOL}/bench"
MOST_IMAGE_BYTES = 1 << 30
FILL_SIZE = 4 << 20
FIRST_SECONDS = 2
STARTS_SECONDS = 30
ENDS_SECONDS = 60
NO_END = "1000000G"


def bench(cluster: Cluster, load: Load, seconds: float) -> Done:
    """It knows no time, but an interrupt ends it in order: what is in flight ends, and it says
    what it did."""
    with children_seconds() as taken, ClientProcess(
            "rbd", "-c", cluster.layout.conf, "--rbd-cache=false", "bench", IMAGE,
            "--io-type", "write", "--io-pattern", "rand", "--io-size", load.size,
            "--io-threads", load.depth, "--io-total", NO_END) as client:
        wait_until("rbd bench to begin", lambda: client.has_ended() or client.said(),
                   STARTS_SECONDS, poll=0.02)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not client.has_ended():
            time.sleep(min(left, 0.5))
            cluster.check_daemons()
        client.interrupt()
        said = client.wait(ENDS_SECONDS, cluster.check_daemons)
        return of_rbd_bench(said, load.depth, *taken())


def phases(cluster: Cluster, load: Load, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    cluster.create_pool(POOL, application="rbd")
    image_bytes = min(MOST_IMAGE_BYTES, load.store_bytes // 4)
    run_tool("rbd", "-c", cluster.layout.conf, "create", IMAGE, "--size",
             f"{image_bytes >> 20}M")
    progress("filling the image")
    run_tool("rbd", "-c", cluster.layout.conf, "--rbd-cache=false", "bench", IMAGE, "--io-type",
             "write", "--io-pattern", "full-seq", "--io-size", FILL_SIZE, "--io-total",
             image_bytes, timeout=600, watch=cluster.check_daemons)
    progress("first overwrites")
    bench(cluster, load, FIRST_SECONDS)
    settle(cluster, load.seconds)
    progress("rbd bench")
    return [measured(cluster, "overwrite", load.depth, lambda: bench(cluster, load, load.seconds),
                     load.size, load.seconds)]
