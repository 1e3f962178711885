"""Deep scrub of everything, and what it found."""
from __future__ import annotations

from typing import Any

from .cluster import Cluster
from .errors import ClusterError
from .wait import wait_until

SCRUB_SECONDS = 180
ASK_AGAIN_SECONDS = 15


def deep_scrub(cluster: Cluster) -> int:
    """Deep-scrubs every placement group; a ClusterError names those with
    errors. Returns how many were scrubbed."""
    groups = scrubbed_deeply(cluster)
    bad = damaged(groups)
    if bad:
        raise ClusterError("deep scrub found damage", details=[
            f"{group['pgid']} is {group['state']} with"
            f" {group['stat_sum']['num_scrub_errors']} scrub errors" for group in bad])
    return len(groups)


def scrubbed_deeply(cluster: Cluster) -> list[dict[str, Any]]:
    """All placement groups after a deep scrub of each, whatever it found."""
    before = {group["pgid"]: stamp(group) for group in cluster.placement_groups()}

    def waiting() -> list[str]:
        return [group["pgid"] for group in cluster.placement_groups()
                if stamp(group) == before[group["pgid"]] or "scrubbing" in group["state"]]

    left = SCRUB_SECONDS
    while pending := waiting():
        if left <= 0:
            raise ClusterError(f"not deep-scrubbed after {SCRUB_SECONDS} s: {', '.join(pending)}")
        # A request is forgotten when the group was not clean at that moment.
        for pgid in pending:
            cluster.client.mgr("pg deep-scrub", pgid=pgid)
        try:
            wait_until("deep scrubs", lambda: not waiting(), ASK_AGAIN_SECONDS)
        except ClusterError:
            left -= ASK_AGAIN_SECONDS
    return cluster.placement_groups()


def damaged(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [group for group in groups
            if group["stat_sum"]["num_scrub_errors"] or "inconsistent" in group["state"]]


def repair(cluster: Cluster, pgid: str) -> None:
    """`pg repair`, until the group is clean and no damage is left in it."""

    def mended() -> bool:
        group, = (each for each in cluster.placement_groups() if each["pgid"] == pgid)
        return group["state"] == "active+clean" and not damaged([group])

    cluster.client.mgr("pg repair", pgid=pgid)
    wait_until(f"{pgid} to be repaired", mended, SCRUB_SECONDS)


def stamp(group: dict[str, Any]) -> str:
    return group["last_deep_scrub_stamp"]
