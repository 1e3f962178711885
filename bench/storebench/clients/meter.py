"""A phase in the form of ceph_tablestore_bench's: what the clients did, and what it took of the
OSDs, of the daemons in front of them and of the disk."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from cephcluster.cluster import Cluster

from ..consumption import (changes, counters_of, peak_memory_of, processor_seconds, settle,
                           since, usage_of)
from .together import Done


def usage(cluster: Cluster) -> dict[str, float]:
    services = [processor_seconds(each) for each in cluster.services]
    return usage_of(cluster.osds) | {
        "wall_seconds": time.monotonic(),
        "service_user_seconds": sum(user for user, _ in services),
        "service_system_seconds": sum(system for _, system in services)}


def measured(cluster: Cluster, name: str, depth: int, work: Callable[[], Done],
             payload_per_operation: int, settle_seconds: float = 0) -> dict[str, Any]:
    counted, before = counters_of(cluster.osds), usage(cluster)
    done = work()
    after, counters = usage(cluster), counters_of(cluster.osds)
    if settle_seconds:
        settle(cluster, settle_seconds)
    settled = usage(cluster)
    clients = {"client_user_seconds": done.client_user_seconds,
               "client_system_seconds": done.client_system_seconds}
    return {
        "name": name, "depth": depth, "operations": done.operations, "seconds": done.seconds,
        "payload_bytes": done.operations * payload_per_operation,
        "latency_us": done.latency_us, "interval_ms": done.interval_ms,
        "interval_operations": done.interval_operations,
        "usage": since(before, after) | clients,
        "usage_settled": since(before, settled) | clients,
        "counters": changes(counted, counters),
        "peak_memory_bytes": peak_memory_of(cluster.osds),
    }
