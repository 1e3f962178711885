"""The cluster level: rados bench against one OSD."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from cephcluster.cluster import Cluster
from cephcluster.daemons import Daemon
from cephcluster.ephemeral import EphemeralCluster
from cephcluster.errors import ClusterError
from cephcluster.tool import run_tool

from .consumption import changes, counters_of, peak_memory_of, since, usage_of

POOL = "bench"
REMOVAL_SECONDS = 1800


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


def come_and_go(cluster: Cluster, size: int, threads: int, seconds: float,
                most_bytes: int) -> list[dict[str, Any]]:
    """So often as it takes: objects are written until they are `most_bytes`, then removed."""
    results: list[dict[str, Any]] = []
    while (left := seconds - sum(float(each["total_time_run"]) for each in results)) >= 1:
        results.append(rados_write(cluster, size, threads, left, most_bytes))
        rados_remove(cluster)
    return results


def operations_by_second(result: dict[str, Any]) -> list[int]:
    finished = [int(each["finished"]) for each in result.get("datas", [])]
    return [later - earlier for earlier, later in zip(finished, finished[1:])]


def measured(osd: Daemon, name: str, size: int, threads: int,
             write: Callable[[], list[dict[str, Any]]]) -> dict[str, Any]:
    """A phase in the form of ceph_tablestore_bench's."""
    before, counted = usage_of([osd]), counters_of([osd])
    results = write()
    after, counters = usage_of([osd]), counters_of([osd])
    operations = [int(each["total_writes_made"]) for each in results]
    usage = since(before, after)
    mean = sum(float(each["average_latency"]) * count for each, count in zip(results, operations))
    return {
        "name": name, "depth": threads, "operations": sum(operations),
        "seconds": sum(float(each["total_time_run"]) for each in results),
        "payload_bytes": sum(operations) * size,
        "latency_us": {"mean": mean / max(sum(operations), 1) * 1e6,
                       "max": max(float(each["max_latency"]) for each in results) * 1e6},
        "interval_ms": 1000,
        "interval_operations": [count for each in results for count in operations_by_second(each)],
        "usage": usage, "usage_settled": usage,
        "counters": changes(counted, counters),
        "peak_memory_bytes": peak_memory_of([osd]),
    }


def space_of(osd: Daemon, phase: str) -> dict[str, float]:
    counters = counters_of([osd])
    used = next((value for name, value in counters.items() if name.endswith("store.allocated")), 0)
    files = [path.lstat().st_blocks * 512 for path in osd.layout.data(osd.name).rglob("*")]
    return {f"used bytes {phase}": used, f"directory bytes {phase}": sum(files)}


def measure(store: str, options: dict[str, str], size: int, threads: int, seconds: float,
            most_bytes: int, parts: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """One run, in the form of ceph_tablestore_bench's result. In several parts its time is all
    that ends it."""
    phases, values = [], {}
    with EphemeralCluster("bench", store, 1, osd_options=options, progress=progress) as cluster:
        cluster.create_pool(POOL)
        osd = cluster.osds[0]
        progress("first objects")
        rados_write(cluster, size, threads, 2, most_bytes // 8)
        progress("rados bench")
        if parts == 1:
            phases.append(measured(osd, "write", size, threads, lambda: [
                rados_write(cluster, size, threads, seconds, most_bytes)]))
        else:
            for name in (f"write {part}" for part in range(1, parts + 1)):
                phases.append(measured(osd, name, size, threads, lambda: come_and_go(
                    cluster, size, threads, seconds / parts, most_bytes)))
                values |= space_of(osd, name)
    return {"options": {"store": store, "workload": "rados", "size": size, "depth": threads,
                        "settings": options}, "phases": phases, "values": values}
