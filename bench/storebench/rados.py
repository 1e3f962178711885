"""The cluster level: rados bench against one OSD."""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from cephcluster.cluster import Cluster
from cephcluster.ephemeral import EphemeralCluster
from cephcluster.errors import ClusterError
from cephcluster.tool import run_tool

from .consumption import changes, counters_of, peak_memory_of, settle, since, usage_of

POOL = "bench"
REMOVAL_SECONDS = 1800
BOUTS = 5       # in which objects come and go, in each part of a long run


def rados_write(cluster: Cluster, size: int, threads: int, seconds: float,
                most_bytes: int) -> dict[str, Any]:
    """It ends when there are `most_bytes` of objects, which stay."""
    printed = run_tool("rados", "-c", cluster.layout.conf, "-p", POOL, "bench",
                       str(round(seconds)), "write", "-b", str(size), "-t", str(threads),
                       "--no-cleanup", "--max-objects", str(most_bytes // size),
                       "--format", "json", timeout=seconds + 120, watch=cluster.check_daemons)
    return result_of(printed)


def result_of(printed: str) -> dict[str, Any]:
    try:
        return json.loads(printed[printed.index("{"):])
    except ValueError:
        raise ClusterError("rados bench printed no result",
                           details=printed.splitlines()[-5:]) from None


def rados_remove(cluster: Cluster) -> None:
    """What the last rados_write() wrote."""
    run_tool("rados", "-c", cluster.layout.conf, "-p", POOL, "cleanup",
             timeout=REMOVAL_SECONDS, watch=cluster.check_daemons)


class Writes:
    """What `rados bench` said of each time that it wrote, and what these took together."""

    def __init__(self, cluster: Cluster, size: int, threads: int, most_bytes: int):
        self._cluster, self._size, self._threads = cluster, size, threads
        self._most_bytes = most_bytes
        self.results: list[dict[str, Any]] = []
        self.usage: Counter[str] = Counter()

    def once(self, seconds: float) -> None:
        before = usage_of(self._cluster.osds)
        self.results.append(rados_write(self._cluster, self._size, self._threads, seconds,
                                        self._most_bytes))
        self.usage.update(since(before, usage_of(self._cluster.osds)))

    def seconds(self) -> float:
        return sum(float(each["total_time_run"]) for each in self.results)

    def come_and_go(self, seconds: float, before_last_removal: Callable[[], None]) -> None:
        """So often for each store, however fast it is: a removal, which is not in `usage`, is a
        rest from writing."""
        for bout in range(1, BOUTS + 1):
            self.once(seconds / BOUTS)
            if bout == BOUTS:
                before_last_removal()
            rados_remove(self._cluster)


def operations_by_second(result: dict[str, Any]) -> list[int]:
    finished = [int(each["finished"]) for each in result.get("datas", [])]
    return [later - earlier for earlier, later in zip(finished, finished[1:])]


def measured(cluster: Cluster, name: str, size: int, threads: int, most_bytes: int,
             write: Callable[[Writes], None], settle_seconds: float) -> dict[str, Any]:
    """A phase in the form of ceph_tablestore_bench's. `usage_settled` and the counters are of all
    of it, the removals included."""
    osds = cluster.osds
    counted, before = counters_of(osds), usage_of(osds)
    writes = Writes(cluster, size, threads, most_bytes)
    write(writes)
    settle(cluster, settle_seconds)
    after, counters = usage_of(osds), counters_of(osds)
    results = writes.results
    operations = [int(each["total_writes_made"]) for each in results]
    mean = sum(float(each["average_latency"]) * count for each, count in zip(results, operations))
    return {
        "name": name, "depth": threads, "operations": sum(operations),
        "seconds": writes.seconds(), "payload_bytes": sum(operations) * size,
        "latency_us": {"mean": mean / max(sum(operations), 1) * 1e6,
                       "max": max(float(each["max_latency"]) for each in results) * 1e6},
        "interval_ms": 1000,
        "interval_operations": [count for each in results for count in operations_by_second(each)],
        "usage": dict(writes.usage), "usage_settled": since(before, after),
        "counters": changes(counted, counters),
        "peak_memory_bytes": peak_memory_of(osds),
    }


def used_bytes(cluster: Cluster) -> float:
    """As the OSD has told the manager: some seconds old."""
    try:
        return sum(int(node["kb_used"]) for node in cluster.client.mgr("osd df")["nodes"]) << 10
    except (KeyError, TypeError, ValueError) as error:
        raise ClusterError(f"the manager says nothing of the space in use: {error!r}") from None


def measure(store: str, options: dict[str, str], size: int, threads: int, seconds: float,
            most_bytes: int, parts: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """One run, in the form of ceph_tablestore_bench's result. In several parts its time is all
    that ends it."""
    phases: list[dict[str, Any]] = []
    values: dict[str, float] = {}
    with EphemeralCluster("bench", store, 1, osd_options=options, progress=progress) as cluster:
        cluster.create_pool(POOL)
        progress("first objects")
        rados_write(cluster, size, threads, 2, most_bytes // 8)
        progress("rados bench")
        if parts == 1:
            phases.append(measured(cluster, "write", size, threads, most_bytes,
                                   lambda writes: writes.once(seconds), seconds))
        else:
            for part in range(1, parts + 1):
                def note_space(name: str = f"used bytes write {part}") -> None:
                    values[name] = used_bytes(cluster)

                # What goes on in the background is the next part's as well.
                phases.append(measured(
                    cluster, f"write {part}", size, threads, most_bytes,
                    lambda writes: writes.come_and_go(seconds / parts, note_space),
                    seconds if part == parts else 0))
    return {"options": {"store": store, "workload": "rados", "size": size, "depth": threads,
                        "settings": options}, "phases": phases, "values": values}
