"""What is measured: workloads with their parameters, and on which stores."""
from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .variants import GIB, PEERS, STORE_BYTES

KIB = 1 << 10
MIB = 1 << 20

ALL_DURABLE = ("tablestore", *PEERS, "kstore")
BEST_COUNTS = ("tablestore", *PEERS)


@dataclass(frozen=True)
class Cell:
    """One workload. `arguments` are those of ceph_tablestore_bench."""

    name: str
    workload: str
    stores: tuple[str, ...]
    arguments: dict[str, object] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)   # by store
    store_bytes: int = STORE_BYTES
    lasts: float = 8           # seconds, about, with all that surrounds the measurement
    seconds: float | None = None

    def words(self) -> list[str]:
        words = ["--workload", self.workload]
        for name, value in self.arguments.items():
            if value is True:
                words.append(f"--{name}")
            elif value is not False:
                words += [f"--{name}", str(value)]
        return words


def name_of(size: int) -> str:
    for unit, factor in (("M", MIB), ("K", KIB)):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def new(size: int, depth: int, stores: tuple[str, ...]) -> Cell:
    # The floor: what one write and one flush take, or with more in flight what
    # a perfect group commit would reach.
    stores += ("floor",)
    return Cell(f"new-{name_of(size)}-qd{depth}", "new", stores, {"size": size, "depth": depth})


