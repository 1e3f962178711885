"""What is measured: workloads with their parameters, and on which stores."""
from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .variants import (CACHE_BYTES, FLOORS, GIB, LOOPS, MEMORY_TARGET, OURS, SETTINGS,
                       STORE_BYTES, VARIANTS, WRITE_FLOORS, fixed_caches)

KIB = 1 << 10
MIB = 1 << 20

MOST_PROVISIONED = 8 * GIB
SUSTAINED_BYTES = 4 * MEMORY_TARGET
CLIENT_STORE_BYTES = 6 * GIB      # of each of up to three OSDs
CLIENT_RATE = 64 * MIB            # of payload a second, for what OSDs share a machine
SMALL_OBJECTS = 300000     # so many that what a store takes while it is empty hardly counts

FEW = (*OURS, *SETTINGS)
SPARSE = ("bluestore-ssd-sparse",)      # with no space written beforehand, as tablestore-thin
WITH_LOOPS = (*FEW, *LOOPS)


@dataclass(frozen=True)
class Cell:
    """One workload. `arguments` are those of ceph_tablestore_bench."""

    name: str
    workload: str
    stores: tuple[str, ...]
    arguments: dict[str, object] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)   # by store
    store_bytes: int = STORE_BYTES
    lasts: float = 5.5         # seconds, about, with all that surrounds the measurement
    seconds: float | None = None
    # Of objects' data, at the most: for so much of it the space is written beforehand. 0 where the
    # space that a store takes is what is measured, or where there is no data to speak of.
    bytes_per_second: int = 512 * MIB

    @property
    def osds(self) -> int:
        return int(str(self.arguments.get("osds", 1)))

    @property
    def stores_of_its_own(self) -> tuple[str, ...]:
        """Where nothing is provisioned, the default and what is provisioned are the same, and one
        is enough."""
        same = not self.bytes_per_second and OURS[0] in self.stores
        return tuple(store for store in self.stores if not same or store != OURS[1])

    def words(self) -> list[str]:
        words = ["--workload", self.workload]
        for name, value in self.arguments.items():
            if value is True:
                words.append(f"--{name}")
            elif value is not False:
                words += [f"--{name}", str(value)]
        return words


    def provision_bytes(self, seconds: float) -> int:
        """Space that TableStore's mkfs writes, as all of BlueStore's file is written: as much as
        the workload can use, not the whole store, for that would be the most of each run's time."""
        if not self.bytes_per_second:
            return 0
        wanted = GIB + int(self.bytes_per_second * ((self.seconds or seconds) + 1))
        return min(wanted, MOST_PROVISIONED, self.store_bytes)


def rate_of(size: int) -> int:
    if size <= 16 * KIB:
        return 512 * MIB
    return 2 * GIB


def name_of(size: int) -> str:
    for unit, factor in (("M", MIB), ("K", KIB)):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def new(size: int, depth: int, stores: tuple[str, ...], floor: bool = True) -> Cell:
    # The floors: what one write and one flush take, or with more in flight what
    # a perfect group commit would reach.
    if floor:
        stores += WRITE_FLOORS
    return Cell(f"new-{name_of(size)}-qd{depth}", "new", stores, {"size": size, "depth": depth},
                bytes_per_second=rate_of(size))


