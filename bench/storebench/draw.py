"""Panels as SVG, by matplotlib. The same panels give the same bytes, with the same matplotlib."""
from __future__ import annotations

import io
import math
import platform
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .numbers import number
from .panels import PARTS, Mark, Panel, in_order
from .targets import BEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which people with any kind of colour blindness tell apart; the lightness
# differs as well, and the marker. BlueStore is of the reds, whichever of its settings.
STYLES = {      # colour, marker, line
    "tablestore-thin": ("#0072b2", "o", "-"), "tablestore": ("#56b4e9", "s", "--"),
    BEST: ("#d55e00", "^", "-"),
    "bluestore-ssd": ("#d55e00", "^", "-"), "bluestore-hdd": ("#e69f00", "v", "-"),
    "bluestore-ssd-v2": ("#8f3f00", "<", "-."), "bluestore-hdd-v2": ("#b98000", ">", "-."),
    "bluestore-ssd-loop": ("#f0a070", "1", ":"), "bluestore-hdd-loop": ("#f5cf80", "2", ":"),
    "bluestore-ssd-sparse": ("#f7c6a8", "3", ":"),
    "kstore": ("#009e73", "D", "-"), "memstore": ("#999999", "x", "-"),
    "floor": ("#222222", "_", ":"), "floor-thin": ("#777777", "_", ":"),
    "floor-read": ("#222222", "_", ":"),
}
MORE_COLORS = ("#cc79a7", "#f0e442", "#6a3d9a", "#b15928", "#17becf", "#7f7f7f")
PART_COLORS = dict(zip(PARTS, ("#0072b2", "#e69f00", "#56b4e9", "#009e73", "#66c2a5", "#cc79a7",
                               "#cccccc", "#777777", "#d55e00")))
LABELS = {
    "tablestore-thin": "TableStore (default)", "tablestore": "TableStore, provisioned",
    BEST: "BlueStore, best of its settings", "kstore": "KStore", "memstore": "MemStore",
    "floor": "no store: one write, one flush", "floor-thin": "the same, at first touch",
    "floor-read": "no store: reads of a file",
}
SETTINGS = {    # of matplotlib; text stays text
    "svg.fonttype": "none", "svg.hashsalt": "tablestore", "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"], "font.size": 9, "axes.titlesize": 10,
    "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.grid.axis": "y", "grid.color": "#dddddd", "axes.axisbelow": True,
    "legend.frameon": False, "path.simplify": False,
}
FAR = 4                 # times the value, where an interval has no end
BAR_WIDTH = 0.84        # of a slot, for all of its bars together


def label(store: str) -> str:
    return LABELS.get(store) or store.replace("bluestore", "BlueStore").replace("-", " ")


def style(store: str) -> tuple[str, str, str]:
    return STYLES.get(store) or (MORE_COLORS[sum(store.encode()) % len(MORE_COLORS)], ".", "-")


def svg(panels: Iterable[Panel], columns: int, inches: tuple[float, float]) -> str:
    """One picture of several panels with one legend. What it shows is in its <metadata> too."""
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    panels = list(panels)
    rows = math.ceil(len(panels) / columns)
    with matplotlib.rc_context(SETTINGS):
        figure, grid = pyplot.subplots(rows, columns, figsize=inches, squeeze=False,
                                       layout="constrained")
        for axes, panel in zip(grid.flat, panels):
            draw(axes, panel)
        for axes in grid.flat[len(panels):]:
            axes.set_axis_off()
        handles = legend_of(panels)
        if len(handles) > 1:
            figure.legend(handles=handles, loc="outside upper center",
                          ncols=min(len(handles), 4 if inches[0] > 6 else 3))
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={
            "Date": None, "Creator": drawer(), "Description": description(panels)})
        pyplot.close(figure)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def drawer() -> str:
    """What the bytes of a picture depend on, beside what it shows."""
    from matplotlib import __version__, ft2font  # pylint: disable=import-outside-toplevel
    return (f"matplotlib {__version__}, FreeType {ft2font.__freetype_version__},"
            f" {platform.machine()}")


def description(panels: Iterable[Panel]) -> str:
    return "\n".join(line for panel in panels for line in panel.description())


def legend_of(panels: list[Panel]) -> list[Any]:
    from matplotlib.lines import Line2D  # pylint: disable=import-outside-toplevel
    from matplotlib.patches import Patch  # pylint: disable=import-outside-toplevel
    parts = list(dict.fromkeys(part for panel in panels for part in panel.stacks))
    if parts:
        return [Patch(color=PART_COLORS[part], label=part) for part in parts]
    found: list[Any] = []
    for name in in_order(name for panel in panels for name in panel.names()):
        color, marker, dash = style(name)
        kinds = {panel.kind for panel in panels if name in panel.names()}
        if kinds == {"bars"}:
            found.append(Patch(color=color, label=label(name)))
        else:
            found.append(Line2D([], [], color=color, linestyle=dash, label=label(name),
                                marker=marker if "points" in kinds else "", markersize=5))
    return found


