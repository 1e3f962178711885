"""Container files cannot grow for a reason that is no lack of space, or none that statfs knows of:
a state with an alert, in which deletes go through, and which ends when the reason does."""
from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from cephcluster.errors import ClusterError

from .bed import Bed, Kind, check, check_equal, test
from .full_file_system import first_osd_alone
from .fullness import (MIB, bench_words, check_absent, check_data, health_lines,
                       remove, result_of, running, wait_for_health, wait_until_not_full,
                       write_objects)

QUOTA_SOURCE = Path(__file__).resolve().parents[1] / "quota.c"
ALERT = "TABLESTORE_GROWTH_FAILED"
# OSDs that nobody has filled before: whose containers have all of the space need not grow.
GROWING = Kind(name="growing", osds=2, file_system="xfs", file_system_bytes=1 << 30)


def cannot_grow_for_a_while(bed: Bed, hindrance: Callable[[Bed], AbstractContextManager[str]]
                            ) -> str:
    """The hindrance comes while a client writes; what it is called is in the health report."""
    osd = bed.osd
    with first_osd_alone(bed) as (pool, regardless):
        alive = osd.pid()
        io = bed.cluster.client.open_pool(pool)
        names = write_objects(bed, io, "object", 200)
        removed, kept = names[:50], names[50:]
        with running(*bench_words(bed, pool)):
            with hindrance(bed) as called:
                wait_for_health(bed, ALERT)
                line, = (each for each in health_lines(bed) if each.startswith(ALERT))
                check(called in line, f"not '{called}' but: {line}")
                wait_for_health(bed, "OSD_FULL")
                waiting = io.aio_write_full("waiting", b"data")
                remove(bed, regardless, removed)
                check_absent(regardless, removed)
                check_data(regardless, kept)
        check_equal(result_of(bed, waiting), 0, "result of the write that had to wait")
        check_equal(osd.pid(), alive, "process of the OSD")
        wait_until_not_full(bed)
        bed.restart_osd()
        check_absent(regardless, removed)
        check_data(io, kept)
        io.close()
    return line


@contextmanager
def closed_directories(bed: Bed) -> Iterator[str]:
    directories = [*(bed.cluster.layout.data(bed.osd.name) / "containers").iterdir()]
    change_attribute("+i", directories)
    try:
        yield os.strerror(1)
    finally:
        change_attribute("-i", directories)


def change_attribute(attribute: str, paths: list[Path]) -> None:
    subprocess.run(["chattr", attribute, *map(str, paths)], check=True)


@test(kind=GROWING, stores=("tablestore",))
def directories_that_take_no_files_are_a_state(bed: Bed) -> str:
    return cannot_grow_for_a_while(bed, closed_directories)


@test(kind=GROWING, stores=("tablestore",))
def a_quota_that_statfs_does_not_know_is_a_state(bed: Bed) -> str:
    osd, data = bed.osd, bed.cluster.layout.data(bed.osd.name)
    library, limit = bed.file("quota.so"), bed.file("quota")
    made = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(QUOTA_SOURCE)],
                          capture_output=True, text=True)
    if made.returncode != 0:
        raise ClusterError("the quota does not compile", details=made.stderr.splitlines())

    @contextmanager
    def quota(bed: Bed) -> Iterator[str]:
        fs = os.statvfs(data)
        limit.write_text(str((fs.f_blocks - fs.f_bfree) * fs.f_frsize + 64 * MIB))
        try:
            yield os.strerror(122)
        finally:
            limit.unlink()

    osd.environment = {"LD_PRELOAD": str(library), "QUOTA_DIRECTORY": str(data),
                       "QUOTA_FILE": str(limit)}
    try:
        bed.restart_osd()
        return cannot_grow_for_a_while(bed, quota)
    finally:
        osd.environment = {}
        bed.restart_osd()