def aged(size: int, depth: int, stores: tuple[str, ...]) -> Cell:
    """New objects where others were before."""
    return Cell(f"aged-{name_of(size)}-qd{depth}", "new", stores,
                {"size": size, "depth": depth, "aged-bytes": GIB if size > 64 * KIB else GIB // 2},
                lasts=25, bytes_per_second=rate_of(size))


def overwrite(size: int, depth: int, stores: tuple[str, ...]) -> Cell:
    return Cell(f"overwrite-{name_of(size)}-qd{depth}", "overwrite", (*stores, WRITE_FLOORS[0]),
                {"size": size, "depth": depth}, lasts=7, bytes_per_second=rate_of(size))


def read(size: int, depth: int, cold: bool, stores: tuple[str, ...]) -> Cell:
    return Cell(f"read-{'cold' if cold else 'hot'}-{name_of(size)}-qd{depth}", "read",
                (*stores, "floor-read") if cold else stores,
                {"size": size, "depth": depth, "cold": cold}, lasts=9)


def read_miss(size: int, depth: int, stores: tuple[str, ...]) -> Cell:
    """Cold, but the caches are full of other objects, as they are on an OSD that has run for a
    while: after a start they grow, and each page of them is a page fault."""
    return Cell(f"read-miss-{name_of(size)}-qd{depth}", "read", (*stores, "floor-read"),
                {"size": size, "depth": depth, "cold": True, "other-bytes": GIB}, lasts=12)


def metadata(objects: int, stores: tuple[str, ...]) -> Cell:
    """Memory for a third of the table: an object's row and its share of the
    indices take some 450 bytes."""
    cache = max(64 * MIB, objects * 450 // 3)
    return Cell(f"metadata-{objects // 1000}K", "metadata", stores, {"objects": objects},
                settings=caches(cache, "onodes"), lasts=35 + objects / 8000, bytes_per_second=0)


def caches(size: int, of: str) -> dict[str, dict[str, str]]:
    return {name: fixed_caches(variant.store, size, of) for name, variant in VARIANTS.items()}


def rados(size: int, seconds: float, stores: tuple[str, ...]) -> Cell:
    return Cell(f"rados-{name_of(size)}", "rados", (*stores, "kstore", "memstore"),
                {"size": size, "depth": 16}, lasts=30, seconds=seconds,
                bytes_per_second=rate_of(size))


def imitated_flush(kind: str, microseconds: int, size: int, depth: int,
                   stores: tuple[str, ...]) -> Cell:
    """On a disk with power-loss protection, and on a busy one."""
    return Cell(f"flush-{kind}-{name_of(size)}-qd{depth}", "new", stores,
                {"size": size, "depth": depth, "flush-us": microseconds})


def quick() -> Iterator[Cell]:
    yield new(4 * KIB, 1, FEW)
    yield new(4 * KIB, 16, (*FEW, "kstore", "memstore"))
    yield new(64 * KIB, 1, FEW)
    yield new(64 * KIB, 16, (*FEW, *SPARSE), floor=False)
    yield new(1 * MIB, 16, (*FEW, "kstore"), floor=False)
    yield overwrite(4 * KIB, 1, FEW)
    yield overwrite(4 * KIB, 16, FEW)
    yield read(4 * KIB, 16, True, FEW)
    yield replace(metadata(30000, FEW), lasts=14, seconds=1)


def usual() -> Iterator[Cell]:
    """Loop devices where it is to be seen whether they matter."""
    for size in (4 * KIB, 16 * KIB, 64 * KIB):
        yield new(size, 1, WITH_LOOPS if size == 4 * KIB else FEW)
        yield new(size, 16, (*(WITH_LOOPS if size == 4 * KIB else FEW), *SPARSE, "kstore",
                             "memstore"))
    yield new(4 * KIB, 64, FEW)
    yield new(256 * KIB, 16, FEW)
    yield new(MIB, 16, (*WITH_LOOPS, *SPARSE, "kstore", "memstore"))
    yield new(4 * MIB, 16, FEW)
    for size in (4 * KIB, 64 * KIB, MIB):
        yield rados(size, 15, FEW)
    yield from others(FEW, depths=(1, 16), metadata_objects=100000, omap_keys=100000,
                      restarts=(10000, 100000), aging_rounds=4)


def full() -> Iterator[Cell]:
    for power in range(12, 23):
        for depth in (1, 16, 64):
            peers = ("kstore", "memstore") if power < 22 else ("kstore",)
            yield new(1 << power, depth, (*WITH_LOOPS, *SPARSE, *peers))
    for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB):
        yield rados(size, 60, WITH_LOOPS)
    yield from others((*WITH_LOOPS, "kstore"), depths=(1, 16, 64), metadata_objects=1000000,
                      omap_keys=1000000, restarts=(10000, 100000, 1000000), aging_rounds=10)
    yield from of_clients(FEW, seconds=60)
    yield from choices()


def others(stores: tuple[str, ...], depths: tuple[int, ...], metadata_objects: int,
           omap_keys: int, restarts: tuple[int, ...], aging_rounds: int) -> Iterator[Cell]:
    """All but new objects. KStore is left out where objects are written again: it
    rewrites whole values, and it forgets stripes of an object while another write uses
    them, which ends the process now and then."""
    without_kstore = tuple(store for store in stores if store != "kstore")
    for size in (4 * KIB, 64 * KIB, MIB):
        yield aged(size, 16, without_kstore)
    for size in (4 * KIB, 64 * KIB):
        for depth in depths:
            yield overwrite(size, depth, without_kstore)
    yield Cell("unaligned-1000-qd16", "overwrite", without_kstore,
               {"size": 1000, "depth": 16, "unaligned": True}, lasts=7)
    yield Cell("append-4K-qd16", "append", without_kstore, {"size": 4 * KIB, "depth": 16})
    for size in (4 * KIB, 64 * KIB, MIB):
        for cold in (True, False):
            yield read(size, 16, cold, stores)
        yield read_miss(size, 16, stores)
    yield Cell("mix-4K-qd16", "mix", without_kstore, {"size": 4 * KIB, "depth": 16}, lasts=7)
    for kind, microseconds in (("free", 0), ("slow", 2000)):
        for depth in (16, 64):
            yield imitated_flush(kind, microseconds, 4 * KIB, depth, without_kstore)
    yield Cell("small-1K", "new", stores, {"size": KIB, "depth": 16, "objects": SMALL_OBJECTS},
               lasts=10 + SMALL_OBJECTS / 10000, bytes_per_second=0)
    yield metadata(metadata_objects, stores)
    for name, of in (("omap", stores), ("removals", without_kstore)):
        yield Cell(f"{name}-{omap_keys // 1000}K", name, of, {"objects": omap_keys},
                   settings=caches(CACHE_BYTES, "omap"), lasts=25 + omap_keys / 8000,
                   bytes_per_second=0)
    yield Cell("aging", "aging", without_kstore, {"rounds": aging_rounds},
               lasts=aging_rounds * 12, bytes_per_second=0)
    yield Cell("clone-4K-qd16", "clone", without_kstore, {"size": 4 * KIB, "depth": 16})
    yield Cell("full-64K", "full", without_kstore, {"size": 64 * KIB, "depth": 16},
               store_bytes=4 * GIB, lasts=20)
    for objects in restarts:
        yield Cell(f"restart-{objects // 1000}K", "die", without_kstore,
                   {"objects": objects, "size": 4 * KIB}, lasts=15 + objects / 10000)


def choices() -> Iterator[Cell]:
    """TableStore against itself."""
    inline = ("tablestore-inline-0", "tablestore-inline-4K", "tablestore-inline-16K",
              "tablestore-inline-64K")
    for size in (KIB, 4 * KIB, 16 * KIB, 64 * KIB):
        yield Cell(f"inline-{name_of(size)}", "new", inline, {"size": size, "depth": 16})
    tables = ("tablestore", "tablestore-universal", "tablestore-blobs")
    yield Cell("table-metadata", "metadata", tables, {"objects": 300000}, lasts=70,
               bytes_per_second=0)
    yield Cell("table-new-4K", "new", tables, {"size": 4 * KIB, "depth": 16})


def sustained() -> Iterator[Cell]:
    """Nothing but the clock ends these. The data are twice the memory that a store may use, and
    half of its space; for rados bench see Writes.come_and_go()."""
    common = {"depth": 16, "parts": 4, "max-bytes": "1000000G"}
    for size in (4 * KIB, 64 * KIB):
        yield Cell(f"sustained-overwrite-{name_of(size)}-qd16", "overwrite", FEW,
                   common | {"size": size, "objects": 2 * MEMORY_TARGET // (4 * MIB)},
                   store_bytes=SUSTAINED_BYTES, lasts=30)
    yield Cell("sustained-replace-64K-qd16", "full", FEW,
               common | {"size": 64 * KIB, "objects": 2 * MEMORY_TARGET // (64 * KIB)},
               store_bytes=SUSTAINED_BYTES, lasts=30)
    yield Cell("sustained-rados-4K", "rados", FEW, {"size": 4 * KIB, "depth": 16, "parts": 4},
               store_bytes=SUSTAINED_BYTES, lasts=120)


def of_clients(stores: tuple[str, ...], seconds: float | None = None) -> Iterator[Cell]:
    """One to three OSDs under what people use. KStore is left out where objects are written again:
    see others()."""
    for osds in (1, 2, 3):
        for depth in (16, 64):
            yield of_client("rados", f"4K-{osds}osd-t{depth}", (*stores, "kstore", "memstore"),
                            osds, depth, seconds, around=16 + 2 * osds)
    for depth in (16, 64):
        yield of_client("rbd", f"4K-3osd-t{depth}", stores, 3, depth, seconds, around=25)
    yield of_client("cephfs", "4K-3osd-t8", stores, 3, 8, seconds, around=35, phases=4)
    yield of_client("s3", "4K-3osd-t16", (*stores, "kstore"), 3, 16, seconds, around=35,
                    phases=3)


def of_client(kind: str, name: str, stores: tuple[str, ...], osds: int, depth: int,
              seconds: float | None, around: float, phases: int = 1) -> Cell:
    """`around` is what a run takes beside its phases, in seconds."""
    return Cell(f"clients-{kind}-{name}", f"clients-{kind}", stores,
                {"size": 4 * KIB, "depth": depth, "osds": osds}, store_bytes=CLIENT_STORE_BYTES,
                seconds=seconds, lasts=around + (phases - 1) * (seconds or 15),
                bytes_per_second=CLIENT_RATE // osds)


def client_level() -> Iterator[Cell]:
    return of_clients(FEW)


LEVELS = {"quick": quick, "usual": usual, "full": full, "sustained": sustained,
          "clients": client_level}


def chosen(level: str, patterns: list[str], stores: list[str]) -> list[Cell]:
    """The level's cells that match one of the patterns, less the other stores."""
    found = []
    for cell in LEVELS[level]():
        if patterns and not any(fnmatch.fnmatch(cell.name, p) or cell.name.startswith(p + "-")
                                for p in patterns):
            continue
        wanted = tuple(s for s in cell.stores if not stores or s in stores)
        if OURS[0] in wanted:
            wanted = tuple(s for s in wanted if s in cell.stores_of_its_own)
        if stores:
            wanted += tuple(s for s in stores if s not in wanted and s not in FLOORS)
        if wanted:
            found.append(replace(cell, stores=wanted))
    return found
