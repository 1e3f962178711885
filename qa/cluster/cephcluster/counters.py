"""What the stores' own counters say about their commits."""
from __future__ import annotations

from dataclasses import dataclass, fields

from .cluster import Cluster

SECTION = "tablestore"


@dataclass(frozen=True)
class CommitCounters:
    """Sums over the cluster's OSDs; all zero with another store."""

    groups: int = 0
    transactions: int = 0
    flushes: int = 0
    container_flushes: int = 0
    log_bytes: int = 0
    data_bytes: int = 0
    log_full_waits: int = 0

    @staticmethod
    def of(cluster: Cluster) -> CommitCounters:
        sections = [osd.ask("perf dump").get(SECTION, {}) for osd in cluster.osds]
        return CommitCounters(**{
            field.name: sum(section.get(field.name, 0) for section in sections)
            for field in fields(CommitCounters)})

    def __sub__(self, earlier: CommitCounters) -> CommitCounters:
        return CommitCounters(**{
            field.name: getattr(self, field.name) - getattr(earlier, field.name)
            for field in fields(CommitCounters)})

    def report(self) -> str:
        """Only with groups > 0."""
        return (
            f"Commits: {self.transactions} transactions in {self.groups} groups"
            f" ({self.transactions / self.groups:.1f} per group),"
            f" {self.flushes} flushes\n({self.flushes / self.groups:.3f} per group;"
            f" {self.container_flushes} of them for the first use of unprepared space);\n"
            f"{self.log_bytes / self.groups / 1024:.1f} KiB of log and"
            f" {self.data_bytes / self.groups / 1024:.1f} KiB of data per group,"
            f" {self.log_full_waits} waits for a full log.")
