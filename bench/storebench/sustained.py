"""Long runs, by quarter: what a store does once all that it does in the background comes as
fast as the load makes it necessary."""
from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from .figures import SUSTAINED, by_round
from .numbers import number
from .targets import Table, best_bluestore
from .variants import OURS

SEVERAL = 3
TOO_SHORT = "NOT SUSTAINED"
# What has to have happened several times, and the counters that tell. BlueStore counts the files
# of its table, whether a flush of the memtable or a compaction wrote them; KStore counts nothing.
TIMES = {
    "tablestore": {"checkpoints": "tablestore.checkpoints"},
    "bluestore": {"files of the table": "bluefs.files_written_sst"},
}
BYTES = {
    "tablestore": {"flushed to the table": "statistics.table_flushed_bytes",
                   "compacted": "statistics.table_compacted_bytes"},
    "bluestore": {"written to the table": "bluefs.bytes_written_sst"},
}


def is_sustained(run: dict[str, Any]) -> bool:
    return run["cell"].startswith(SUSTAINED)


def quarters(table: Table, cell: str) -> dict[str, list[str]]:
    """The phases of each variant, in order of time."""
    found: dict[str, list[str]] = {}
    for at, phase, variant in table:
        if at == cell and re.search(r" \d+$", phase):
            found.setdefault(variant, []).append(phase)
    return {variant: sorted(phases, key=lambda p: int(p.split()[-1]))
            for variant, phases in found.items()}


def quarters_table(table: Table) -> Iterator[str]:
    for cell in dict.fromkeys(c for c, _, _ in table if c.startswith(SUSTAINED)):
        yield (f"{cell:28}{'quarter':>8}{'IOPS':>9}{'p99.9 us':>10}{'worst s':>9}"
               f"{'bytes/byte':>11}{'used GB':>9}")
        for variant, phases in quarters(table, cell).items():
            for phase in phases:
                yield f"  {variant:26}" + quarter_line(table, cell, phase, variant)
            yield "  " + last_quarter(table, cell, phases, variant)


def quarter_line(table: Table, cell: str, phase: str, variant: str) -> str:
    figures, run = table[cell, phase, variant], table[cell, "run", variant]

    def of(name: str) -> str:
        if name not in figures:
            return ""
        median = figures[name].median
        return number(median) if math.isfinite(median) else "-"     # none was done

    used = number(run[f"used bytes {phase}"].median / 1e9)
    return (f"{phase.split()[-1]:>8}{of('iops'):>9}{of('p99_9_us'):>10}"
            f"{of('worst_second_iops'):>9}{of('write_amplification_disk'):>11}{used:>9}")


def last_quarter(table: Table, cell: str, phases: list[str], variant: str) -> str:
    first, last = (table[cell, phases[i], variant].get("iops") for i in (0, -1))
    lasting = by_round(last, first)
    if not lasting or not first or not first.median:
        return f"{variant}: nothing was done in a whole quarter"
    said = f"{variant}: the last quarter is {lasting.median:.2f} of the first"
    best = best_bluestore(table, cell, phases[-1], "iops") if variant in OURS else None
    ratio = by_round(last, best[1]) if best and best[1].median else None
    return said + (f", {ratio.median:.2f}x of {best[0]}" if best and ratio else "")


def work_done(runs: list[dict[str, Any]]) -> Iterator[str]:
    """What the stores did in the background; a run in which one of them did not do it several
    times shows nothing sustained, and is named."""
    for run in filter(is_sustained, runs):
        store = run["result"]["options"]["store"]
        where = f"{run['cell']} {run['variant']}, round {run['round']}"
        done = {name: counted(run, path) for name, path in TIMES.get(store, {}).items()}
        moved = {name: counted(run, path) for name, path in BYTES.get(store, {}).items()}
        said = [f"{number(times)} {name}" for name, times in done.items()]
        said += [f"{number(size / 1e9)} GB {name}" for name, size in moved.items()]
        yield f"{where}: " + (", ".join(said) or "it does not count what it does")
        rarely = [name for name, times in done.items() if times < SEVERAL]
        rarely += [name for name, size in moved.items() if not size]
        if rarely:
            yield (f"{TOO_SHORT}: {where}: hardly any or none: {', '.join(rarely)};"
                   " run it longer (--minutes)")


def counted(run: dict[str, Any], path: str) -> float:
    return sum(phase["counters"].get(path, 0) for phase in run["result"]["phases"])
