"""rados bench of several processes, each with its share of what is in flight: a single one would
be busier than the OSDs that it measures."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cephcluster.cluster import Cluster

from ..consumption import settle
from ..rados import POOL, result_of
from .load import Load
from .meter import measured
from .processes import run_together
from .together import Done, of_rados_bench

PROCESSES = 4
FIRST_SECONDS = 2


def write(cluster: Cluster, load: Load, seconds: float, run: str, most_bytes: int) -> Done:
    """Ends also when there are `most_bytes` of objects, which stay."""
    each = load.depth // PROCESSES
    commands: list[list[object]] = [
        ["rados", "-c", cluster.layout.conf, "-p", POOL, "bench", round(seconds), "write",
         "-b", load.size, "-t", each, "--no-cleanup", "--run-name", f"{run}-{number}",
         "--max-objects", most_bytes // load.size // PROCESSES, "--format", "json"]
        for number in range(PROCESSES)]
    said, user, system = run_together(commands, seconds + 120, cluster.check_daemons)
    return of_rados_bench([result_of(each) for each in said], user, system)


def phases(cluster: Cluster, load: Load, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    cluster.create_pool(POOL)
    progress("first objects")
    write(cluster, load, FIRST_SECONDS, "first", load.store_bytes // 16)
    settle(cluster, load.seconds)
    progress("rados bench")
    return [measured(cluster, "write", load.depth,
                     lambda: write(cluster, load, load.seconds, "write", load.store_bytes * 2 // 3),
                     load.size, load.seconds)]