def aged(size: int, depth: int, stores: tuple[str, ...]) -> Cell:
    """New objects where others were before."""
    return Cell(f"aged-{name_of(size)}-qd{depth}", "new", stores,
                {"size": size, "depth": depth, "aged-bytes": GIB if size > 64 * KIB else GIB // 2},
                lasts=25)


def overwrite(size: int, depth: int, stores: tuple[str, ...]) -> Cell:
    return Cell(f"overwrite-{name_of(size)}-qd{depth}", "overwrite", stores,
                {"size": size, "depth": depth}, lasts=12)


def read(size: int, depth: int, cold: bool, stores: tuple[str, ...]) -> Cell:
    return Cell(f"read-{'cold' if cold else 'hot'}-{name_of(size)}-qd{depth}", "read", stores,
                {"size": size, "depth": depth, "cold": cold}, lasts=14)


def metadata(objects: int, stores: tuple[str, ...]) -> Cell:
    """Memory for a third of the table: an object's row and its share of the
    indices take some 450 bytes."""
    cache = str(max(64 * MIB, objects * 450 // 3))
    limits = {
        "tablestore": {"tablestore_cache_size": cache},
        "kstore": {"rocksdb_cache_size": cache},
    } | {peer: {"bluestore_cache_size": cache, "bluestore_cache_autotune": "false"}
         for peer in PEERS}
    return Cell(f"metadata-{objects // 1000}K", "metadata", stores, {"objects": objects},
                settings=limits, lasts=30 + objects / 8000)


def rados(size: int, seconds: float) -> Cell:
    return Cell(f"rados-{name_of(size)}", "rados", (*ALL_DURABLE, "memstore"),
                {"size": size, "depth": 16}, lasts=30 + seconds, seconds=seconds)


def quick() -> Iterator[Cell]:
    few = ("tablestore", "bluestore-ssd", "bluestore-hdd")
    yield new(4 * KIB, 1, few)
    yield new(4 * KIB, 16, (*few, "kstore", "memstore"))
    yield new(64 * KIB, 1, few)
    yield new(64 * KIB, 16, few)
    yield new(1 * MIB, 16, (*few, "kstore"))
    yield overwrite(4 * KIB, 1, few)
    yield overwrite(4 * KIB, 16, few)
    yield read(4 * KIB, 16, True, few)
    yield replace(metadata(30000, few), lasts=18)


def usual() -> Iterator[Cell]:
    every = (*ALL_DURABLE, "memstore")
    for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1 * MIB, 4 * MIB):
        yield new(size, 1, BEST_COUNTS)
        yield new(size, 16, every if size != 4 * MIB else ALL_DURABLE)
        if size <= 64 * KIB:
            yield new(size, 64, BEST_COUNTS)
    for size in (4 * KIB, 64 * KIB, MIB):
        yield rados(size, 20)
    yield from others(metadata_objects=200000, omap_keys=200000, restarts=(10000, 100000),
                      aging_rounds=5)


def full() -> Iterator[Cell]:
    every = (*ALL_DURABLE, "memstore")
    for power in range(12, 23):
        for depth in (1, 16, 64):
            yield new(1 << power, depth, every if power < 22 else ALL_DURABLE)
    for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB):
        yield rados(size, 60)
    yield from others(metadata_objects=1000000, omap_keys=1000000,
                      restarts=(10000, 100000, 1000000), aging_rounds=10)
    yield from choices()


def others(metadata_objects: int, omap_keys: int, restarts: tuple[int, ...],
           aging_rounds: int) -> Iterator[Cell]:
    for size in (4 * KIB, 64 * KIB, MIB):
        yield aged(size, 16, BEST_COUNTS)
    for size in (4 * KIB, 64 * KIB):
        for depth in (1, 16, 64):
            yield overwrite(size, depth, ALL_DURABLE if depth == 16 else BEST_COUNTS)
    yield Cell("unaligned-1000-qd16", "overwrite", ALL_DURABLE,
               {"size": 1000, "depth": 16, "unaligned": True}, lasts=12)
    yield Cell("append-4K-qd16", "append", ALL_DURABLE, {"size": 4 * KIB, "depth": 16})
    for size in (4 * KIB, 64 * KIB, MIB):
        for cold in (True, False):
            yield read(size, 16, cold, ALL_DURABLE)
    yield Cell("mix-4K-qd16", "mix", ALL_DURABLE, {"size": 4 * KIB, "depth": 16}, lasts=12)
    yield Cell("small-1K", "new", ALL_DURABLE,
               {"size": KIB, "depth": 16, "objects": metadata_objects}, lasts=20)
    yield metadata(metadata_objects, ALL_DURABLE)
    yield Cell(f"omap-{omap_keys // 1000}K", "omap", ALL_DURABLE, {"objects": omap_keys},
               lasts=30 + omap_keys / 8000)
    yield Cell("aging", "aging", BEST_COUNTS, {"rounds": aging_rounds},
               lasts=aging_rounds * 12)
    yield Cell("clone-4K-qd16", "clone", BEST_COUNTS, {"size": 4 * KIB, "depth": 16})
    yield Cell("full-64K", "full", BEST_COUNTS, {"size": 64 * KIB, "depth": 16},
               store_bytes=4 * GIB, lasts=25)
    for objects in restarts:
        yield Cell(f"restart-{objects // 1000}K", "die", BEST_COUNTS,
                   {"objects": objects, "size": 4 * KIB, "seconds": 3},
                   lasts=15 + objects / 10000)


def choices() -> Iterator[Cell]:
    """TableStore against itself."""
    inline = ("tablestore-inline-0", "tablestore-inline-4K", "tablestore-inline-16K",
              "tablestore-inline-64K")
    for size in (KIB, 4 * KIB, 16 * KIB, 64 * KIB):
        yield Cell(f"inline-{name_of(size)}", "new", inline, {"size": size, "depth": 16})
    tables = ("tablestore", "tablestore-universal", "tablestore-blobs")
    yield Cell("table-metadata", "metadata", tables, {"objects": 300000}, lasts=70)
    yield Cell("table-new-4K", "new", tables, {"size": 4 * KIB, "depth": 16})


LEVELS = {"quick": quick, "usual": usual, "full": full}


def chosen(level: str, patterns: list[str], stores: list[str]) -> list[Cell]:
    """The level's cells that match one of the patterns, less the other stores."""
    found = []
    for cell in LEVELS[level]():
        if patterns and not any(fnmatch.fnmatch(cell.name, p) or cell.name.startswith(p)
                                for p in patterns):
            continue
        wanted = tuple(s for s in cell.stores if not stores or s in stores)
        if stores:
            wanted += tuple(s for s in stores if s not in wanted and s != "floor")
        if wanted:
            found.append(replace(cell, stores=wanted))
    return found
