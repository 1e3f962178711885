"""What a picture shows, as plain data: which store has which value where. Nothing here draws."""
from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .figures import Summary, by_round
from .numbers import number
from .targets import BEST, Table, best_bluestore
from .variants import FLOORS, OURS, VARIANTS

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}
ORDER = [*VARIANTS]
ORDER.insert(ORDER.index("bluestore-ssd"), BEST)
PARTS = ("data", "log", "preparation", "table flush", "table", "compaction", "other", "all",
         "file system")     # of the write traffic


class Mark(NamedTuple):
    """A median and its interval, and words that stand at it."""

    value: float
    low: float
    high: float
    words: str = ""


@dataclass(frozen=True)
class Panel:
    """One pair of axes. `kind` is "bars", "points" (joined by lines), "stacks" or "curves"; the
    first three have a mark, or none, for each slot along the x axis, curves have their x."""

    title: str
    y_title: str
    x_title: str = ""
    kind: str = "bars"
    slots: tuple[str, ...] = ()
    series: dict[str, list[Mark | None]] = field(default_factory=dict)
    stacks: dict[str, list[float]] = field(default_factory=dict)      # by part
    curves: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    log: bool = False
    level: float | None = None          # a line to compare with
    steps: tuple[float, ...] = ()       # on the x axis, where something begins

    @property
    def is_empty(self) -> bool:
        return not (any(any(marks) for marks in self.series.values())
                    or any(any(parts) for parts in self.stacks.values())
                    or any(self.curves.values()))

    def names(self) -> list[str]:
        return list(self.stacks) or in_order([*self.series, *self.curves])

    def description(self) -> Iterator[str]:
        """All of it in words: who cannot see the picture has its values, and so has a test."""
        yield f"{self.title}: {self.y_title}" + (f" by {self.x_title}" if self.x_title else "")
        for name, marks in self.series.items():
            said = [f"{slot} {interval_text(mark)}" for slot, mark in zip(self.slots, marks)
                    if mark]
            yield f"{name}: " + ", ".join(said)
        for part, values in self.stacks.items():
            yield f"{part}: " + ", ".join(f"{slot} {number(value)}"
                                          for slot, value in zip(self.slots, values))
        for name, points in self.curves.items():
            yield f"{name}: " + ", ".join(f"{x:.2f} {number(y)}" for x, y in points)


def interval_text(mark: Mark) -> str:
    if mark.low == mark.high:
        return number(mark.value)
    return f"{number(mark.value)} ({number(mark.low)} to {number(mark.high)})"


def figure_words(value: float) -> str:
    return number(value) if value >= 10 else f"{value:.2f}"


def in_order(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=lambda v: (ORDER.index(v) if v in ORDER else len(ORDER), v))


def size_of(name: str) -> int:
    found = re.fullmatch(r"(\d+)([KM]?)", name)
    return int(found.group(1)) * UNITS[found.group(2)] if found else 0


def mark_of(summary: Summary | None, factor: float = 1, words: str = "") -> Mark | None:
    """None where nothing was done that could take any time."""
    if not summary or not math.isfinite(summary.median):
        return None
    return Mark(summary.median * factor, summary.low * factor, summary.high * factor, words)


def variants_in(table: Table) -> list[str]:
    return in_order(variant for _, _, variant in table if variant not in FLOORS)


def figure_of(table: Table, cell: str, phase: str, store: str, figure: str) -> Summary | None:
    """Of a variant, or of the best of BlueStore's settings."""
    if store == BEST:
        best = best_bluestore(table, cell, phase, figure)
        return best[1] if best else None
    return table.get((cell, phase, store), {}).get(figure)


def phase_of(table: Table, cell: str) -> str:
    """The one that a cell like new-4K-qd16 is named for."""
    return next((phase for c, phase, variant in table
                 if c == cell and phase != "run" and variant not in FLOORS), "")


def write_cells(table: Table, kind: str) -> dict[tuple[str, int], str]:
    """{(size, depth): cell} of new-4K-qd16 and the like, by size."""
    found = {}
    for cell in dict.fromkeys(cell for cell, _, _ in table):
        if match := re.fullmatch(rf"{kind}-(\d+[KM]?)-qd(\d+)", cell):
            found[match.group(1), int(match.group(2))] = cell
    return dict(sorted(found.items(), key=lambda each: (size_of(each[0][0]), each[0][1])))


def floor_of(table: Table, cell: str, floor: str, figure: str) -> Summary | None:
    return next((figures[figure] for (c, phase, variant), figures in table.items()
                 if c == cell and variant == floor and figure in figures
                 and phase in ("write and flush", "group and flush", "read cold")), None)


