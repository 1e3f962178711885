"""The report: one HTML page that needs nothing else. Pictures first, tables below."""
from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from . import draw, panels, sustained, table as tables
from .document import value_text
from .failures import failures_of
from .figures import SUSTAINED, all_runs_of
from .machine import place_text
from .numbers import number
from .panels import Panel
from .pictures import pictures
from .targets import Table, verdicts
from .variants import FLOORS

WIDTH, HEIGHT = 12.0, 2.7       # inches: of a row of panels
TIMED = ("new-4K-qd16", "new-1M-qd16", "overwrite-4K-qd16", "rados-", SUSTAINED)

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1c1c1c; background: #fff;
       max-width: 1280px; margin: 2em auto; padding: 0 1.5em; }
h1 { font-size: 1.6em; } h2 { font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #ccc; }
p { max-width: 62em; } .note { color: #555; font-size: 13px; }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0; }
th, td { padding: 3px 10px; text-align: right; border-bottom: 1px solid #e8e8e8; }
th:first-child, td:first-child { text-align: left; } tr.group td { font-weight: 600;
  padding-top: 9px; } td.met { color: #1a7f37; } td.missed { color: #b3261e; }
.wide { overflow-x: auto; }
"""


def chart(wanted: Iterable[Panel], columns: int, inches: tuple[float, float] | None = None) -> str:
    """As one picture, or nothing where there is nothing to show."""
    shown = [panel for panel in wanted if not panel.is_empty]
    if not shown:
        return ""
    columns = min(columns, len(shown))
    rows = -(-len(shown) // columns)
    width = WIDTH if columns > 1 else WIDTH * 3 / 4
    text = draw.svg(shown, columns, inches or (width, 0.5 + HEIGHT * rows))
    return f"<div>{text[text.index('<svg'):]}</div>"


def section(title: str, text: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2><p>{text}</p>{body}" if body else ""


def preformatted(lines: list[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>" if lines else ""


def machine_lines(sessions: list[dict[str, Any]]) -> Iterator[str]:
    for each in sessions:
        m = each["machine"]
        yield (f"{each['started']}, level {each['level']}, {each['rounds']} rounds of"
               f" {each['seconds']:g} s: {m['cores']} x {m['processor']},"
               f" {m['memory_bytes'] / 2**30:.0f} GiB, kernel {m['kernel']},"
               f" {place_text(m)},"
               f" TableStore {m.get('tablestore_commit', '?')}, {m.get('ceph', '')}")


def failed(sessions: list[dict[str, Any]]) -> str:
    return preformatted([f"{cell} on {variant}: {failed} of {total}" for (cell, variant),
                         (failed, total) in failures_of(sessions).counts.items()])


def goals(table: Table) -> str:
    rows, last = [], None
    for each in verdicts(table):
        if each.goal != last:
            rows.append(f'<tr class="group"><td colspan="6">{escape(each.goal.name)}</td></tr>')
            last = each.goal
        kind = "" if each.store not in each.goal.stores else "met" if each.met else "missed"
        where = each.cell if each.phase in each.cell or each.phase == "run" \
            else f"{each.cell}: {each.phase}"
        theirs = "" if each.theirs is None else f"{number(each.theirs.median)} ({each.against})"
        rows.append(f"<tr><td>{escape(where)}, {each.store}</td>"
                    f"<td>{number(each.ours.median)}</td><td>{escape(theirs)}</td>"
                    f"<td>{value_text(each)}</td><td>{escape(each.goal.bound_text)}</td>"
                    f"<td class='{kind}'>{kind}</td></tr>")
    if not rows:
        return ""
    return ("<table><tr><th>workload</th><th>TableStore</th><th>against</th>"
            f"<th>{tables.ratio_title(table)}</th><th>aim</th><th></th></tr>"
            + "".join(rows) + "</table>")


def all_figures(table: Table) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for _, title in tables.COLUMNS)
    rows, last = [], None
    for (cell, phase, variant), figures in table.items():
        if phase == "run":
            continue
        if (cell, phase) != last:
            name = cell if phase in cell else f"{cell}: {phase}"
            rows.append(f'<tr class="group"><td colspan="{len(tables.COLUMNS) + 3}">'
                        f"{escape(name)}</td></tr>")
            last = (cell, phase)
        cells = "".join(f"<td>{tables.figure(figures.get(name))}</td>"
                        for name, _ in tables.COLUMNS)
        spread = figures["iops"].spread if "iops" in figures else 0
        rows.append(f"<tr><td>{escape(variant)}</td>{cells}<td>{spread:.0%}</td>"
                    f"<td>{escape(tables.ratio_to_best(table, cell, phase, variant))}</td></tr>")
    return (f'<div class="wide"><table><tr><th></th>{head}<th>+-</th>'
            f"<th>{tables.ratio_title(table)}</th></tr>{''.join(rows)}</table></div>")


def over_time(runs: list[dict[str, Any]]) -> Iterator[Panel]:
    """SwimStore's figure 1; half a second at each point, or ten where a run is long."""
    for cell in dict.fromkeys(run["cell"] for run in runs):
        if cell.startswith(TIMED):
            variants = panels.in_order(run["variant"] for run in runs if run["cell"] == cell)
            seconds = 10 if cell.startswith(SUSTAINED) else 1 if "rados" in cell else 0.5
            yield panels.over_time(runs, cell, {name: name for name in variants}, seconds, cell)


def sizes(table: Table, stores: list[str]) -> Iterator[Panel]:
    yield panels.by_size(table, "new", 16, "iops", [*stores, *FLOORS], "new objects",
                         "operations/s", True)
    yield panels.by_size(table, "overwrite", 16, "iops", stores, "overwrites", "operations/s",
                         True)
    yield panels.by_size(table, "new", 16, "write_amplification_disk", stores,
                         "new objects: all that was written", "bytes / payload byte")
    yield panels.by_size(table, "new", 16, "cpu_us_per_operation", stores,
                         "new objects: processor time", "us / operation", True)
    yield panels.by_size(table, "new", 1, "p50_us", [*stores, *FLOORS],
                         "new objects, one in flight", "latency, us (median)", True)


def depths(table: Table, stores: list[str]) -> Iterator[Panel]:
    for kind in ("new", "overwrite"):
        for size in ("4K", "64K"):
            for figure, name in (("p50_us", "median"), ("p99_us", "99 per cent")):
                yield panels.by_depth(table, kind, size, figure, [*stores, *FLOORS],
                                      f"{kind} {size}: {name}", "latency, us")


def families(table: Table, stores: list[str]) -> Iterator[Panel]:
    for kind in ("read", "metadata", "omap", "removals", "mix", "clone", "clients"):
        yield panels.relative(table, kind, stores)
    yield panels.aging(table, stores)


def page(sessions: list[dict[str, Any]], runs: list[dict[str, Any]], table: Table) -> str:
    stores = panels.variants_in(table)
    parts = [
        *(section(each.title, each.caption, chart(each.panels, each.columns, each.inches))
          for each in pictures(runs, table)),
        section("Failed", "Runs that have no figures.", failed(sessions)),
        section("Over time", "Each line is the store's round of median speed.",
                chart(over_time(runs), 2)),
        section("By size", "16 in flight. Dotted is what the file system does with no store at all:"
                " all that is in flight as one write, and one flush.",
                chart(sizes(table, stores), 2)),
        section("By depth", "Commit latency.", chart(depths(table, stores), 2)),
        section("Reads, metadata, omap, aging", "Speed relative to TableStore's (1 is TableStore);"
                " more is faster.", chart(families(table, stores), 1)),
        section("Write traffic, by what it is for", "Bytes written to the disk for each byte of"
                " payload, while the load ran. Payload is the data only; an OSD's attributes"
                " and log rows come on top of it for every store, about 0.8 KiB an operation."
                " What the disk wrote beyond what the store counts is the file system's (and that"
                " of others, where the machine was not idle); KStore counts nothing.",
                chart([panel for kind in ("new", "overwrite")
                       for panel in panels.traffic(table, kind, 16, stores)], 3)),
        section("Aims", "Medians of the rounds' own ratios; the best of BlueStore's settings,"
                " measured in the same session, for each workload by itself.", goals(table)),
        section("Sustained", "Long runs, by quarters; bytes/byte is what the disk wrote for each"
                " byte of payload.", preformatted([*sustained.quarters_table(table),
                                                   *sustained.work_done(runs)])),
        section("Clusters under their clients", "What one operation takes: processor time of all"
                " OSDs, of the clients, and of CephFS' metadata server or S3's gateway; bytes that"
                " the disk wrote. All are on one machine: where its processors are busy, IOPS are"
                " what is left of them for an OSD.", preformatted(
                    list(tables.clusters_table(table)))),
        section("All figures", "Medians; +- is half of their interval. WA: bytes"
                " written per payload byte, by the store's own count; WA disk: by the disk's, until"
                " the background work was done, with all that others wrote.", all_figures(table)),
    ]
    notes = "".join(f"<p class='note'>{escape(line)}</p>"
                    for line in (*machine_lines(sessions), *tables.contention(table)))
    return (f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
            f"<title>TableStore, measured</title><style>{STYLE}</style></head><body>"
            f"<h1>TableStore, measured beside Ceph's other object stores</h1>{notes}"
            f"{''.join(part for part in parts if part)}</body></html>\n")


def load_sessions(texts: Iterable[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    sessions = [json.loads(text) for text in texts]
    runs = [run for run in all_runs_of(sessions) if "failed" not in run["result"]]
    return sessions, runs
