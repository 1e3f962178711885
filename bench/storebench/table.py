"""Results as a person reads them in a terminal."""
from __future__ import annotations

import math
from collections.abc import Iterator

from .figures import Summary, by_round, interval_note
from .numbers import number
from .targets import Table, Verdict, best_bluestore, verdicts
from .variants import OURS

COLUMNS = (("iops", "IOPS"), ("mb_per_second", "MB/s"), ("mean_us", "mean us"), ("p50_us", "p50"),
           ("p99_us", "p99"), ("p99_9_us", "p99.9"), ("variation", "CV"),
           ("write_amplification", "WA"), ("write_amplification_disk", "WA disk"),
           ("flushes_per_operation", "fl/op"), ("cpu_us_per_operation", "CPU us"),
           ("peak_memory_mb", "RSS MB"))
# What is known of clusters under several clients.
CLUSTER_COLUMNS = (("iops", "IOPS"), ("cpu_us_per_operation", "OSDs us"),
                   ("client_cpu_us_per_operation", "client us"),
                   ("service_cpu_us_per_operation", "MDS/RGW"),
                   ("disk_bytes_per_operation", "disk B/op"),
                   ("flushes_per_operation", "fl/op"), ("busy_processors", "busy CPUs"))
NAME_WIDTH = 20
WIDTH = 9


def figure(summary: Summary | None) -> str:
    if not summary:
        return ""
    return number(summary.median) if math.isfinite(summary.median) else "-"     # none was done


def ratio_to_best(table: Table, cell: str, phase: str, variant: str) -> str:
    """With its interval, and which of BlueStore's settings the better one is."""
    if variant not in OURS:
        return ""
    best = best_bluestore(table, cell, phase, "iops")
    ratio = by_round(table[cell, phase, variant].get("iops"), best[1]) if best else None
    return f"{ratio.median:.2f}x [{ratio.low:.2f} {ratio.high:.2f}] of {best[0]}" if ratio else ""


def ratio_title(table: Table) -> str:
    note = interval_note(table)
    return f"ratio [{note}]" if note else "ratio"


def cells_table(table: Table) -> Iterator[str]:
    yield (f"{'':{NAME_WIDTH}}" + "".join(f"{title:>{WIDTH}}" for _, title in COLUMNS)
           + f"{'+-':>6}  {ratio_title(table)}")
    last = None
    for (cell, phase, variant), figures in table.items():
        if phase == "run":
            continue
        if (cell, phase) != last:
            yield f"{cell}" + (f": {phase}" if phase not in cell else "")
            last = (cell, phase)
        spread = figures["iops"].spread if "iops" in figures else 0
        yield (f"  {variant:{NAME_WIDTH - 2}}"
               + "".join(f"{figure(figures.get(name)):>{WIDTH}}" for name, _ in COLUMNS)
               + f"{spread:6.0%}  {ratio_to_best(table, cell, phase, variant)}".rstrip())


def clusters_table(table: Table) -> Iterator[str]:
    """What an operation takes, and of whom."""
    last = None
    for (cell, phase, variant), figures in table.items():
        if "client_cpu_us_per_operation" not in figures:
            continue
        if last is None:
            yield f"{'':{NAME_WIDTH}}" + "".join(f"{title:>{WIDTH + 1}}"
                                                 for _, title in CLUSTER_COLUMNS)
        if (cell, phase) != last:
            yield f"{cell}: {phase}"
            last = (cell, phase)
        yield (f"  {variant:{NAME_WIDTH - 2}}"
               + "".join(f"{figure(figures.get(name)):>{WIDTH + 1}}"
                         for name, _ in CLUSTER_COLUMNS))


def run_values(table: Table) -> Iterator[str]:
    """Single numbers: mounts, space."""
    for (cell, phase, variant), figures in table.items():
        if phase != "run":
            continue
        # What a store occupies says something where it was all written and none deleted.
        shown = {name: summary for name, summary in figures.items()
                 if not name.startswith("used_") or cell.startswith("small")}
        if shown:
            values = ", ".join(f"{name} {number(summary.median)}"
                               for name, summary in shown.items())
            yield f"{cell} {variant}: {values}"


def verdict_line(each: Verdict) -> str:
    against = f" {each.against}" if each.against else ""
    phase = "" if each.phase in each.cell or each.phase == "run" else f" {each.phase}"
    return (f"  {'met ' if each.met else 'MISS'}  {number(each.found.median):>6}"
            f" {each.goal.bound_text:<8} {each.store} {each.cell}{phase}{against}")


def goals_table(table: Table) -> Iterator[str]:
    last = None
    found = [each for each in verdicts(table) if each.store in each.goal.stores]
    for each in found:
        if each.goal != last:
            yield each.goal.name
            last = each.goal
        yield verdict_line(each)
    if found:
        met = sum(each.met for each in found)
        yield f"{met} of {len(found)} comparisons reach their goal"
    else:
        yield "nothing that goals are set for was measured"


def contention(table: Table) -> Iterator[str]:
    foreign = [figures["foreign_cpu"].median for figures in table.values()
               if "foreign_cpu" in figures]
    if foreign:
        share = sorted(foreign)[len(foreign) // 2]
        yield (f"Of the work that the processors did while a run was measured, others did"
               f" {share:.0%} (the median). The work of a loop device (--fs) is among that.")
        if share > 0.2:
            yield ("The machine was not idle, or its disk was a loop device: compare stores with"
                   " each other only, and not these figures with others'.")
    stolen = sorted(figures["stolen_cpu"].median for figures in table.values()
                    if "stolen_cpu" in figures)
    if stolen:
        yield (f"Of the time for which there was work, the machine's host had no processor for"
               f" {stolen[len(stolen) // 2]:.0%} (the median; at most {stolen[-1]:.0%}).")
