"""A file system that has not one byte left, below an OSD: by the OSD's objects, or by somebody
else's file. The OSD starts, deletes, exports and drains all the same."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rados

from cephcluster.daemons import Daemon
from cephcluster.wait import wait_until

from .bed import Bed, Kind, check, check_equal, test
from .decay import health_codes
from .fullness import (BACK_SECONDS, STATE_SECONDS, Foreigner, check_absent, check_data,
                       foreigner, open_regardless, remove, result_of, used_ratio, wait_for_health,
                       wait_until_not_full, write_objects)
from .tools import fresh, listed, pg_of_pool, tool

# osd.0 is filled, osd.1 is out and empty until osd.0 is drained.
SMALL = Kind(name="small", osds=2, file_system="xfs", file_system_bytes=1 << 30)
DRAIN_SECONDS = 120
MORE_THAN_FITS = 2000


@contextmanager
def first_osd_alone(bed: Bed) -> Iterator[tuple[str, rados.Ioctx]]:
    """All of a pool lies on it."""
    put(bed, "0", "1")
    try:
        with bed.pool(groups=8, size=1) as pool:
            regardless = open_regardless(bed, pool)
            try:
                yield pool, regardless
            finally:
                regardless.close()
    finally:
        bed.cluster.client.mon("osd in", ids=["1"])


def put(bed: Bed, ident_in: str, ident_out: str) -> None:
    bed.cluster.client.mon("osd in", ids=[ident_in])
    bed.cluster.client.mon("osd out", ids=[ident_out])
    bed.cluster.wait_clean()


@test(kind=SMALL, stores=("tablestore",))
def an_osd_lives_on_a_file_system_that_somebody_else_fills(bed: Bed) -> str:
    """And again after everything that containers and deletes have given back. When the file is
    gone, all goes on by itself."""
    osd, alive = bed.osd, bed.osd.pid()
    with first_osd_alone(bed) as (pool, regardless), foreigner(bed, osd) as other:
        io = bed.cluster.client.open_pool(pool)
        names = write_objects(bed, io, "object", 240)
        squeeze(bed, other)
        waiting = io.aio_write_full("waiting", b"data")
        removed, kept = names[:80], names[160:]
        check(not waiting.is_complete(), "a write went through without space")
        remove(bed, regardless, removed)
        other.take_all()
        check_equal(osd.pid(), alive, "process of the OSD")
        bed.restart_osd()
        check_absent(io, removed)
        remove(bed, regardless, names[80:160])
        bed.restart_osd()
        check_absent(io, names[:160])
        check_data(io, kept)
        other.leave()
        check_equal(result_of(bed, waiting), 0, "result of the write that had to wait")
        wait_until_not_full(bed)
        check_data(io, kept)
        io.close()
    return f"{len(names)} objects"


def squeeze(bed: Bed, other: Foreigner) -> None:
    """Also what containers give back meanwhile, for the table."""
    def nothing_is_left() -> bool:
        bed.cluster.check_daemons()
        other.take_all()
        return "TABLESTORE_TABLE_SHORT_OF_SPACE" in health_codes(bed)

    wait_until("all to be taken", nothing_is_left, STATE_SECONDS,
               explain=lambda: [f"used {used_ratio(bed.osd):.3f}"])
    wait_for_health(bed, "OSD_FULL", "TABLESTORE_NO_SPACE")
    other.take_all()


@test(kind=SMALL, stores=("tablestore",))
def an_osd_starts_and_drains_on_a_file_system_that_somebody_else_filled(bed: Bed) -> str:
    with first_osd_alone(bed) as (pool, regardless), foreigner(bed, bed.osd) as other:
        names = write_objects(bed, regardless, "object", 300)
        bed.osd.kill()
        other.take_all()
        bed.cluster.restart_killed(bed.osd)
        bed.cluster.recovered()
        squeeze(bed, other)
        remark = leave(bed, regardless, names, other)
        other.leave()
    return remark


@test(kind=SMALL, stores=("tablestore",))
def an_osd_starts_and_drains_on_a_file_system_that_it_filled_itself(bed: Bed) -> str:
    with first_osd_alone(bed) as (pool, regardless):
        names = write_objects(bed, regardless, "object", MORE_THAN_FITS)
        wait_for_health(bed, "OSD_FULL", "POOL_FULL")
        bed.restart_osd()
        return leave(bed, regardless, names, None)


def wait_for_map(bed: Bed, osd: Daemon) -> None:
    epoch = bed.cluster.client.mon("osd dump")["epoch"]
    wait_until("the OSD to have the latest map",
               lambda: int(osd.ask("status")["newest_map"]) >= epoch, STATE_SECONDS)


def leave(bed: Bed, io: rados.Ioctx, names: list[str], other: Foreigner | None) -> str:
    """All that an operator may do with an OSD that is full: deletes, which last; a placement group
    that the tool carries to another OSD; the rest goes there by itself."""
    removed = names[::3]
    kept = [name for name in names if name not in removed]
    remove(bed, io, removed)
    bed.restart_osd()
    check_absent(io, removed)
    full, target = bed.cluster.osds
    pgid = str(pg_of_pool(bed, io)["pgid"])
    full.kill()
    if other:
        other.take_all()
    wait_for_map(bed, target)    # or it refuses the import
    target.stop()
    # Nobody is left who would report it, and what is up does not boot.
    bed.cluster.client.mon("osd down", ids=[full.ident])
    export = fresh(bed, "pg.export")
    tool(bed, full, "--op", "fsck")
    tool(bed, full, "--op", "export", "--pgid", pgid, "--file", export)
    tool(bed, target, "--op", "import", "--file", export)
    tool(bed, full, "--op", "remove", "--force", "--pgid", pgid)
    check(pgid not in tool(bed, full, "--op", "list-pgs").split(), f"{pgid} is still listed")
    moved = len(listed(bed, target, pgid))
    if other:
        other.take_all()
    bed.cluster.client.mon("osd in", ids=["1"])
    for osd in (full, target):
        bed.cluster.restart_killed(osd)
    put(bed, "1", "0")
    check_data(io, kept)
    check_absent(io, removed)
    wait_until("the full OSD to hold no placement group",
               lambda: full.ask("status")["num_pgs"] == 0, DRAIN_SECONDS,
               explain=lambda: [str(full.ask("status"))])
    wait_until_not_full(bed)
    if not other:
        wait_until("the space to be back", lambda: used_ratio(full) < 0.4, BACK_SECONDS,
                   explain=lambda: [f"used {used_ratio(full):.3f}"])
    return f"{len(names)} objects, {moved} of them by export"
