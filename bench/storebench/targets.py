"""The goals, and whether they are met: ratios of medians of one session to the
best setting of BlueStore."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .figures import MORE_IS_BETTER, Key, Summary
from .variants import OURS, PEERS

Table = dict[Key, dict[str, Summary]]


@dataclass(frozen=True)
class Verdict:
    goal: str
    store: str
    cell: str
    phase: str
    ours: float
    theirs: float | None     # None: an absolute goal
    against: str
    ratio: float
    bound: float
    at_most: bool

    @property
    def met(self) -> bool:
        return self.ratio <= self.bound if self.at_most else self.ratio >= self.bound


def best_bluestore(table: Table, cell: str, phase: str, figure: str) -> tuple[str, float] | None:
    found = [(name, table[cell, phase, name][figure].median) for name in PEERS
             if figure in table.get((cell, phase, name), {})]
    if not found:
        return None
    pick: Callable[..., tuple[str, float]] = max if figure in MORE_IS_BETTER else min
    return pick(found, key=lambda each: each[1])


@dataclass(frozen=True)
class Goal:
    """`cells` are the cells' beginnings; `against` names a variant, "best
    bluestore", or nothing for an absolute bound."""

    name: str
    cells: tuple[str, ...]
    figure: str
    bound: float
    at_most: bool
    against: str = "best bluestore"
    phases: tuple[str, ...] = ()      # any

    def verdicts(self, table: Table) -> Iterator[Verdict]:
        for (cell, phase, variant), figures in table.items():
            if (variant not in OURS or self.figure not in figures or not self._covers(cell)
                    or (self.phases and phase not in self.phases)):
                continue
            ours = figures[self.figure].median
            if not self.against:
                yield Verdict(self.name, variant, cell, phase, ours, None, "", ours, self.bound,
                              self.at_most)
                continue
            other = self._other(table, cell, phase)
            if other and other[1]:
                yield Verdict(self.name, variant, cell, phase, ours, other[1], other[0],
                              ours / other[1], self.bound, self.at_most)

    def _covers(self, cell: str) -> bool:
        return any(cell == each or cell.startswith(each + "-") for each in self.cells)

    def _other(self, table: Table, cell: str, phase: str) -> tuple[str, float] | None:
        if self.against == "best bluestore":
            return best_bluestore(table, cell, phase, self.figure)
        phase = "write and flush" if self.against == "floor" else phase
        figures = table.get((cell, phase, self.against), {})
        return (self.against, figures[self.figure].median) if self.figure in figures else None


SMALL = ("4K", "8K", "16K", "32K")
MIDDLE = ("64K", "128K", "256K", "512K", "1M")


def cells(kinds: tuple[str, ...], sizes: tuple[str, ...], depths: tuple[int, ...]) \
        -> tuple[str, ...]:
    return tuple(f"{kind}-{size}-qd{depth}" for kind in kinds for size in sizes
                 for depth in depths)


DEEP = (16, 64)
WRITES = ("new", "overwrite")

GOALS = (
    Goal("commit latency, depth 1, 4K-64K", cells(WRITES, (*SMALL, "64K"), (1,)), "p50_us",
         0.5, True),
    Goal("the same, against one write and one flush", cells(WRITES, (*SMALL, "64K"), (1,)),
         "p50_us", 1.3, True, "floor"),
    Goal("IOPS, depth 16 and 64, 4K-32K", cells(WRITES, SMALL, DEEP), "iops", 1.5, False),
    Goal("IOPS, depth 16 and 64, 64K-1M", cells(WRITES, MIDDLE, DEEP), "iops", 1.15, False),
    Goal("IOPS, depth 16 and 64, 4M", cells(WRITES, ("4M",), DEEP), "iops", 1.0, False),
    Goal("IOPS against KStore, 4K", cells(WRITES, ("4K",), DEEP), "iops", 1.3, False, "kstore"),
    Goal("IOPS against KStore, 1M", cells(WRITES, ("1M",), DEEP), "iops", 3, False, "kstore"),
    Goal("rados bench, 4K-64K", ("rados-4K", "rados-16K", "rados-64K"), "iops", 1.25, False),
    Goal("rados bench, 4K-64K, against MemStore", ("rados-4K", "rados-16K", "rados-64K"), "iops",
         0.85, False, "memstore"),
    Goal("rados bench, above 64K", ("rados-256K", "rados-1M", "rados-4M"), "iops", 1.05, False),
    Goal("rados bench, 4K, against KStore", ("rados-4K",), "iops", 1.1, False, "kstore"),
    Goal("bytes written per payload byte, 4K", cells((*WRITES, "aged"), ("4K",), DEEP),
         "write_amplification_disk", 0.7, True),
    Goal("bytes written per payload byte, 1M", cells((*WRITES, "aged"), ("1M",), DEEP),
         "write_amplification_disk", 1.05, True, ""),
    Goal("flushes per commit group", WRITES, "flushes_per_group", 1.001, True, ""),
    Goal("variation of throughput per second", cells(WRITES, (*SMALL, *MIDDLE), DEEP),
         "variation", 0.5, True),
    Goal("worst second, as a share of the median", cells(WRITES, (*SMALL, *MIDDLE), DEEP),
         "worst_second_share", 0.7, False, ""),
    Goal("CPU per operation", (*WRITES, "append", "unaligned", "mix"), "cpu_us_per_operation",
         0.5, True),
    Goal("reads, cold and hot", ("read",), "iops", 1.0, False),
    Goal("metadata", ("metadata",), "iops", 1.5, False),
    Goal("omap", ("omap",), "iops", 1.0, False),
    Goal("restart after kill -9, 1 M objects, seconds", ("restart-1000K",), "mount seconds", 2,
         True, ""),
    Goal("restart after kill -9", ("restart",), "mount seconds", 0.2, True),
    Goal("disk space of 1 KiB objects", ("small-1K",), "used_per_payload_byte", 0.5, True,
         phases=("run",)),
)


def verdicts(table: Table) -> list[Verdict]:
    found = [each for goal in GOALS for each in goal.verdicts(table)]
    return found + list(aging(table))


def aging(table: Table) -> Iterator[Verdict]:
    """The last round of filling against the first, and the space that came back."""
    for store in OURS:
        fills = {int(phase.split()[1]): figures["iops"].median
                 for (cell, phase, variant), figures in table.items()
                 if cell == "aging" and variant == store and phase.startswith("fill ")}
        if len(fills) > 1:
            yield from last_against_first(table, store, fills)


def last_against_first(table: Table, store: str, fills: dict[int, float]) -> Iterator[Verdict]:
    last = max(fills)
    yield Verdict("aging: the last round against the first", store, "aging", f"fill {last}",
                  fills[last], fills[1], "its first round", fills[last] / fills[1], 0.95, False)
    run = table["aging", "run", store]
    first_empty = run["directory bytes empty 1"].median
    last_empty = run[f"directory bytes empty {last}"].median
    yield Verdict("aging: space of the empty store, last round against the first", store, "aging",
                  "run", last_empty, first_empty, "its first round", last_empty / first_empty, 1.1,
                  True)
