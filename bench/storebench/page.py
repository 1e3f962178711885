"""The report: one HTML page that needs nothing else."""
from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from . import plots, sustained, table as tables
from .numbers import number
from .svg import Chart
from .targets import Table, verdicts

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1c1c1c; background: #fff;
       max-width: 1280px; margin: 2em auto; padding: 0 1.5em; }
h1 { font-size: 1.6em; } h2 { font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #ccc; }
p { max-width: 62em; } .note { color: #555; font-size: 13px; }
.charts { display: flex; flex-wrap: wrap; gap: 14px 22px; align-items: flex-end; }
svg { background: #fff; max-width: 100%; }
svg text { font: 11px system-ui, sans-serif; fill: #333; }
svg text.title { font-size: 13px; font-weight: 600; } svg text.axis { fill: #666; }
svg text.value { font-size: 10px; }
svg .grid { stroke: #e4e4e4; } svg .floor { stroke: #222; stroke-dasharray: 4 3; }
.legend span { display: inline-block; margin-right: 1.2em; white-space: nowrap; }
.legend i { display: inline-block; width: 12px; height: 12px; margin-right: 5px;
            vertical-align: -1px; }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0; }
th, td { padding: 3px 10px; text-align: right; border-bottom: 1px solid #e8e8e8; }
th:first-child, td:first-child { text-align: left; } tr.group td { font-weight: 600;
  padding-top: 9px; } td.met { color: #1a7f37; } td.missed { color: #b3261e; }
.wide { overflow-x: auto; }
"""


def charts(found: Iterable[Chart | None]) -> str:
    there = [str(each) for each in found if each is not None]
    return f'<div class="charts">{"".join(there)}</div>' if there else ""


def legend(colors: dict[str, str]) -> str:
    return '<p class="legend">' + "".join(
        f'<span><i style="background:{value}"></i>{escape(name)}</span>'
        for name, value in colors.items()) + "</p>"


def section(title: str, text: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2><p>{text}</p>{body}" if body else ""


def preformatted(lines: list[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>" if lines else ""


def machine_lines(sessions: list[dict[str, Any]]) -> Iterator[str]:
    for each in sessions:
        m = each["machine"]
        disk = m.get("disk", {})
        yield (f"{each['started']}, level {each['level']}, {each['rounds']} rounds of"
               f" {each['seconds']:g} s: {m['cores']} x {m['processor']},"
               f" {m['memory_bytes'] / 2**30:.0f} GiB, kernel {m['kernel']},"
               f" {m['file_system'].get('type', '?')} on {disk.get('name', '?')}"
               f" (cache {disk.get('queue/write_cache', '?')}, FUA {disk.get('queue/fua', '?')}),"
               f" TableStore {m.get('tablestore_commit', '?')}, {m.get('ceph', '')}")


def goals(table: Table) -> str:
    rows, last = [], ""
    for each in verdicts(table):
        if each.goal != last:
            rows.append(f'<tr class="group"><td colspan="6">{escape(each.goal)}</td></tr>')
            last = each.goal
        kind, word = ("met", "met") if each.met else ("missed", "missed")
        where = each.cell if each.phase in each.cell or each.phase == "run" \
            else f"{each.cell}: {each.phase}"
        theirs = "" if each.theirs is None else f"{number(each.theirs)} ({each.against})"
        rows.append(f"<tr><td>{escape(where)}, {each.store}</td>"
                    f"<td>{number(each.ours)}</td><td>{escape(theirs)}</td>"
                    f"<td>{each.ratio:.2f}</td><td>{'&le;' if each.at_most else '&ge;'}"
                    f" {each.bound:g}</td><td class='{kind}'>{word}</td></tr>")
    if not rows:
        return ""
    return ("<table><tr><th>workload</th><th>TableStore</th><th>against</th><th>ratio</th>"
            "<th>goal</th><th></th></tr>" + "".join(rows) + "</table>")


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
    return (f'<div class="wide"><table><tr><th></th>{head}<th>+-</th><th>ratio [95 %]</th></tr>'
            f"{''.join(rows)}</table></div>")


def page(sessions: list[dict[str, Any]], runs: list[dict[str, Any]], table: Table) -> str:
    colors = {v: plots.color(v) for v in plots.variants_in(table)}
    timed = [cell for cell in dict.fromkeys(run["cell"] for run in runs)
             if cell.startswith(("new-4K-qd16", "new-1M-qd16", "overwrite-4K-qd16", "rados-"))]
    parts = [
        section("Goals", "Medians of the rounds; the best of BlueStore's settings, measured in"
                " the same session, for each workload by itself.", goals(table)),
        section("Average IOPS, and the change over time", "SwimStore's Figure 1 with today's"
                " stores: 16 writes in flight. Each line is the store's round of median speed,"
                " half a second at each point.",
                charts(plots.over_time(runs, cell) for cell in timed)),
        section("Write traffic, by what it is for", "SwimStore's Figure 2: bytes written to the"
                " disk for each byte of payload. Payload is the data only; an OSD's attributes"
                " and log rows come on top of it for every store, about 0.8 KiB an operation."
                " What the disk wrote beyond what the store counts is the file system's (and that"
                " of others, where the machine was not idle); KStore counts nothing.",
                legend(plots.PARTS) + charts([*plots.traffic(table, "new", 16),
                                              *plots.traffic(table, "overwrite", 16)])),
        section("By size", "SwimStore's Figure 3, 16 in flight. The dashed lines are what the file"
                " system does with no store at all: all that is in flight as one write, and one"
                " flush.", charts([
            plots.by_size(table, "new", 16, "iops", "new objects: IOPS", "operations/s", True),
            plots.by_size(table, "new", 16, "write_amplification_disk",
                          "new objects: total write traffic", "bytes / payload byte"),
            plots.by_size(table, "new", 16, "cpu_us_per_operation",
                          "new objects: CPU time", "us of CPU / operation", True),
            plots.by_size(table, "new", 1, "p50_us", "new objects, one in flight: median latency",
                          "us"),
            plots.by_size(table, "overwrite", 16, "iops", "overwrites: IOPS", "operations/s")])),
        section("By depth", "Commit latency, logarithmic. The dashed lines are one write of all"
                " that is in flight and one flush, in a written file, with no store at all.",
                charts(
                    plots.by_depth(table, kind, size, figure, f"{kind} {size}: {name}", "us")
                    for kind in ("new", "overwrite") for size in ("4K", "64K")
                    for figure, name in (("p50_us", "median"), ("p99_us", "99 per cent")))),
        section("Reads, metadata, omap", "Speed relative to TableStore's (1 is TableStore); longer"
                " is faster.", charts([
                    plots.phases(table, [c for c, _, _ in table if c.startswith(kind)], "iops",
                                 title, "times TableStore")
                    for kind, title in (("read", "reads"), ("metadata", "objects without data"),
                                        ("omap", "omap"), ("removals", "removals"),
                                        ("mix", "mixed"), ("clone", "clones"))])),
        section("Aging", "", charts([plots.aging(table)])),
        section("Sustained", "Long runs, by quarters; bytes/byte is what the disk wrote for each"
                " byte of payload.", preformatted([*sustained.quarters_table(table),
                                                   *sustained.work_done(runs)])),
        section("Clusters under their clients", "What one operation takes: processor time of all"
                " OSDs, of the clients, and of CephFS' metadata server or S3's gateway; bytes that"
                " the disk wrote. All are on one machine: where its processors are busy, IOPS are"
                " what is left of them for an OSD.", preformatted(
                    list(tables.clusters_table(table)))),
        section("All figures", "Medians; +- is half of their 95 % interval (bootstrap). WA: bytes"
                " written per payload byte, by the store's own count; WA disk: by the disk's, until"
                " the background work was done, with all that others wrote.", all_figures(table)),
    ]
    notes = "".join(f"<p class='note'>{escape(line)}</p>"
                    for line in (*machine_lines(sessions), *tables.contention(table)))
    return (f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
            f"<title>TableStore, measured</title><style>{STYLE}</style></head><body>"
            f"<h1>TableStore, measured beside Ceph's other object stores</h1>{notes}"
            f"{legend(colors)}{''.join(part for part in parts if part)}</body></html>\n")


def load_sessions(texts: Iterable[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    sessions = [json.loads(text) for text in texts]
    runs = [run for session in sessions for run in session["runs"]
            if "failed" not in run["result"]]
    return sessions, runs
