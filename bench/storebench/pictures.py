"""The four pictures of the document, and what they show: figures of the papers, with today's
stores. Each has the place of its file's name below doc/dev."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from . import panels
from .figures import WHOLE, interval_note
from .panels import Panel
from .targets import BEST, METADATA, Table, best_bluestore
from .variants import OURS

TEN_SECONDS = 10.0
STORES = (*OURS, BEST)
ALL_STORES = (*STORES, "kstore", "memstore")
SUSTAINED_CELLS = {     # in the order of the document's table, with names for people
    "sustained-rados-4K": "rados bench, 4K",
    "sustained-overwrite-4K-qd16": "overwrites, 4K",
    "sustained-overwrite-64K-qd16": "overwrites, 64K",
    "sustained-replace-64K-qd16": "come and go, 64K",
}


@dataclass(frozen=True)
class Picture:
    name: str
    title: str
    caption: str
    panels: list[Panel]
    columns: int
    inches: tuple[float, float]

    @property
    def is_empty(self) -> bool:
        return all(panel.is_empty for panel in self.panels)

    @property
    def file(self) -> str:
        return f"{self.name}.svg"


def pictures(runs: list[dict[str, Any]], table: Table) -> Iterator[Picture]:
    yield throughput_by_size(table)
    yield throughput_over_time(runs, table)
    yield metadata(table)
    yield bytes_written(table)


def thin_lines(table: Table, cells: Iterable[str]) -> str:
    note = interval_note(table, set(cells))
    return f" Thin lines are {note}." if note else ""


def throughput_by_size(table: Table) -> Picture:
    stores = (*STORES, "kstore")
    found = [panels.by_size(table, "new", depth, "iops", stores, f"depth {depth}",
                            "operations/s", True) for depth in (16, 64)]
    found += [panels.ratio_by_size(table, "new", depth, f"depth {depth}: ratio")
              for depth in (16, 64)]
    return Picture(
        "throughput-by-size", "New objects by their size",
        "Operations per second above, times the best of BlueStore's settings below: new objects in"
        " a store that nobody has written to before, 16 and 64 in flight. SwimStore's figure 3."
        + thin_lines(table, panels.write_cells(table, "new").values()), found, 2, (9, 6))


def last_phase(table: Table, cell: str) -> str:
    return max((phase for c, phase, _ in table if c == cell and phase[-1:].isdigit()), default="")


def variants_of(table: Table, cell: str) -> dict[str, str]:
    """The stores of a line each; of BlueStore the setting that is best in the last quarter."""
    best = best_bluestore(table, cell, last_phase(table, cell), "iops")
    return {name: name for name in OURS} | ({BEST: best[0]} if best else {})


def throughput_over_time(runs: list[dict[str, Any]], table: Table) -> Picture:
    return Picture(
        "throughput-over-time", "Over a quarter of an hour",
        "Each point is the mean of ten seconds, each line the store's run of median speed, the"
        " dotted lines are between the quarters. 16 in flight. What is overwritten is twice the"
        " memory that a store may use; rados bench makes new objects, which are removed five times"
        " a quarter, outside of the time that is shown. SwimStore's figure 1.",
        [panels.over_time(runs, cell, variants_of(table, cell), TEN_SECONDS,
                          SUSTAINED_CELLS[cell])
         for cell in ("sustained-rados-4K", "sustained-overwrite-4K-qd16")], 2, (9, 3.6))


def metadata(table: Table) -> Picture:
    return Picture(
        "metadata", "A million objects without data",
        "Operations per second, with memory for a third of the table; 16 changes in flight, and"
        " eight threads that read; of list, calls. TableFS's figures of creation, query, rename and"
        " removal."
        + thin_lines(table, ["metadata-1000K"]),
        [panels.one_phase(table, "metadata-1000K", phase, ALL_STORES, phase, "operations/s")
         for phase in METADATA], 3, (9, 5))


def bytes_written(table: Table) -> Picture:
    short = {f"new {size}": (f"new-{size}-qd16", panels.phase_of(table, f"new-{size}-qd16"))
             for size in ("4K", "64K", "1M")}
    long = {name: (cell, WHOLE) for cell, name in SUSTAINED_CELLS.items()}
    words = "bytes / payload byte"
    cells = [cell for cell, _ in (*short.values(), *long.values())]
    return Picture(
        "bytes-written", "Bytes written for each byte of payload",
        "By the disk's own count: on the left runs of seconds on a new store, most of which end"
        " before any memtable is flushed, on the right a quarter of an hour with all that goes on"
        " in the background. Of BlueStore's settings the one that writes least. Provisioned"
        " leaves out what mkfs wrote, as BlueStore's file was written before. SwimStore's figure"
        " 2, SlimDB's write amplification."
        + thin_lines(table, cells),
        [panels.bars(table, short, "write_amplification_disk", (*STORES, "kstore"),
                     "seconds: new objects, depth 16", words),
         panels.bars(table, long, "write_amplification_disk", STORES, "a quarter of an hour",
                     words)], 2, (9, 3.6))
