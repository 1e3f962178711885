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
    groups = cluster.placement_groups()
    bad = [f"{group['pgid']} is {group['state']} with"
           f" {group['stat_sum']['num_scrub_errors']} scrub errors"
           for group in groups
           if group["stat_sum"]["num_scrub_errors"] or "inconsistent" in group["state"]]
    if bad:
        raise ClusterError("deep scrub found damage", details=bad)
    return len(groups)


def stamp(group: dict[str, Any]) -> str:
    return group["last_deep_scrub_stamp"]
