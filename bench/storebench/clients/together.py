"""What several client processes did at the same time, added up."""
from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from cephcluster.errors import ClusterError

INTERVAL_MS = 100      # of what workers count

Reported = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """Of all clients together. The seconds are those of the one that took longest; a count for an
    interval is there for the time in which all of them were at work."""

    operations: int
    seconds: float
    latency_us: dict[str, float]
    interval_ms: int
    interval_operations: list[int]
    client_user_seconds: float
    client_system_seconds: float


def sums(counts: list[list[int]]) -> list[int]:
    """By interval, as far as every client goes."""
    return [sum(each) for each in zip(*counts)]


def of_rados_bench(results: list[Reported], user: float, system: float) -> Done:
    """What several rados bench have printed as JSON. It tells no percentiles."""
    operations = [int(each["total_writes_made"]) for each in results]
    total = sum(operations)
    mean = sum(float(each["average_latency"]) * count for each, count in zip(results, operations))
    return Done(total, max(float(each["total_time_run"]) for each in results),
                {"mean": mean / max(total, 1) * 1e6,
                 "max": max(float(each["max_latency"]) for each in results) * 1e6},
                1000, sums([operations_by_second(each) for each in results]), user, system)


def operations_by_second(result: Reported) -> list[int]:
    finished = [int(each["finished"]) for each in result.get("datas", [])]
    return [later - earlier for earlier, later in zip(finished, finished[1:])]


def of_rbd_bench(said: str, depth: int, user: float, system: float) -> Done:
    """One process's text. It tells no latency: with so many always in flight, the mean is what
    each of them had of the time."""
    found = re.search(r"ops: (\d+)\s+ops/sec: ([\d.e+]+)", said)
    if not found or not float(found[2]):
        raise ClusterError("rbd bench printed no result", details=said.splitlines()[-5:])
    operations = int(found[1])
    seconds = operations / float(found[2])
    return Done(operations, seconds, {"mean": seconds * depth / operations * 1e6}, 1000,
                rbd_operations_by_second(said), user, system)


def rbd_operations_by_second(said: str) -> list[int]:
    """It prints no line for a second in which nothing was done."""
    so_far = [(int(line[1]), int(line[2]))
              for line in re.finditer(r"^ *(\d+) +(\d+) +[\d.e+]+ ", said, re.M)]
    counts = []
    for (before, had), (second, has) in zip(so_far, so_far[1:]):
        counts += [0] * (second - before - 1) + [has - had]
    return counts


def of_workers(results: list[Reported]) -> Done:
    """What worker.py's processes have reported of one phase that they began together."""
    latencies = sorted(each for result in results for each in result["latencies_us"])
    total = sum(result["operations"] for result in results)
    counts = [sum(each) for each in
              zip_longest(*(result["intervals"] for result in results), fillvalue=0)]
    all_at_work = min(result["seconds"] for result in results)
    return Done(total, max(result["seconds"] for result in results), distribution(latencies),
                INTERVAL_MS, counts[:int(all_at_work * 1000 / INTERVAL_MS)],
                sum(result["user_seconds"] for result in results),
                sum(result["system_seconds"] for result in results))


def distribution(ordered: list[float]) -> dict[str, float]:
    if not ordered:
        return {"mean": 0, "max": 0}
    return {"mean": sum(ordered) / len(ordered), "p50": at_share(ordered, 0.5),
            "p99": at_share(ordered, 0.99), "p99_9": at_share(ordered, 0.999),
            "max": ordered[-1]}


def at_share(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