def without_empty(series: dict[str, list[Mark | None]]) -> dict[str, list[Mark | None]]:
    return {name: marks for name, marks in series.items() if any(marks)}


# -- by size and by depth

def by_size(table: Table, kind: str, depth: int, figure: str, stores: Iterable[str], title: str,
            y_title: str, log: bool = False) -> Panel:
    """The absolute figures; the floor's too, where it has them."""
    cells = {size: cell for (size, d), cell in write_cells(table, kind).items() if d == depth}
    return over_slots(table, cells, figure, stores, title, y_title, "size of an operation", log)


def by_depth(table: Table, kind: str, size: str, figure: str, stores: Iterable[str], title: str,
             y_title: str) -> Panel:
    cells = {str(depth): cell for (s, depth), cell in write_cells(table, kind).items()
             if s == size}
    return over_slots(table, cells, figure, stores, title, y_title, "operations in flight", True)


def over_slots(table: Table, cells: dict[str, str], figure: str, stores: Iterable[str],
               title: str, y_title: str, x_title: str, log: bool) -> Panel:
    series: dict[str, list[Mark | None]] = {}
    for store in stores:
        found = [floor_of(table, cell, store, figure) if store in FLOORS else
                 figure_of(table, cell, phase_of(table, cell), store, figure)
                 for cell in cells.values()]
        series[store] = [mark_of(each) if each and each.median > 0 else None for each in found]
    return Panel(title, y_title, x_title, "points", tuple(cells), without_empty(series), log=log)


def ratio_by_size(table: Table, kind: str, depth: int, title: str) -> Panel:
    cells = {size: cell for (size, d), cell in write_cells(table, kind).items() if d == depth}
    series = {store: [ratio_mark(table, cell, phase_of(table, cell), store)
                      for cell in cells.values()] for store in OURS}
    return Panel(title, "times the best of BlueStore's", "size of an operation", "points",
                 tuple(cells), without_empty(series), level=1)


def ratio_mark(table: Table, cell: str, phase: str, store: str) -> Mark | None:
    ours = table.get((cell, phase, store), {}).get("iops")
    best = best_bluestore(table, cell, phase, "iops")
    ratio = by_round(ours, best[1]) if best else None
    return Mark(ratio.median, ratio.low, ratio.high) if ratio and best[1].median else None


# -- over time

def seconds_of(run: dict[str, Any]) -> list[tuple[float, float]]:
    """Operations per second in each interval, by seconds since the beginning; quarters one after
    the other."""
    points, begin = [], 0.0
    for phase in run["result"]["phases"]:
        step = phase["interval_ms"] / 1000
        counts = phase["interval_operations"]
        points += [(begin + (i + 0.5) * step, count / step) for i, count in enumerate(counts)]
        begin += max(phase["seconds"], len(counts) * step)
    return points


def averaged(points: list[tuple[float, float]], seconds: float) -> list[tuple[float, float]]:
    """One point for so long each; what is less than half of that at the end is left out."""
    groups: dict[int, list[tuple[float, float]]] = {}
    for x, y in points:
        groups.setdefault(int(x / seconds), []).append((x, y))
    full = max((len(group) for group in groups.values()), default=0)
    return [(statistics.fmean(x for x, _ in group), statistics.fmean(y for _, y in group))
            for _, group in sorted(groups.items()) if len(group) >= full / 2]


