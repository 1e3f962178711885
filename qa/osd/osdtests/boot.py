"""The OSD as the mon sees it: its first boot, its metadata, its numbers."""
from __future__ import annotations

import rados

from cephcluster.wait import wait_until

from .bed import Bed, check, check_bytes, check_equal, test

BENCH_SECONDS = 60
DF_SECONDS = 60
COMPACTION_SECONDS = 120


@test()
def first_boot_benchmark_succeeds(bed: Bed) -> str:
    """mclock's own benchmark, which the OSD runs when it boots for the first
    time; the mon keeps the result."""
    log = bed.cluster.layout.log(bed.osd.name)
    check("osd bench err" not in log.read_text(errors="replace"),
          f"the benchmark failed, see {bed.cluster.layout.on_host(log)}")
    if bed.store == "memstore":
        return "memstore is exempt"

    def kept() -> float:
        return max((float(entry["value"]) for entry in bed.cluster.client.mon("config dump")
                    if entry["name"].startswith("osd_mclock_max_capacity_iops_")), default=0)

    iops = wait_until("the mon to have the result of the OSD's benchmark", kept, BENCH_SECONDS,
                      explain=bed.osd.last_lines)
    return f"{iops:.0f} IOPS"


@test()
def metadata_names_the_store(bed: Bed) -> str:
    metadata = bed.cluster.client.mon("osd metadata", id=0)
    check_equal(metadata["osd_objectstore"], bed.store, "osd_objectstore in 'osd metadata'")
    check(metadata.get("rotational") in ("0", "1"), "'osd metadata' does not say rotational")
    return f"rotational {metadata['rotational']}, devices '{metadata.get('devices', '')}'"


@test()
def df_shows_what_is_stored(bed: Bed) -> str:
    sizes = [1, 4096, 4097, 100_000, 1_000_003] * 8
    with bed.io() as io:
        for number, size in enumerate(sizes):
            io.write_full(f"object_{number}", bytes([number % 256 or 1]) * size)
        pool = io.get_pool_id()

        def shown(objects: int, low: int, high: int) -> dict[str, int] | None:
            for each in bed.cluster.client.mon("df", detail="detail")["pools"]:
                stats = each["stats"]
                if each["id"] == pool and stats["objects"] == objects \
                        and low <= stats["stored"] <= high:
                    return stats
            return None

        # A store may count whole blocks of 4 KiB.
        total, blocks = sum(sizes), 4096 * len(sizes)
        stats = wait_until(f"'ceph df' to show {len(sizes)} objects of {total} bytes",
                           lambda: shown(len(sizes), total, total + blocks), DF_SECONDS,
                           explain=lambda: [str(bed.cluster.client.mon("df")["pools"])])
        check(stats["bytes_used"] >= stats["stored"] or bed.store != "tablestore",
              f"'ceph df' shows {stats['bytes_used']} used for {stats['stored']} stored")
        for number in range(len(sizes)):
            io.remove_object(f"object_{number}")
        wait_until("'ceph df' to show an empty pool", lambda: shown(0, 0, 0), DF_SECONDS,
                   explain=lambda: [str(bed.cluster.client.mon("df")["pools"])])
    return f"{stats['stored']} stored, {stats['bytes_used']} used, for {total} written"


@test(stores=("tablestore",))
def an_osd_that_is_stopped_tells_its_store(bed: Bed) -> None:
    """It ends without a umount, and the store vouches for its last commits before that."""
    log = bed.cluster.layout.log(bed.osd.name)
    before = len(log.read_bytes())
    bed.osd.stop()
    check(b"prepare_for_fast_shutdown" in log.read_bytes()[before:], "the store was not told")
    bed.cluster.restart_killed(bed.osd)
    bed.cluster.recovered()


@test(stores=("tablestore",))
def nearly_empty_containers_are_emptied(bed: Bed) -> str:
    """Most objects are removed, and what is left, clones included, is moved out of containers."""
    count, kept, size = 320, 8, 1 << 20
    contents = {f"object_{number}": number.to_bytes(2, "big") * (size // 2)
                for number in range(count)}
    with bed.io() as io:
        for name, data in contents.items():
            io.write_full(name, data)
        for name in list(contents):
            if int(name.removeprefix("object_")) % kept:
                io.remove_object(name)
                del contents[name]
        io.create_snap("before")
        heads = {name: b"changed" * 1000 + data[7000:] for name, data in contents.items()}
        for name in heads:
            io.write(name, b"changed" * 1000)
        bed.osd.ask("tablestore compact containers", max_live_percent=50)
        status = wait_until("the compaction to end", lambda: (
            lambda now: now if not now["running"] else None)(
                bed.osd.ask("tablestore compact status")), COMPACTION_SECONDS)
        check(status["containers_emptied"] > 0, f"no container is empty: {status}")
        check_equal(status["left_bytes"], 0, f"bytes left, {status}")
        for _ in range(2):
            for name, data in heads.items():
                check_bytes(io.read(name, size + 1), data, name)
            io.set_read(io.lookup_snap("before").snap_id)
            for name, data in contents.items():
                check_bytes(io.read(name, size + 1), data, f"{name} before")
            io.set_read(rados.LIBRADOS_SNAP_HEAD)
            bed.restart_osd()
        io.remove_snap("before")
    return f"{status['containers_emptied']} containers, {status['moved_bytes']} bytes moved"
