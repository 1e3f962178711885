"""How full an OSD is, and what fills it. Contents follow from names, so that nothing has to be
kept to know what is right."""
from __future__ import annotations

import errno
import os
import random
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import rados

from cephcluster.daemons import Daemon
from cephcluster.errors import ClusterError
from cephcluster.wait import wait_until

from .bed import Bed, check, check_bytes, check_equal
from .decay import health_codes

MIB = 1 << 20
STATE_SECONDS = 60
BACK_SECONDS = 300
OPERATION_SECONDS = 60
DEPTH = 8
KEYS = 64                       # of omap, in one write
VALUE_BYTES = 4096
FULL_CODES = {"OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL", "POOL_FULL", "POOL_NEARFULL",
              "POOL_BACKFILLFULL", "TABLESTORE_NO_SPACE", "TABLESTORE_TABLE_SHORT_OF_SPACE",
              "TABLESTORE_GROWTH_FAILED"}


# ---- what the OSD and the mon say

def used_ratio(osd: Daemon) -> float:
    """What is compared with the full ratios: 1 when nothing is available."""
    counters = osd.ask("perf dump")["osd"]
    return 1 - counters["stat_bytes_avail"] / max(counters["stat_bytes"], 1)


def full_states(bed: Bed, osd: Daemon) -> set[str]:
    for each in bed.cluster.client.mon("osd dump")["osds"]:
        if str(each["osd"]) == osd.ident:
            return {"nearfull", "backfillfull", "full"} & set(each["state"])
    return set()


def health_lines(bed: Bed) -> list[str]:
    checks = bed.cluster.client.mon("health", detail="detail")["checks"]
    return [f"{code}: {line['message']}" for code, each in checks.items()
            if not code.startswith("MGR_") for line in each.get("detail", []) or [each["summary"]]]


def wait_for_health(bed: Bed, *codes: str, timeout: float = STATE_SECONDS) -> None:
    def there() -> bool:
        bed.cluster.check_daemons()
        return set(codes) <= health_codes(bed)

    wait_until(f"the health report to have {', '.join(codes)}", there, timeout,
               explain=lambda: health_lines(bed) + [f"used {used_ratio(bed.osd):.3f}"])


def wait_until_not_full(bed: Bed, timeout: float = BACK_SECONDS) -> None:
    """No health code of a lack of space is left, by itself."""
    def gone() -> bool:
        bed.cluster.check_daemons()
        return not FULL_CODES & health_codes(bed)

    wait_until("the health report to be free of full OSDs", gone, timeout,
               explain=lambda: health_lines(bed) + [f"used {used_ratio(bed.osd):.3f}"])


# ---- objects

def data_of(name: str, size: int = MIB) -> bytes:
    return random.Random(name).randbytes(size)


def check_data(io: rados.Ioctx, names: Iterable[str], size: int = MIB) -> None:
    for name in names:
        check_bytes(io.read(name, size + 1), data_of(name, size), name)


def check_absent(io: rados.Ioctx, names: Iterable[str]) -> None:
    for name in names:
        try:
            io.stat(name)
        except rados.ObjectNotFound:
            continue
        raise ClusterError(f"{name} was removed, and is there")


def open_regardless(bed: Bed, pool: str) -> rados.Ioctx:
    """Its operations are sent to a full cluster, too: what needs space gets ENOSPC there."""
    io = bed.cluster.client.open_pool(pool)
    io.set_osdmap_full_try()
    return io


def result_of(bed: Bed, completion: rados.Completion, timeout: float = OPERATION_SECONDS) -> int:
    """0 or the errno. While it waits, it looks whether the OSDs live."""
    def ended() -> bool:
        bed.cluster.check_daemons()
        return completion.is_complete()

    if not completion.is_complete():
        wait_until("an operation of a client", ended, timeout, poll=0.01,
                   explain=lambda: health_lines(bed))
    return -completion.get_return_value()


def write_objects(bed: Bed, io: rados.Ioctx, prefix: str, count: int) -> list[str]:
    """Objects of 1 MiB, until there are so many or one is refused with ENOSPC. Returns what was
    acknowledged."""
    written: list[str] = []
    flying: list[tuple[str, rados.Completion]] = []
    number, refused = 0, False
    while flying or (number < count and not refused):
        while number < count and not refused and len(flying) < DEPTH:
            name = f"{prefix}_{number}"
            flying.append((name, io.aio_write_full(name, data_of(name))))
            number += 1
        name, completion = flying.pop(0)
        code = result_of(bed, completion)
        check(code in (0, errno.ENOSPC), f"write of {name}: error {code}")
        if code == 0:
            written.append(name)
        else:
            refused = True
    return written


def remove(bed: Bed, io: rados.Ioctx, names: Iterable[str]) -> None:
    removals = [io.aio_remove(name) for name in names]
    for removal in removals:
        check_equal(result_of(bed, removal), 0, "result of a removal")


# ---- omap

def keys_of(name: str, part: int) -> dict[str, bytes]:
    """Of one write: values that no compression makes smaller."""
    dice = random.Random(f"{name}/{part}")
    return {f"{part:06}.{number:03}": dice.randbytes(VALUE_BYTES) for number in range(KEYS)}


def add_omap(io: rados.Ioctx, name: str, part: int) -> rados.Completion:
    values = keys_of(name, part)
    with rados.WriteOpCtx() as operation:
        io.set_omap(operation, tuple(values), tuple(values.values()))
        return io.operate_aio_write_op(operation, name)


def check_omap(io: rados.Ioctx, name: str, part: int) -> None:
    expected = keys_of(name, part)
    with rados.ReadOpCtx() as operation:
        found, _ = io.get_omap_vals_by_keys(operation, tuple(expected))
        io.operate_read_op(operation, name)
        check(dict(found) == expected, f"omap of {name}, part {part}, is not what was written")


# ---- somebody else

class Foreigner:
    """Somebody else's file on the OSD's file system."""

    def __init__(self, directory: Path):
        self._path = directory / "not-of-the-osd"

    def take_all(self) -> None:
        """To the last byte, as far as one can tell: again until nothing is left."""
        with open(self._path, "ab", buffering=0) as file:
            for step in (64 * MIB, MIB, 4096):
                try:
                    while True:
                        end = os.fstat(file.fileno()).st_size
                        os.posix_fallocate(file.fileno(), end, step)
                except OSError as error:
                    check(error.errno in (errno.ENOSPC, errno.EDQUOT), f"fallocate: {error}")

    def leave(self) -> None:
        self._path.unlink(missing_ok=True)


@contextmanager
def foreigner(bed: Bed, osd: Daemon) -> Iterator[Foreigner]:
    one = Foreigner(bed.cluster.layout.data(osd.name))
    try:
        yield one
    finally:
        one.leave()


# ---- a command that runs on

@contextmanager
def running(*words: object) -> Iterator[subprocess.Popen[bytes]]:
    """Ended with the body, at the latest with this program."""
    with subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, words)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def bench_words(bed: Bed, pool: str, *more: object) -> list[object]:
    return ["rados", "-c", bed.cluster.layout.conf, "-p", pool, "bench", 300, "write", "-b", MIB,
            "-t", 16, "--no-cleanup", *more]
