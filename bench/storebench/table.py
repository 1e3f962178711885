"""Results as a person reads them in a terminal."""
from __future__ import annotations

from collections.abc import Iterator

from .figures import Summary
from .targets import OURS, Table, Verdict, best_bluestore, verdicts

COLUMNS = (("iops", "IOPS", "{:.0f}"), ("mb_per_second", "MB/s", "{:.1f}"),
           ("mean_us", "mean us", "{:.0f}"), ("p50_us", "p50", "{:.0f}"),
           ("p99_us", "p99", "{:.0f}"), ("p99_9_us", "p99.9", "{:.0f}"),
           ("variation", "CV", "{:.2f}"), ("write_amplification", "WA", "{:.2f}"),
           ("write_amplification_disk", "WA disk", "{:.2f}"),
           ("flushes_per_operation", "fl/op", "{:.2f}"),
           ("cpu_us_per_operation", "CPU us", "{:.0f}"), ("peak_memory_mb", "RSS MB", "{:.0f}"))
NAME_WIDTH = 20
WIDTH = 9


def figure(summary: Summary | None, form: str) -> str:
    return form.format(summary.median) if summary else ""


def ratio_to_best(table: Table, cell: str, phase: str, variant: str) -> str:
    if variant != OURS:
        return ""
    best = best_bluestore(table, cell, phase, "iops")
    ours = table[cell, phase, OURS].get("iops")
    return f"{ours.median / best[1]:.2f}x" if best and ours and best[1] else ""


def cells_table(table: Table) -> Iterator[str]:
    yield (f"{'':{NAME_WIDTH}}" + "".join(f"{title:>{WIDTH}}" for _, title, _ in COLUMNS)
           + f"{'+-':>6}{'ratio':>8}")
    last = None
    for (cell, phase, variant), figures in table.items():
        if phase == "run":
            continue
        if (cell, phase) != last:
            yield f"{cell}" + (f": {phase}" if phase not in cell else "")
            last = (cell, phase)
        spread = figures["iops"].spread if "iops" in figures else 0
        yield (f"  {variant:{NAME_WIDTH - 2}}"
               + "".join(f"{figure(figures.get(name), form):>{WIDTH}}"
                         for name, _, form in COLUMNS)
               + f"{spread:5.0%} " + f"{ratio_to_best(table, cell, phase, variant):>8}")


def run_values(table: Table) -> Iterator[str]:
    """Single numbers: mounts, space."""
    for (cell, phase, variant), figures in table.items():
        if phase != "run":
            continue
        # What a store occupies says something where it was all written and none deleted.
        shown = {name: summary for name, summary in figures.items()
                 if not name.startswith("used_") or cell.startswith("small")}
        if shown:
            values = ", ".join(f"{name} {summary.median:.4g}" for name, summary in shown.items())
            yield f"{cell} {variant}: {values}"


def verdict_line(each: Verdict) -> str:
    sign = "<=" if each.at_most else ">="
    against = f" {each.against}" if each.against else ""
    phase = "" if each.phase in each.cell or each.phase == "run" else f" {each.phase}"
    return (f"  {'met ' if each.met else 'MISS'}  {each.ratio:6.2f} {sign} {each.bound:<5g}"
            f" {each.cell}{phase}{against}")


def goals_table(table: Table) -> Iterator[str]:
    last = ""
    found = verdicts(table)
    for each in found:
        if each.goal != last:
            yield each.goal
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
               f" {share:.0%} (the median).")
        if share > 0.2:
            yield ("The machine was not idle: compare stores with each other only, and not these"
                   " figures with others'.")
    stolen = sorted(figures["stolen_cpu"].median for figures in table.values()
                    if "stolen_cpu" in figures)
    if stolen:
        yield (f"Of the time for which there was work, the machine's host had no processor for"
               f" {stolen[len(stolen) // 2]:.0%} (the median; at most {stolen[-1]:.0%}).")
