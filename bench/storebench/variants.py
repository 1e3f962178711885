"""What is compared: stores with their settings, and what lies below them."""
from __future__ import annotations

import mmap
import os
import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

GIB = 1 << 30
MIB = 1 << 20

MEMORY_TARGET = 2 * GIB
CACHE_BYTES = GIB
STORE_BYTES = 12 * GIB
MEMSTORE_BYTES = 6 * GIB
# Those of an OSD on an SSD, for all stores: by itself it asks its store what that is on, and
# KStore and MemStore say that it rotates.
OSD_THREADS = {"osd_op_num_shards": "8", "osd_op_num_threads_per_shard": "2"}
WRITE_BYTES = 4 * MIB


@dataclass(frozen=True)
class Variant:
    """One column of the comparison."""

    name: str
    store: str
    settings: dict[str, str] = field(default_factory=dict)
    on: str = ""              # BlueStore's block device: "file", "loop", or "sparse", which it
                              # makes itself

    @property
    def is_bluestore(self) -> bool:
        return self.store == "bluestore"

    @property
    def has_written_block(self) -> bool:
        return self.is_bluestore and self.on != "sparse"


def bluestore(kind: str, on: str, write_v2: bool = False) -> Variant:
    """Its defaults for a kind of disk, whatever this one says that it is; with `write_v2`
    Tentacle's reworked way of writing, which is off by default."""
    name = f"bluestore-{kind}" + ("-v2" if write_v2 else "") + ("" if on == "file" else f"-{on}")
    settings = {"bluestore_debug_enforce_settings": kind}
    if write_v2:
        settings["bluestore_write_v2"] = "true"
    return Variant(name, "bluestore", settings, on)


def tablestore(name: str, **options: str) -> Variant:
    return Variant(name, "tablestore",
                   {f"tablestore_{key}": value for key, value in options.items()})


VARIANTS = {each.name: each for each in (
    tablestore("tablestore-thin", provision_size="0"),
    tablestore("tablestore"),
    bluestore("ssd", "file"),
    bluestore("hdd", "file"),
    bluestore("ssd", "file", write_v2=True),
    bluestore("hdd", "file", write_v2=True),
    bluestore("ssd", "loop"),
    bluestore("hdd", "loop"),
    bluestore("ssd", "sparse"),
    Variant("kstore", "kstore"),
    Variant("memstore", "memstore"),
    # The file system alone: one write and one flush, in a written file, and at first touch; reads.
    Variant("floor", "raw"),
    Variant("floor-thin", "raw-thin"),
    Variant("floor-read", "raw"),
    # Choices within TableStore that measurement is to judge.
    tablestore("tablestore-inline-0", inline_max="0"),
    tablestore("tablestore-inline-4K", inline_max="4096"),
    tablestore("tablestore-inline-16K", inline_max="16384"),
    tablestore("tablestore-inline-64K", inline_max="65536"),
    tablestore("tablestore-universal",
               table_options="compaction_style=kCompactionStyleUniversal"),
    tablestore("tablestore-blobs", inline_max="65536",
               table_options="enable_blob_files=true;min_blob_size=1024"),
)}

OURS = ("tablestore-thin", "tablestore")       # what is the default comes first
SETTINGS = ("bluestore-ssd", "bluestore-hdd", "bluestore-ssd-v2", "bluestore-hdd-v2")
LOOPS = ("bluestore-ssd-loop", "bluestore-hdd-loop")    # only shown
WRITE_FLOORS = ("floor", "floor-thin")
FLOORS = (*WRITE_FLOORS, "floor-read")
PEERS = SETTINGS        # the best of those that were measured is what counts


# BlueStore's, by what a workload has: of the table's rows of onodes, of its others, and of onodes.
# Those of TableStore: two fifths are the table's, and what is left is data's. Where there are no
# data its onodes take what these do not.
SHARES = {
    "data": {"kv_onode": 0.2, "kv": 0.2, "meta": 0.3},
    "omap": {"kv_onode": 0.04, "kv": 0.36, "meta": 0.3},
    "onodes": {"kv_onode": 0.4, "kv": 0.1, "meta": 0.45},
}


def fixed_caches(store: str, size: int, of: str = "data") -> dict[str, str]:
    """Caches that have their size from the beginning, in TableStore's shares. By themselves they
    grow for half a minute after a start, and differ in how fast."""
    if store == "tablestore":
        return {"tablestore_cache_size": str(size)}
    if store == "bluestore":
        shares = SHARES[of]
        # Without autotuning nothing heeds the share of onodes' rows: their cache has this size.
        return ({"bluestore_cache_size": str(size), "bluestore_cache_autotune": "false",
                 "rocksdb_cache_size": str(int(size * shares["kv_onode"]))}
                | {f"bluestore_cache_{name}_ratio": f"{share:g}"
                   for name, share in shares.items()})
    return {"rocksdb_cache_size": str(size)} if store == "kstore" else {}


def settings_of(variant: Variant, store_bytes: int, block: str, provision_bytes: int,
                extra: dict[str, str]) -> dict[str, str]:
    """All of Ceph's options for a run."""
    settings = ({"osd_memory_target": str(MEMORY_TARGET)}
                | fixed_caches(variant.store, CACHE_BYTES))
    if variant.store == "tablestore":
        settings |= {"tablestore_capacity": str(store_bytes),
                     "tablestore_provision_size": str(provision_bytes)}
        if not provision_bytes:     # what the store takes is what is measured
            settings["tablestore_stock_size"] = "0"
    elif variant.is_bluestore:
        settings |= {"bluestore_block_size": str(store_bytes), "bluestore_block_path": block}
    elif variant.store == "memstore":
        settings["memstore_device_bytes"] = str(MEMSTORE_BYTES)
    return settings | variant.settings | extra


def write_zeros(path: Path, size: int) -> None:
    """All of it reaches the disk, and as little as may be stays in the kernel's memory."""
    zeros = memoryview(mmap.mmap(-1, WRITE_BYTES))  # aligned, as direct writes have to be
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT, 0o644)
    try:
        left = size
        while left > 0:
            left -= os.write(file, zeros[:left])
        os.fsync(file)
    finally:
        os.close(file)


class BlockFiles:
    """BlueStore's files, written once and used for many stores: on a file that
    is not written each first write would pay the file system's allocation."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._made: dict[tuple[int, int], Path] = {}

    def of(self, size: int, osd: int = 0) -> Path:
        """Each OSD of a cluster has its own: their names end with its number."""
        if (size, osd) not in self._made:
            path = self.folder / f"block.{size >> 20}M.{osd}"
            try:
                write_zeros(path, size)
            except OSError:
                path.unlink(missing_ok=True)    # a full disk would be full for the next store, too
                raise
            self._made[size, osd] = path
        return self._made[size, osd]


class LoopDevice(AbstractContextManager):
    """A loop device on a file, without the page cache in between. Detached
    while it is open, it goes with its last user: also if we are killed. It says that it does not
    rotate, whatever the disk below says: none is fast enough to measure stores on that does."""

    def __init__(self, file: Path):
        self._file = file
        self._open = -1

    def __enter__(self) -> str:
        device = run_checked("losetup", "--find", "--show", "--direct-io=on",
                             str(self._file)).strip()
        try:
            self._open = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
            Path("/sys/block", Path(device).name, "queue/rotational").write_text("0")
        finally:
            run_checked("losetup", "--detach", device)
        return device

    def __exit__(self, *_: object) -> None:
        os.close(self._open)


def run_checked(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"'{' '.join(words)}' failed: {done.stderr.strip()}")
    return done.stdout