def draw(axes: Axes, panel: Panel) -> None:
    from matplotlib import ticker  # pylint: disable=import-outside-toplevel
    axes.set_title(panel.title)
    axes.set_ylabel(panel.y_title)
    axes.set_xlabel(panel.x_title)
    if panel.is_empty:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color="#666666")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    if panel.log:
        axes.set_yscale("log")
    {"bars": draw_bars, "points": draw_points, "curves": draw_curves,
     "stacks": draw_stacks}[panel.kind](axes, panel)
    if panel.level is not None:
        axes.axhline(panel.level, color="#222222", linewidth=1)
        highest = max(top(mark) for marks in panel.series.values() for mark in marks if mark)
        if highest < 4:
            axes.yaxis.set_major_locator(ticker.MultipleLocator(0.5))
    for step in panel.steps:
        axes.axvline(step, color="#bbbbbb", linewidth=0.8, linestyle=":")
    if panel.log:
        values = [mark for marks in panel.series.values() for mark in marks if mark]
        low = min(mark.low or mark.value for mark in values)
        high = max(map(top, values))
        axes.set_ylim(low / 1.4, high * 1.4)
        if high < low * 100:
            axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    else:
        axes.use_sticky_edges = False
        axes.margins(y=0.12)
        axes.set_ylim(bottom=0)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _position: tick(value))


def tick(value: float) -> str:
    if not value:
        return "0"
    return number(value) if abs(value) >= 100 else f"{value:g}"


def top(mark: Mark) -> float:
    """Of what is drawn: an interval without end goes far up."""
    return mark.high if math.isfinite(mark.high) else mark.value * FAR


def intervals(axes: Axes, there: list[tuple[float, Mark]], color: str) -> None:
    there = [(x, mark) for x, mark in there if mark.high > mark.low]
    if there:
        axes.errorbar([x for x, _ in there], [mark.value for _, mark in there],
                      [[max(0.0, mark.value - mark.low) for _, mark in there],
                       [max(0.0, top(mark) - mark.value) for _, mark in there]],
                      fmt="none", ecolor=color, elinewidth=0.9, capsize=2)


def slots(axes: Axes, panel: Panel) -> None:
    axes.set_xticks(range(len(panel.slots)), [slot.replace(", ", "\n") for slot in panel.slots],
                    fontsize=9 if len(panel.slots) < 8 else 7.5)
    axes.set_xlim(-0.5, len(panel.slots) - 0.5)
    if not any(panel.slots):
        axes.tick_params(axis="x", length=0)


def draw_bars(axes: Axes, panel: Panel) -> None:
    names = panel.names()
    width = BAR_WIDTH / len(names)
    for i, name in enumerate(names):
        there = [(slot - BAR_WIDTH / 2 + (i + 0.5) * width, mark)
                 for slot, mark in enumerate(panel.series[name]) if mark]
        axes.bar([x for x, _ in there], [mark.value for _, mark in there], width * 0.92,
                 color=style(name)[0])
        intervals(axes, there, "#222222")
        for x, mark in there:
            if mark.words:
                axes.annotate(mark.words, (x, max(top(mark), mark.value)), xytext=(0, 2),
                              textcoords="offset points", ha="center", fontsize=7)
    slots(axes, panel)


def draw_points(axes: Axes, panel: Panel) -> None:
    names = panel.names()
    for i, name in enumerate(names):
        color, marker, dash = style(name)
        beside = (i - (len(names) - 1) / 2) * min(0.12, 0.5 / len(names), 0.012 * len(panel.slots))
        # Beside each other, so that intervals do not hide each other.
        there = [(slot + beside, mark) for slot, mark in enumerate(panel.series[name]) if mark]
        axes.plot([x for x, _ in there], [mark.value for _, mark in there], color=color,
                  marker=marker, linestyle=dash, linewidth=1.3, markersize=4.5)
        intervals(axes, there, color)
    slots(axes, panel)


def draw_curves(axes: Axes, panel: Panel) -> None:
    for name in panel.names():
        color, _, dash = style(name)
        points = panel.curves[name]
        axes.plot([x for x, _ in points], [y for _, y in points], color=color, linestyle=dash,
                  linewidth=1.3)
    axes.set_xlim(left=0)


def draw_stacks(axes: Axes, panel: Panel) -> None:
    base = [0.0] * len(panel.slots)
    for part, values in panel.stacks.items():
        axes.bar(range(len(base)), values, 0.6, bottom=base, color=PART_COLORS[part])
        base = [below + value for below, value in zip(base, values)]
    for slot, top in enumerate(base):
        axes.annotate(number(top), (slot, top), xytext=(0, 2), textcoords="offset points",
                      ha="center", fontsize=7)
    axes.set_xticks(range(len(base)), [short(name) for name in panel.slots], rotation=35,
                    ha="right", rotation_mode="anchor", fontsize=7)


def short(store: str) -> str:
    return store.replace("bluestore", "BS").replace("tablestore", "TS")
