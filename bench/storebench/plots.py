"""The charts of the report: SwimStore's Figures 1 to 3 with today's stores, and
what they leave out."""
from __future__ import annotations

import re
import statistics
from collections.abc import Iterable
from typing import Any

from .figures import Summary
from .numbers import number
from .svg import Axis, Chart
from .targets import Table
from .variants import OURS

COLORS = {
    "tablestore-thin": "#0b5fa5", "tablestore": "#7fb2dc", "bluestore-ssd": "#d95f02",
    "bluestore-hdd": "#e6a04c", "bluestore-ssd-v2": "#8c2d04", "bluestore-hdd-v2": "#b8860b",
    "bluestore-ssd-loop": "#a63603", "bluestore-hdd-loop": "#c9a227", "kstore": "#2a8f4e",
    "bluestore-ssd-sparse": "#f2b98a",
    "memstore": "#8c8c8c", "floor": "#222222",
}
MORE_COLORS = ("#6a3d9a", "#b15928", "#17becf", "#e377c2", "#7f7f7f", "#bcbd22")
PARTS = {   # of the write traffic
    "data": "#0b5fa5", "log": "#e6a04c", "preparation": "#9ecae1", "table flush": "#2a8f4e",
    "table": "#2a8f4e", "compaction": "#756bb1", "other": "#bdbdbd", "all": "#8fbc6a",
    "file system": "#d7191c",
}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def color(variant: str) -> str:
    return COLORS.get(variant) or MORE_COLORS[sum(variant.encode()) % len(MORE_COLORS)]


def size_of(name: str) -> int:
    found = re.fullmatch(r"(\d+)([KM]?)", name)
    return int(found.group(1)) * UNITS[found.group(2)] if found else 0


def variants_in(keys: Iterable[tuple[str, str, str]]) -> list[str]:
    found = {variant for _, _, variant in keys if variant != "floor"}
    order = list(COLORS)
    return sorted(found, key=lambda v: (order.index(v) if v in order else len(order), v))


def write_cells(table: Table, kind: str) -> dict[tuple[str, int], dict[str, dict[str, Summary]]]:
    """{(size, depth): {variant: figures}} of new-4K-qd16 and the like."""
    found: dict[tuple[str, int], dict[str, dict[str, Summary]]] = {}
    for (cell, phase, variant), figures in table.items():
        match = re.fullmatch(rf"{kind}-(\d+[KM]?)-qd(\d+)", cell)
        if match and "iops" in figures:
            at = (match.group(1), int(match.group(2)))
            if variant != "floor":
                found.setdefault(at, {})[variant] = figures
            elif phase in ("write and flush", "group and flush"):
                found.setdefault(at, {})["floor"] = figures
    return dict(sorted(found.items(), key=lambda each: (size_of(each[0][0]), each[0][1])))


# -- Figure 1: average IOPS, and the change over time

