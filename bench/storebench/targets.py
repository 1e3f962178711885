"""What is aimed at, and whether it is reached: ratios to the best of BlueStore's settings, of the
same rounds."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

from .cells import LEVELS
from .figures import MORE_IS_BETTER, WHOLE, Key, Round, Summary, by_round
from .numbers import difference_of, interval_of_percentile, percentile, ratio_of
from .variants import OURS, PEERS

Table = dict[Key, dict[str, Summary]]

BEST = "best bluestore"
FIRST_QUARTER = "its first quarter"
THIN = OURS[:1]
METADATA = ("create", "stat", "attributes", "list", "rename", "remove")     # metadata-*'s phases


def rounds_of(table: Table, cell: str, phase: str, store: str, figure: str) -> tuple[Round, ...]:
    figures = table.get((cell, phase, store), {})
    return figures[figure].of if figure in figures else ()


def settings_measured(table: Table, cell: str, phase: str, figure: str) \
        -> list[tuple[str, Summary]]:
    """BlueStore's, in a round of ours, where ours were measured."""
    ours = {each for name in OURS for each in rounds_of(table, cell, phase, name, figure)}
    return [(name, table[cell, phase, name][figure]) for name in PEERS
            if (rounds := rounds_of(table, cell, phase, name, figure))
            and not (ours and ours.isdisjoint(rounds))]


def best_bluestore(table: Table, cell: str, phase: str, figure: str) \
        -> tuple[str, Summary] | None:
    """The best of the settings by this figure, and which it is."""
    found = settings_measured(table, cell, phase, figure)
    if not found:
        return None
    pick: Callable[..., tuple[str, Summary]] = max if figure in MORE_IS_BETTER else min
    return pick(found, key=lambda each: each[1].median)


def settings_not_measured(table: Table, cell: str, phase: str, figure: str) -> list[str]:
    """Of BlueStore's settings that the cell is for, those that cannot be the best one."""
    meant = {store for level in LEVELS.values() for each in level() if each.name == cell
             for store in each.stores}
    measured = dict(settings_measured(table, cell, phase, figure))
    return [name for name in PEERS if name in meant and name not in measured]


@dataclass(frozen=True)
class Goal:
    """`cells` are the cells' names, or their beginnings. `against` names a variant, BEST,
    FIRST_QUARTER, or nothing for an absolute bound. `stores` are those that have to reach it;
    the others are only shown."""

    name: str
    cells: tuple[str, ...]
    figure: str
    bound: float
    at_most: bool = False
    against: str = BEST
    phases: tuple[str, ...] = ()        # patterns; any
    stores: tuple[str, ...] = OURS
    difference: bool = False            # not the ratio
    share: float | None = None          # this percentile of the rounds, not their median
    least_rounds: int = 1               # fewer tell nothing
    limit: str = ""                     # what was measured beside it, and a store can hardly pass

    @property
    def bound_text(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.bound:g}"

    def verdicts(self, table: Table) -> Iterator[Verdict]:
        for (cell, phase, variant), figures in table.items():
            if (variant in OURS and self.figure in figures and self.covers(cell)
                    and (not self.phases or any(fnmatch(phase, each) for each in self.phases))):
                found = self._judge(table, cell, phase, variant)
                if found:
                    yield found

    def covers(self, cell: str) -> bool:
        return any(cell == each or cell.startswith(each + "-") for each in self.cells)

    def expected(self) -> set[tuple[str, str, str]]:
        """(cell, phase, store) of what has to be measured before it can be reached. The phase of a
        cell that is judged by one only is ""."""
        return {(cell.name, phase, store)
                for level in LEVELS.values() for cell in level() if self.covers(cell.name)
                for store in self.stores if store in cell.stores_of_its_own
                for phase in (METADATA if cell.workload == "metadata" else ("",))}

    def _judge(self, table: Table, cell: str, phase: str, variant: str) -> Verdict | None:
        ours = table[cell, phase, variant][self.figure]
        if not self.against:
            found = ours
            if self.share is not None:
                found = Summary(percentile(ours.values, self.share),
                                *interval_of_percentile(ours.values, self.share), ours.rounds)
            return Verdict(self, variant, cell, phase, ours, None, "", found)
        other = self._other(table, cell, phase, variant)
        if not other:
            return None
        name, theirs = other
        compared = by_round(ours, theirs, difference_of if self.difference else ratio_of)
        if not compared:
            return None
        unknown = (settings_not_measured(table, cell, phase, self.figure)
                   if self.against == BEST else [])
        return Verdict(self, variant, cell, phase, ours, theirs, name, compared, tuple(unknown))

    def _other(self, table: Table, cell: str, phase: str, variant: str) \
            -> tuple[str, Summary] | None:
        if self.against == BEST:
            return best_bluestore(table, cell, phase, self.figure)
        name = self.against
        if self.against == FIRST_QUARTER:
            phase, name = phase.rpartition(" ")[0] + " 1", variant
        figures = table.get((cell, phase, name), {})
        if name == variant and self.against != FIRST_QUARTER:
            return None
        return (self.against, figures[self.figure]) if self.figure in figures else None