def median_run(runs: list[dict[str, Any]]) -> dict[str, Any]:
    def speed(run: dict[str, Any]) -> float:
        phases = run["result"]["phases"]
        return float(sum(phase["operations"] for phase in phases)
                     / max(sum(phase["seconds"] for phase in phases), 1e-9))
    return sorted(runs, key=speed)[(len(runs) - 1) // 2]


def over_time(runs: list[dict[str, Any]], cell: str, variants: dict[str, str], seconds: float,
              title: str) -> Panel:
    """Each store's run of median speed. `variants`: the store's name in the picture, and which
    variant that is."""
    curves: dict[str, list[tuple[float, float]]] = {}
    steps: tuple[float, ...] = ()
    longest = 0.0
    for name, variant in variants.items():
        of_it = [run for run in runs if run["cell"] == cell and run["variant"] == variant
                 and any(p.get("interval_operations") for p in run["result"].get("phases", []))]
        if of_it:
            run = median_run(of_it)
            points = seconds_of(run)
            longest = max(longest, points[-1][0])
            curves[name] = averaged(points, seconds)
            quarters = run["result"]["phases"]
            if len(quarters) > 1:
                ends = [sum(p["seconds"] for p in quarters[:i]) for i in range(1, len(quarters))]
                steps = tuple(ends)
    if longest < 180:
        return Panel(title, "operations/s", "seconds", "curves", curves=curves, steps=steps)
    return Panel(title, "operations/s", "minutes", "curves", steps=tuple(s / 60 for s in steps),
                 curves={name: [(x / 60, y) for x, y in points]
                         for name, points in curves.items()})


# -- others

def one_phase(table: Table, cell: str, phase: str, stores: Iterable[str], title: str,
              y_title: str, figure: str = "iops") -> Panel:
    """A bar for each store, with its value."""
    series: dict[str, list[Mark | None]] = {
        store: [mark_of(found, words=figure_words(found.median))] for store in stores
        if (found := figure_of(table, cell, phase, store, figure))}
    return Panel(title, y_title, "", "bars", ("",), series)


def bars(table: Table, places: dict[str, tuple[str, str]], figure: str, stores: Iterable[str],
         title: str, y_title: str) -> Panel:
    """`places`: a slot's name, and which cell and phase it is."""
    series: dict[str, list[Mark | None]] = {}
    for store in stores:
        found = [figure_of(table, cell, phase, store, figure) for cell, phase in places.values()]
        series[store] = [mark_of(each, words=figure_words(each.median)) if each else None
                         for each in found]
    used = [i for i in range(len(places)) if any(marks[i] for marks in series.values())]
    return Panel(title, y_title, "", "bars", tuple(name for i, name in enumerate(places)
                                                   if i in used),
                 without_empty({name: [marks[i] for i in used] for name, marks in series.items()}))


def relative(table: Table, kind: str, stores: Iterable[str]) -> Panel:
    """Of each phase of the cells whose names begin so, as multiples of TableStore's: of its
    default, where that was measured."""
    def is_of(cell: str, phase: str) -> bool:
        return (cell == kind or cell.startswith(kind + "-")) and phase != "run"

    there = [key for key in table if is_of(key[0], key[1])
             and "iops" in table[key] and table[key]["iops"].median]
    ours = next((name for name in OURS if any(variant == name for _, _, variant in there)), "")
    keys = [(cell, phase) for cell, phase, variant in there if variant == ours]
    series: dict[str, list[Mark | None]] = {}
    for store in stores:
        series[store] = [mark_of(by_round(figure_of(table, *key, store, "iops"),
                                          table[*key, ours]["iops"])) for key in keys]
    return Panel(kind, "times TableStore", "", "bars",
                 tuple(slot_name(keys, *key, kind) for key in keys), without_empty(series),
                 level=1)


def slot_name(keys: list[tuple[str, str]], cell: str, phase: str, kind: str) -> str:
    """What tells it from the others: the cell's name without its beginning, or the phase."""
    name = cell.removeprefix(kind).removeprefix("-").replace("-", ", ")
    if len({c for c, _ in keys}) == 1:
        return phase.replace(" ", ", ")
    return name if sum(c == cell for c, _ in keys) == 1 else f"{name}, {phase}"


def traffic(table: Table, kind: str, depth: int, stores: Iterable[str]) -> list[Panel]:
    """Bytes written for each byte of payload, and by what: a panel per size, a slot per store."""
    found = []
    for (size, d), cell in write_cells(table, kind).items():
        if d != depth:
            continue
        phase = phase_of(table, cell)
        stacks = {store: parts for store in stores
                  if (parts := traffic_of(table.get((cell, phase, store), {})))}
        if stacks:
            found.append(Panel(f"{kind} {size}, depth {depth}", "bytes written / payload byte", "",
                               "stacks", tuple(stacks),
                               stacks={part: [parts.get(part, 0) for parts in stacks.values()]
                                       for part in PARTS
                                       if any(part in parts for parts in stacks.values())}))
    return found


def traffic_of(figures: dict[str, Summary]) -> dict[str, float]:
    return {part: figures[f"traffic {part}"].median for part in PARTS
            if f"traffic {part}" in figures}


def aging(table: Table, stores: Iterable[str]) -> Panel:
    rounds = sorted({int(phase.split()[1]) for cell, phase, _ in table
                     if cell == "aging" and phase.startswith("fill ")})
    series: dict[str, list[Mark | None]] = {}
    for store in stores:
        found = [figure_of(table, "aging", f"fill {i}", store, "iops") for i in rounds]
        series[store] = [mark_of(each) if each else None for each in found]
    return Panel("filling, round by round", "operations/s", "round", "points",
                 tuple(map(str, rounds)), without_empty(series))
