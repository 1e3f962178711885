"""An OSD that its clients fill, by data and by omap: what it does, what an operator sees, and that
deletes bring it back."""
from __future__ import annotations

import time
from collections.abc import Callable

import rados

from cephcluster.errors import ClusterError
from cephcluster.wait import wait_until

from .bed import Bed, Kind, check, check_equal, test
from .decay import health_codes
from .fullness import (BACK_SECONDS, KEYS, MIB, VALUE_BYTES, add_omap, bench_words, check_absent,
                       check_data, check_omap, data_of, full_states, open_regardless, result_of,
                       running, used_ratio, wait_for_health, wait_until_not_full)

# A memtable that is flushed shows at once what had gone into it: small ones, so that no ratio is
# jumped over.
CAPPED = Kind(name="capped", osd_options=(("tablestore_capacity", str(1 << 30)),
                                          ("tablestore_table_memtable_size", str(16 * MIB))))
NEARFULL, BACKFILLFULL = 0.865, 0.915      # a little more than Ceph's ratios, in which it steps
SPACE_WAITS = 20
KEPT = [f"kept_{number}" for number in range(20)]


def write_kept(io: rados.Ioctx) -> None:
    for name in KEPT:
        io.write_full(name, data_of(name))


def check_refused(io: rados.Ioctx) -> None:
    """What needs space, and is sent regardless."""
    try:
        io.write_full("refused", b"data")
    except rados.NoSpace:
        return
    raise ClusterError("a full OSD took a write")