def over_time(runs: list[dict[str, Any]], cell: str) -> Chart | None:
    """Each store's round of median speed."""
    series: dict[str, list[float]] = {}
    for variant in variants_in((run["cell"], "", run["variant"]) for run in runs):
        rounds = [run["result"]["phases"][0] for run in runs
                  if run["cell"] == cell and run["variant"] == variant
                  and run["result"].get("phases")]
        if not rounds:
            continue
        rounds.sort(key=lambda phase: phase["operations"] / max(phase["seconds"], 1e-9))
        phase = rounds[len(rounds) // 2]
        per_second = 1000 / phase["interval_ms"]
        series[variant] = smoothed([ops * per_second for ops in phase["interval_operations"]],
                                   phase["interval_ms"])
    if not any(series.values()):
        return None
    longest = max(len(values) for values in series.values())
    chart = Chart(f"{cell}: operations per second over time", "operations/s", "seconds", 620)
    y = chart.y_axis(max(max(values, default=0) for values in series.values()))
    x = chart.x_axis(longest * interval_of(runs, cell))
    for variant, values in series.items():
        step = x.high / longest
        chart.line([(x.at((i + 0.5) * step), y.at(v)) for i, v in enumerate(values)],
                   color(variant), note=f"{variant}: mean {statistics.fmean(values or [0]):.0f}/s")
    return chart


def interval_of(runs: list[dict[str, Any]], cell: str) -> float:
    return next(run["result"]["phases"][0]["interval_ms"] / 1000 for run in runs
                if run["cell"] == cell and run["result"].get("phases"))


def smoothed(values: list[float], interval_ms: int) -> list[float]:
    """Half a second at each point: single tenths are noise."""
    reach = max(0, 250 // interval_ms)
    return [statistics.fmean(values[max(0, i - reach):i + reach + 1])
            for i in range(len(values))]


# -- Figure 2: write traffic

def traffic(table: Table, kind: str, depth: int) -> list[Chart]:
    """Bytes written for each byte of payload, and by what: a chart per size."""
    charts = []
    for (size, cell_depth), by_variant in write_cells(table, kind).items():
        names = [v for v in variants_in(("", "", v) for v in by_variant) if v != "memstore"]
        if cell_depth != depth or not names:
            continue
        chart = Chart(f"{kind} {size}, depth {depth}", "bytes written / payload byte",
                      width=max(200, 110 + 62 * len(names)), height=300)
        totals = [sum(f[n].median for n in f if n.startswith("traffic "))
                  for f in by_variant.values()]
        y = chart.y_axis(max([*totals, 1]))
        centres, width = chart.x_slots([short_name(name) for name in names])
        for centre, name in zip(centres, names):
            stack(chart, y, centre, width * 0.6, name, by_variant[name])
        charts.append(chart)
    return charts


def short_name(variant: str) -> str:
    return variant.replace("bluestore-", "bs-").replace("tablestore", "ts")


def stack(chart: Chart, y: Axis, centre: float, width: float, variant: str,
          figures: dict[str, Summary]) -> None:
    base = 0.0
    for part in PARTS:
        summary = figures.get(f"traffic {part}")
        if not summary:
            continue
        top = base + summary.median
        chart.box(centre - width / 2, y.at(top), width, y.at(base) - y.at(top), PARTS[part],
                  f"{variant} {part}: {summary.median:.2f}")
        base = top
    chart.text(centre, y.at(base) - 4, f"{base:.2f}", "value")


# -- Figure 3 and others: bars and lines by size and depth

def by_size(table: Table, kind: str, depth: int, figure: str, title: str, unit: str,
            log: bool = False) -> Chart | None:
    cells = {size: by_variant for (size, d), by_variant in write_cells(table, kind).items()
             if d == depth}
    names = [v for v in variants_in(("", "", v) for c in cells.values() for v in c)]
    values = [c[v][figure].median for c in cells.values() for v in (*names, "floor")
              if figure in c.get(v, {}) and c[v][figure].median > 0]
    if not names or not values:
        return None
    chart = Chart(title, unit, "size of an operation", 620)
    y = chart.y_axis(max(values), min(values) if log else 0)
    centres, width = chart.x_slots(list(cells))
    each = width * 0.86 / len(names)
    for centre, (size, by_variant) in zip(centres, cells.items()):
        for i, name in enumerate(names):
            summary = by_variant.get(name, {}).get(figure)
            if summary and summary.median > 0:
                x = centre - width * 0.43 + i * each
                top = y.at(summary.median)
                chart.box(x, top, each * 0.9, chart.bottom - top, color(name),
                          f"{name}, {size}: {number(summary.median)}"
                          f" ({number(summary.low)} to {number(summary.high)})")
        bound = by_variant.get("floor", {}).get(figure)
        if bound and figure in ("iops", "p50_us"):
            mark(chart, y, centre, width, bound.median,
                 f"the floor, {size}: {number(bound.median)}")
    return chart


def mark(chart: Chart, y: Axis, centre: float, width: float, value: float, note: str) -> None:
    """What the file system alone does: a dashed line across a slot."""
    at = y.at(min(value, y.high))
    chart.shapes.append(f'<line x1="{centre - width * 0.46:.1f}" x2="{centre + width * 0.46:.1f}"'
                        f' y1="{at:.1f}" y2="{at:.1f}" class="floor"><title>{note}</title></line>')


def by_depth(table: Table, kind: str, size: str, figure: str, title: str,
             unit: str) -> Chart | None:
    cells = {depth: by_variant for (s, depth), by_variant in write_cells(table, kind).items()
             if s == size}
    names = variants_in(("", "", v) for c in cells.values() for v in c)
    values = [c[v][figure].median for c in cells.values() for v in (*names, "floor")
              if figure in c.get(v, {})]
    if not values:
        return None
    chart = Chart(title, unit, "operations in flight")
    y = chart.y_axis(max(values), max(1.0, min(values)))
    centres, width = chart.x_slots([str(depth) for depth in cells])
    for name in names:
        points = []
        for centre, (depth, by_variant) in zip(centres, cells.items()):
            summary = by_variant.get(name, {}).get(figure)
            if summary:
                points.append((centre, y.at(summary.median)))
                chart.dot(*points[-1], color(name), f"{name}, depth {depth}: {summary.median:.0f}")
        chart.line(points, color(name), note=name)
    for centre, (depth, by_variant) in zip(centres, cells.items()):
        if figure in by_variant.get("floor", {}):
            mark(chart, y, centre, width, by_variant["floor"][figure].median,
                 f"the floor, depth {depth}")
    return chart


def phases(table: Table, cells: Iterable[str], figure: str, title: str, unit: str) -> Chart | None:
    """Bars of the phases of a workload (or of several), as multiples of
    tablestore's: of its default, where that was measured."""
    ours = next((name for name in OURS if any(k[0] in cells and k[2] == name for k in table)), "")
    keys = [(cell, phase) for cell, phase, variant in table
            if cell in cells and phase != "run" and variant == ours]
    keys = [key for i, key in enumerate(keys) if key not in keys[:i]]
    names = variants_in(k for k in table if k[0] in cells and k[1] != "run")
    bars = []
    for cell, phase in keys:
        found = {name: table[cell, phase, name][figure].median for name in names
                 if figure in table.get((cell, phase, name), {})}
        if found.get(ours):
            bars.append((phase if len(set(c for c, _ in keys)) == 1 else cell, found))
    if not bars:
        return None
    chart = Chart(title, unit, width=min(980, 120 + 105 * len(bars)), height=310)
    y = chart.y_axis(max(v / f[ours] for _, f in bars for v in f.values()))
    centres, width = chart.x_slots([label for label, _ in bars])
    each = width * 0.84 / len(names)
    for centre, (label, found) in zip(centres, bars):
        for i, name in enumerate(names):
            if name in found:
                share = found[name] / found[ours]
                chart.box(centre - width * 0.42 + i * each, y.at(share), each * 0.9,
                          chart.bottom - y.at(share), color(name),
                          f"{label}, {name}: {number(found[name])}")
    return chart


def aging(table: Table) -> Chart | None:
    names = [v for v in variants_in(table) if any(
        k[0] == "aging" and k[2] == v and k[1].startswith("fill ") for k in table)]
    if not names:
        return None
    rounds = sorted({int(p.split()[1]) for c, p, _ in table
                     if c == "aging" and p.startswith("fill ")})
    value = {(n, i): table["aging", f"fill {i}", n]["iops"].median for n in names for i in rounds
             if ("aging", f"fill {i}", n) in table}
    chart = Chart("aging: speed of filling, round by round", "operations/s", "round")
    y = chart.y_axis(max(value.values()))
    centres, _ = chart.x_slots([str(i) for i in rounds])
    for name in names:
        points = [(x, y.at(value[name, i])) for x, i in zip(centres, rounds) if (name, i) in value]
        chart.line(points, color(name), note=name)
        for (x, at), i in zip(points, rounds):
            chart.dot(x, at, color(name), f"{name}, round {i}: {value[name, i]:.0f}/s")
    return chart
