"""Runs that failed. They have no figures, so it has to be said that they are missing."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .calm import key_of
from .targets import Goal


@dataclass(frozen=True)
class Failures:
    """(cell, variant): how many of its runs failed, of how many. Only where some did."""

    counts: dict[tuple[str, str], tuple[int, int]]

    def __bool__(self) -> bool:
        return bool(self.counts)

    @property
    def total(self) -> int:
        return sum(failed for failed, _ in self.counts.values())

    def of(self, goal: Goal) -> Failures:
        """Of the goal's own workloads, on the stores that have to reach it."""
        return Failures({(cell, variant): counts for (cell, variant), counts in self.counts.items()
                         if goal.covers(cell) and variant in goal.stores})


def failures_of(sessions: Iterable[dict[str, Any]]) -> Failures:
    runs = [run for session in sessions for run in session.get("runs", [])]
    total = Counter(map(key_of, runs))
    failed = Counter(key_of(run) for run in runs if "failed" in run["result"])
    return Failures({key: (count, total[key]) for key, count in failed.items()})