@test(kind=CAPPED, stores=("tablestore",))
def an_osd_filled_by_rados_bench_comes_back(bed: Bed) -> str:
    """Each ratio is seen in the health report; clients wait; deletes go through, and what waited
    goes on by itself."""
    osd, alive = bed.osd, bed.osd.pid()
    with bed.pool(groups=8) as pool:
        io, regardless = bed.cluster.client.open_pool(pool), open_regardless(bed, pool)
        write_kept(io)
        for ratio, state in ((NEARFULL, "nearfull"), (BACKFILLFULL, "backfillfull")):
            bench_up_to(bed, pool, ratio)
            wait_for_health(bed, f"OSD_{state.upper()}")
        with running(*bench_words(bed, pool)) as load:
            wait_for_health(bed, "OSD_FULL", "POOL_FULL")
            bed.cluster.client.wait_for_map()
            waiting = io.aio_write_full("waiting", data_of("waiting"))
            check_refused(regardless)
            check_equal(full_states(bed, osd), {"full"}, "state of the OSD")
            check(load.poll() is None, "rados bench ended on a full cluster")
        most = used_ratio(osd)
        check(not waiting.is_complete(), "a write went through on a full cluster")
        names = bench_objects(io)
        bed.rados(pool, "rm", "--force-full", *names[:len(names) // 3])
        check_equal(result_of(bed, waiting), 0, "result of the write that had to wait")
        bed.rados(pool, "cleanup", "--prefix", "benchmark_data")
        check_equal(bench_objects(io), [], "objects after the clean-up")
        wait_until_not_full(bed)
        check_equal(osd.pid(), alive, "process of the OSD")
        bed.restart_osd()
        check_data(io, [*KEPT, "waiting"])
        io.close()
        regardless.close()
    return f"{len(names)} objects, used at most {most:.1%}"


def bench_up_to(bed: Bed, pool: str, ratio: float) -> None:
    total = bed.osd.ask("perf dump")["osd"]["stat_bytes"]
    count = int((ratio - used_ratio(bed.osd)) * total / MIB)
    if count > 0:
        bed.rados(pool, "bench", 300, "write", "-b", MIB, "-t", 16, "--no-cleanup",
                  "--max-objects", count, "--run-name", f"up_to_{ratio}")


def bench_objects(io: rados.Ioctx) -> list[str]:
    return [each.key for each in io.list_objects() if each.key.startswith("benchmark_data")]


@test(kind=CAPPED, stores=("tablestore",))
def an_osd_filled_by_omap_comes_back(bed: Bed) -> str:
    """Rows count as data does. A client that heeds no full flag may add keys to an object that is
    there, until only the reserve is left: the OSD lives, starts again, and deletes."""
    osd, alive = bed.osd, bed.osd.pid()
    with bed.pool(groups=8) as pool:
        io, regardless = bed.cluster.client.open_pool(pool), open_regardless(bed, pool)
        write_kept(io)
        rows, before = Rows(bed, regardless), used_ratio(osd)
        rows.add_until(lambda: rows.mib() >= 200)
        grown = used_ratio(osd) - before
        check(grown > 0.08, f"{rows.mib()} MiB of omap show as {grown:.1%} of 1 GiB")
        seen_by_steps(bed, rows)
        rows.add_until(lambda: "OSD_FULL" in health_codes(bed))
        told = rows.mib()
        # Until then a compaction may give some of it back, and the OSD is not full for a moment.
        rows.add_until(lambda: osd.ask("perf dump")["tablestore"]["space_waits"] > SPACE_WAITS
                       and {"TABLESTORE_NO_SPACE", "OSD_FULL"} <= health_codes(bed))
        bed.cluster.client.wait_for_map()
        waiting = add_omap(io, Rows.OBJECTS[0], 0)
        check_refused(regardless)
        time.sleep(2)
        check(not waiting.is_complete(), "omap was written on a full cluster")
        check_equal(osd.pid(), alive, "process of the OSD")
        bed.restart_osd()
        rows.check(io)
        # The second half is removed where space is not scarce any more, and nobody writes then.
        bed.rados(pool, "rm", "--force-full", *Rows.OBJECTS[1:5])
        wait_until_not_full(bed)
        check_equal(result_of(bed, waiting), 0, "result of the write that had to wait")
        bed.rados(pool, "rm", *Rows.OBJECTS[5:])
        wait_until("the space of omap to be back", lambda: used_ratio(osd) < before + 0.2,
                   BACK_SECONDS,
                   explain=lambda: [f"used {used_ratio(osd):.3f}, at first {before:.3f}"])
        bed.restart_osd()
        check_absent(io, Rows.OBJECTS[1:])
        rows.check(io, only=Rows.OBJECTS[0])
        check_data(io, KEPT)
        io.close()
        regardless.close()
    return f"full after {told} MiB, {rows.mib()} MiB in all"


def seen_by_steps(bed: Bed, rows: Rows) -> None:
    """Each ratio is seen in the health report before the next one is there. A store of 1 GiB grows
    by some percent at once when a memtable is flushed, so these are further apart than Ceph's."""
    used = used_ratio(bed.osd)
    ratios = {"nearfull": used + 0.05, "backfillfull": used + 0.2}
    try:
        set_ratios(bed, ratios)
        for state, ratio in ratios.items():
            rows.add_until(lambda: is_told(bed, state, ratio))
            check_equal(full_states(bed, bed.osd), {state}, "state of the OSD")
    finally:
        set_ratios(bed, {"backfillfull": 0.9, "nearfull": 0.85})


def is_told(bed: Bed, state: str, ratio: float) -> bool:
    """Some seconds after it is so; a compaction may take it back until then. What is used is known
    a second late, and to the mon some seconds: not so fast that a state is jumped over."""
    if used_ratio(bed.osd) <= ratio:
        time.sleep(0.25)
        return False
    time.sleep(1)
    return f"OSD_{state.upper()}" in health_codes(bed)


def set_ratios(bed: Bed, ratios: dict[str, float]) -> None:
    for state, ratio in ratios.items():
        bed.cluster.client.mon(f"osd set-{state}-ratio", ratio=ratio)


class Rows:
    """Omap of some objects, added in parts, one object after the other."""

    OBJECTS = [f"omap_{number}" for number in range(8)]

    def __init__(self, bed: Bed, io: rados.Ioctx):
        self._bed = bed
        self._io = io
        self._parts = 0
        for name in self.OBJECTS:
            io.write_full(name, b"")

    def add_until(self, ended: Callable[[], bool]) -> None:
        """Looks after every 4 MiB."""
        while not ended():
            added = [add_omap(self._io, self._object(part), part)
                     for part in range(self._parts, self._parts + 16)]
            for each in added:
                check_equal(result_of(self._bed, each), 0, "result of adding omap")
            self._parts += len(added)

    def mib(self) -> int:
        return self._parts * KEYS * VALUE_BYTES // MIB

    def check(self, io: rados.Ioctx, only: str = "") -> None:
        for part in range(self._parts):
            if only in ("", self._object(part)):
                check_omap(io, self._object(part), part)

    def _object(self, part: int) -> str:
        return self.OBJECTS[part % len(self.OBJECTS)]