@dataclass(frozen=True)
class Verdict:
    """`found` is what is held against the goal's bound: the ratio, mostly."""

    goal: Goal
    store: str
    cell: str
    phase: str
    ours: Summary
    theirs: Summary | None
    against: str
    found: Summary
    unknown: tuple[str, ...] = ()       # settings of the peer that were not measured

    @property
    def met(self) -> bool:
        bound = self.goal.bound
        value = self.found.median
        return value <= bound if self.goal.at_most else value >= bound

    @property
    def answers(self) -> tuple[str, str, str]:
        """What of Goal.expected() it is."""
        return self.cell, self.phase if self.phase in METADATA else "", self.store

    @property
    def distance(self) -> float:
        """The less, the worse."""
        return -self.found.median if self.goal.at_most else self.found.median


def cells(kind: str, sizes: tuple[str, ...], depths: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{kind}-{size}-qd{depth}" for size in sizes for depth in depths)


SMALL = ("4K", "8K", "16K", "32K")
MIDDLE = ("64K", "128K", "256K", "512K", "1M")
DEEP = (16, 64)
LAST = ("* 4",)     # quarter
LONG_RADOS = ("sustained-rados-4K",)
ONE_OSD = ("rados-4K", "clients-rados-4K-1osd-t16")
OVERWRITE = ("sustained-overwrite-4K-qd16",)

GOALS = (
    Goal("new objects of 4K to 32K, depth 16 and 64", cells("new", SMALL, DEEP), "iops", 1.5,
         stores=THIN, limit="floor-thin"),
    Goal("new objects of 64K to 1M, depth 16 and 64", cells("new", MIDDLE, DEEP), "iops", 1.0,
         stores=THIN, limit="floor-thin"),
    Goal("new objects of 64K to 1M: default against provisioned", cells("new", MIDDLE, DEEP),
         "iops", 0.95, against="tablestore", stores=THIN, limit="floor-thin"),
    Goal("rados bench 4K, 16 threads, last quarter of 15 minutes", LONG_RADOS, "iops", 1.6,
         phases=LAST, limit="memstore"),
    Goal("rados bench 4K, 16 threads: last quarter against the first", LONG_RADOS, "iops", 0.9,
         against=FIRST_QUARTER, phases=LAST),
    Goal("4K random overwrites, last quarter of 15 minutes", OVERWRITE, "iops", 1.6, phases=LAST),
    Goal("4K random overwrites, last quarter: p99.9 of the latency", OVERWRITE, "p99_9_us", 0.7,
         True, phases=LAST),
    Goal("4K random overwrites, 15 minutes: bytes written per byte", OVERWRITE,
         "write_amplification_disk", 0.8, True, phases=(WHOLE,)),
    Goal("a million objects: each of the six operations", ("metadata-1000K",), "iops", 1.5),
    Goal("new objects of 64K, depth 64; overwrites of 64K, depth 16 and 64",
         ("new-64K-qd64", *cells("overwrite", ("64K",), DEEP)), "iops", 1.15,
         limit="floor"),
    Goal("reads, hot and cold, 4K to 1M", ("read",), "iops", 1.0,
         limit="floor-read"),
    Goal("rados bench 4K, one OSD", ONE_OSD, "iops", 1.4, stores=THIN, limit="memstore"),
    Goal("rados bench 4K, one OSD, against MemStore", ONE_OSD, "iops", 0.8, against="memstore",
         stores=THIN),
    Goal("OSD's processor time per 4K write beyond MemStore's, us", ONE_OSD,
         "cpu_us_per_operation", 25, True, against="memstore", difference=True),
    Goal("rbd bench 4K random, three OSDs, three replicas", ("clients-rbd-4K-3osd",), "iops",
         1.25),
    Goal("restart after kill -9 under load, a million objects, p95, s", ("restart-1000K",),
         "mount seconds", 0.5, True, against="", share=0.95, least_rounds=20),
)


def verdicts(table: Table) -> list[Verdict]:
    return [each for goal in GOALS for each in goal.verdicts(table)]
