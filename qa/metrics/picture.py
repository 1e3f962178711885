"""A picture of the dashboard, for the documentation: each panel with its title, unit and legend, of
the data that a Prometheus has."""
import json
import math
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

COLUMNS = 3
STEP_SECONDS = 2
SCALES = {"bytes": "bytes", "Bps": "bytes/s", "s": "s", "ms": "ms", "percentunit": "of 1",
          "ops": "1/s", "iops": "1/s", "reqps": "1/s"}
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))

Series = tuple[str, list[float], list[float]]   # label, seconds, values


def fetch_range(port: int, expression: str, seconds: int) -> list[dict[str, Any]]:
    now = time.time()
    url = f"http://127.0.0.1:{port}/api/v1/query_range?" + urllib.parse.urlencode(
        {"query": expression, "start": now - seconds, "end": now, "step": STEP_SECONDS})
    with urllib.request.urlopen(url, timeout=30) as answer:
        return list(json.load(answer)["data"]["result"])


def series_of(target: dict[str, Any], found: list[dict[str, Any]]) -> list[Series]:
    all_of_them = []
    for each in found:
        labels = each["metric"]
        label = re.sub(r"\{\{(\w+)\}\}", lambda match, labels=labels: labels.get(match[1], ""),
                       target.get("legendFormat", "")).strip()
        points = [(when, float(value)) for when, value in each["values"]]
        points = [(when, value) for when, value in points if math.isfinite(value)]
        if points:
            start = each["values"][0][0]
            all_of_them.append((label, [when - start for when, _ in points],
                                [value for _, value in points]))
    return all_of_them


def with_prefix(value: float) -> str:
    for factor, prefix in PREFIXES:
        if abs(value) >= factor:
            return f"{value / factor:.3g}{prefix}"
    return f"{value:.3g}"


def draw_panel(axes: Any, panel: dict[str, Any], series: list[Series]) -> None:
    defaults = panel.get("fieldConfig", {}).get("defaults", {})
    unit = SCALES.get(defaults.get("unit", ""), "")
    axes.set_title(panel["title"], fontsize=9, loc="left")
    axes.set_ylabel(unit, fontsize=7)
    axes.tick_params(labelsize=7)
    axes.yaxis.set_major_formatter(lambda value, _position: with_prefix(value))
    axes.grid(alpha=0.3)
    stacked = "stacking" in defaults.get("custom", {})
    same_times = len({tuple(times) for _, times, _ in series}) == 1
    if stacked and same_times and series:
        axes.stackplot(series[0][1], *[values for _, _, values in series],
                       labels=[label for label, _, _ in series], alpha=0.6)
    else:
        for label, times, values in series:
            axes.plot(times, values, label=label, linewidth=1)
    if defaults.get("min") == 0:
        axes.set_ylim(bottom=0)
    if series:
        axes.legend(fontsize=6, ncols=4, loc="upper left", bbox_to_anchor=(0, -0.12), frameon=False)


def draw(dashboard: Path, file: Path, as_query: Callable[[str], str], port: int,
         seconds: int) -> None:
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    model = json.loads(dashboard.read_text())
    panels = model["panels"]
    rows = math.ceil(len(panels) / COLUMNS)
    figure, grid = pyplot.subplots(rows, COLUMNS, figsize=(6 * COLUMNS, 2.2 * rows),
                                   layout="constrained")
    figure.suptitle(model["title"], fontsize=12)
    for axes, panel in zip(grid.flat, panels):
        series: list[Series] = []
        for target in panel["targets"]:
            series += series_of(target, fetch_range(port, as_query(target["expr"]), seconds))
        draw_panel(axes, panel, series)
    for axes in grid.flat[len(panels):]:
        axes.set_axis_off()
    figure.savefig(file, dpi=70)
