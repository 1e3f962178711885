"""Rows of objects that are damaged on one OSD's disk: scrub finds them, repair brings them back."""
from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import rados

from cephcluster.daemons import Daemon
from cephcluster.errors import ClusterError
from cephcluster.scrub import deep_scrub
from cephcluster.tool import COMMAND_SECONDS, run_tool
from cephcluster.wait import wait_until

from .bed import Bed, check, check_bytes, check_equal, test
from .decay import health_codes, make_whole, places_in_table, wait_for_lost_objects
from .tools import fresh, listed, tool

REPAIR_SECONDS = 120


def damage_rows(bed: Bed, osd: Daemon, name: str, rows: str = "onodes") -> None:
    """Of an object: its "onodes" (all, or only the "head"'s or those of its "snapshots"), or the
    "shards" of its head."""
    run_tool("ceph_test_tablestore", "--tablestore-test-child", "damage-rows",
             bed.cluster.layout.data(osd.name),
             environment={"TABLESTORE_TEST_OBJECT": name, "TABLESTORE_TEST_ROWS": rows})


def restart_damaged(bed: Bed, osd: Daemon, *names: str, snapshots_of: tuple[str, ...] = ()) -> None:
    """`osd` cannot read these objects any more, nor the snapshots of those."""
    osd.stop()
    for name in names:
        damage_rows(bed, osd, name)
    for name in snapshots_of:
        damage_rows(bed, osd, name, "snapshots")
    bed.cluster.restart_killed(osd)
    bed.cluster.recovered()


def write(io: rados.Ioctx, name: str, size: int) -> bytes:
    data = os.urandom(size)
    io.write_full(name, data)
    io.set_xattr(name, "attribute", name.encode())
    with rados.WriteOpCtx() as operation:
        io.set_omap(operation, ("key",), (name.encode(),))
        io.operate_write_op(operation, name)
    return data


def check_written(io: rados.Ioctx, name: str, data: bytes) -> None:
    check_bytes(io.read(name, len(data) + 1), data, name)
    check_equal(io.get_xattr(name, "attribute"), name.encode(), f"attribute of {name}")
    with rados.ReadOpCtx() as operation:
        values, _ = io.get_omap_vals_by_keys(operation, ("key",))
        io.operate_read_op(operation, name)
        check_equal(dict(values), {"key": name.encode()}, f"omap of {name}")


def group_of(bed: Bed, io: rados.Ioctx) -> dict[str, object]:
    """The only one of the pool."""
    prefix = f"{io.get_pool_id()}."
    return next(group for group in bed.cluster.placement_groups()
                if str(group["pgid"]).startswith(prefix))


def find_damage(bed: Bed) -> None:
    try:
        deep_scrub(bed.cluster)
    except ClusterError as error:
        check("deep scrub found damage" in str(error), str(error))
        return
    raise ClusterError("deep scrub did not find the damage")


def repair(bed: Bed, io: rados.Ioctx) -> None:
    pgid = str(group_of(bed, io)["pgid"])

    def mended() -> bool:
        group = group_of(bed, io)
        bed.cluster.check_daemons()
        return "inconsistent" not in str(group["state"]) \
            and not group["stat_sum"]["num_scrub_errors"]

    bed.cluster.client.mgr("pg repair", pgid=pgid)
    wait_until(f"{pgid} to be repaired", mended, REPAIR_SECONDS,
               explain=lambda: [str(group_of(bed, io)["state"])])


@test(osds=3)
def pg_repair_mends_damaged_onodes(bed: Bed) -> str:
    """On the primary and on a replica, in one push and in several."""
    sizes = {"on the primary": 123_457, "on a replica": 70_001, "large": 20 << 20, "whole": 5000}
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        contents = {name: write(io, name, size) for name, size in sizes.items()}
        acting = [bed.cluster.osds[number] for number in group_of(bed, io)["acting"]]
        damaged = {"on the primary": acting[0], "on a replica": acting[1], "large": acting[2]}
        for name, osd in damaged.items():
            restart_damaged(bed, osd, name)
        processes = [osd.pid() for osd in acting]
        find_damage(bed)
        repair(bed, io)
        bed.cluster.recovered()
        deep_scrub(bed.cluster)
        check_equal([osd.pid() for osd in acting], processes, "processes of the OSDs")
        for name, data in contents.items():
            check_written(io, name, data)
        pgid = str(group_of(bed, io)["pgid"])
        io.close()
        for name, osd in damaged.items():
            osd.stop()
            tool(bed, osd, "--op", "repair")
            tool(bed, osd, "--op", "fsck-deep")
            target = fresh(bed, "object")
            tool(bed, osd, "--pgid", pgid, name, "get-bytes", target)
            check_bytes(target.read_bytes(), contents[name], f"'{name}' of {osd.name}")
            bed.cluster.restart_killed(osd)
            bed.cluster.recovered()
    return f"{len(damaged)} objects"


@test(osds=3)
def objectstore_tool_repairs_before_pg_repair(bed: Bed) -> None:
    """The tool gives up what the damaged row had; the object stays an error until it comes back."""
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        data = write(io, "object", 300_000)
        replica = bed.cluster.osds[group_of(bed, io)["acting"][1]]
        replica.stop()
        damage_rows(bed, replica, "object")
        for operation in ("repair", "fsck"):
            try:
                tool(bed, replica, "--op", operation)
            except ClusterError:
                continue
            raise ClusterError(f"--op {operation} says that nothing is wrong with a lost object")
        bed.cluster.restart_killed(replica)
        bed.cluster.recovered()
        find_damage(bed)
        repair(bed, io)
        deep_scrub(bed.cluster)
        check_written(io, "object", data)
        io.close()
        replica.stop()
        tool(bed, replica, "--op", "fsck-deep")
        bed.cluster.restart_killed(replica)
        bed.cluster.recovered()


@test(osds=3)
def clients_get_eio_of_what_the_primary_cannot_read(bed: Bed) -> None:
    """A write to a part of it must not make a new object of it, here or on the replicas."""
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        data = write(io, "object", 300_000)
        primary = bed.cluster.osds[group_of(bed, io)["acting"][0]]
        restart_damaged(bed, primary, "object")
        check_equal(group_of(bed, io)["acting_primary"], int(primary.ident), "the primary")
        check_eio(lambda: io.read("object", 100), "read")
        check_eio(lambda: io.write("object", b"part", 4096), "write")
        find_damage(bed)
        repair(bed, io)
        deep_scrub(bed.cluster)
        check_written(io, "object", data)
        io.write("object", b"part", 4096)
        check_bytes(io.read("object", 300_001), data[:4096] + b"part" + data[4100:], "after repair")
        io.close()


@test(osds=3)
def a_snapshot_that_the_primary_cannot_read_is_not_gone(bed: Bed) -> None:
    """ENOENT of it is zeros to librbd, and a rollback to it would remove the head everywhere."""
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        for name in ("head", "clone"):
            write(io, name, 300_000)
        io.create_snap("before")
        heads = {name: write(io, name, 200_000) for name in ("head", "clone")}
        primary = bed.cluster.osds[group_of(bed, io)["acting"][0]]
        restart_damaged(bed, primary, "head", snapshots_of=("clone",))
        check_equal(group_of(bed, io)["acting_primary"], int(primary.ident), "the primary")
        process = primary.pid()
        for name in heads:
            check_refused(bed, pool, "-s", "before", "get", name, bed.file("snap"))
            check_refused(bed, pool, "rollback", name, "before")
        check_written(io, "clone", heads["clone"])
        check_equal(primary.pid(), process, "process of the primary")
        find_damage(bed)
        repair(bed, io)
        deep_scrub(bed.cluster)
        for name, data in heads.items():
            check_written(io, name, data)
        io.close()


@test(osds=3, stores=("tablestore",))
def a_repair_of_the_primarys_table_makes_no_object_absent(bed: Bed) -> str:
    """A block of onodes rots, and the tool gives it up. Before any scrub, a client gets the data or
    an error of what was in it, and no write makes a new object of a part."""
    name = "object_7"
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        contents = {f"object_{number}": write(io, f"object_{number}", 20_000)
                    for number in range(60)}
        mark = os.urandom(200)
        io.set_xattr(name, "mark", mark)
        group = group_of(bed, io)
        primary = bed.cluster.osds[group["acting"][0]]
        primary.ask("tablestore checkpoint")
        primary.kill()
        for place in places_in_table(bed, primary, mark):
            place.flip()
        repair_by_tool(bed, primary)
        check_equal(losses(bed, primary), (1, ["TABLESTORE_OBJECTS_LOST"]), "what fsck says")
        bed.cluster.restart_killed(primary)
        bed.cluster.recovered()
        check_equal(group_of(bed, io)["acting_primary"], int(primary.ident), "the primary")
        alive = primary.pid()
        lost = [each for each, data in contents.items() if not is_read(io, each, data)]
        check(name in lost and len(lost) < len(contents), f"errors of {lost}")
        check_eio(lambda: io.write(name, b"part", 4096), "write")
        check_eio(lambda: io.stat(name), "stat")
        check_refused(bed, pool, "ls")
        wait_for_lost_objects(bed, True)
        find_damage(bed)
        repair(bed, io)
        deep_scrub(bed.cluster)
        for each, data in contents.items():
            check_written(io, each, data)
        primary.ask("tablestore settle lost objects")
        wait_for_lost_objects(bed, False)
        check_equal(primary.pid(), alive, "process of the primary")
        io.write(name, b"part", 4096)
        primary.kill()
        bed.cluster.restart_killed(primary)
        bed.cluster.recovered()
        check_bytes(io.read(name, 20_001),
                    contents[name][:4096] + b"part" + contents[name][4100:], "after all")
        check("TABLESTORE_OBJECTS_LOST" not in health_codes(bed), "the loss comes back")
        io.close()
        primary.stop()
        tool(bed, primary, "--op", "repair")
        tool(bed, primary, "--op", "fsck-deep")
        bed.cluster.restart_killed(primary)
        bed.cluster.recovered()
    return f"{len(lost)} objects"


@test(osds=3, stores=("tablestore",))
def a_primary_that_cannot_list_all_stops_its_backfill(bed: Bed) -> str:
    """What it lacks in its list would be taken for removed. Another OSD that has all goes on with
    the backfill while this one is stopped, and mends it afterwards."""
    name = "object_7"
    with short_logs(bed), bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        contents = {f"object_{number}": write(io, f"object_{number}", 20_000)
                    for number in range(60)}
        mark = os.urandom(200)
        io.set_xattr(name, "mark", mark)
        group = group_of(bed, io)
        pgid = str(group["pgid"])
        primary, whole, target = (bed.cluster.osds[number] for number in group["acting"])
        primary.ask("tablestore checkpoint")
        target.stop()
        tool(bed, target, "--op", "remove", "--force", "--pgid", pgid)
        primary.kill()
        for place in places_in_table(bed, primary, mark):
            place.flip()
        bed.cluster.restart_killed(primary)
        bed.cluster.restart_killed(target)
        wait_for_state(bed, io, lambda state: "backfill_unfound" in state)
        alive = [whole.pid(), target.pid()]
        bed.cluster.check_daemons()
        primary.stop()
        wait_for_state(bed, io, lambda state: "backfill" not in state and "active" in state)
        check_equal(group_of(bed, io)["acting_primary"], int(whole.ident), "the primary meanwhile")
        for each, data in contents.items():
            check_written(io, each, data)
        bed.cluster.restart_killed(primary)
        bed.cluster.recovered()
        find_damage(bed)
        repair(bed, io)
        deep_scrub(bed.cluster)
        for each, data in contents.items():
            check_written(io, each, data)
        check_equal([whole.pid(), target.pid()], alive, "processes of the others")
        io.close()
        make_whole(bed, primary)
        for osd in (primary, target):
            osd.stop()
            tool(bed, osd, "--op", "repair")
            tool(bed, osd, "--op", "fsck-deep")
            missing = set(contents) - set(listed(bed, osd, pgid))
            check(not missing, f"{osd.name} lacks {sorted(missing)}")
            bed.cluster.restart_killed(osd)
            bed.cluster.recovered()
    return f"{len(contents)} objects"


@contextmanager
def short_logs(bed: Bed) -> Iterator[None]:
    """Whoever lacks more than a few changes is backfilled: their logs do not go back that far."""
    options = {"osd_min_pg_log_entries": "5", "osd_max_pg_log_entries": "10",
               "osd_pg_log_trim_min": "1"}
    for name, value in options.items():
        bed.cluster.client.mon("config set", who="osd", name=name, value=value)
    try:
        yield
    finally:
        for name in options:
            bed.cluster.client.mon("config rm", who="osd", name=name)


def wait_for_state(bed: Bed, io: rados.Ioctx, condition: Callable[[str], bool]) -> None:
    wait_until("the placement group's state to be what it should be",
               lambda: condition(str(group_of(bed, io)["state"])), REPAIR_SECONDS,
               explain=lambda: [str(group_of(bed, io)["state"])])


def losses(bed: Bed, osd: Daemon) -> tuple[int, list[str]]:
    """How the tool's fsck ends, and what it says is lost."""
    said = subprocess.run(["ceph-tablestore-tool", "fsck", "--format", "json", "--path",
                           str(bed.cluster.layout.data(osd.name))],
                          stdout=subprocess.PIPE, timeout=COMMAND_SECONDS, check=False)
    return said.returncode, list(json.loads(said.stdout)["losses"])


def repair_by_tool(bed: Bed, osd: Daemon) -> None:
    """The first repair says what it gives up, as errors; the second has nothing to say."""
    try:
        tool(bed, osd, "--op", "repair")
    except ClusterError:
        tool(bed, osd, "--op", "repair")
        return
    raise ClusterError("--op repair says nothing of what it gives up")


def is_read(io: rados.Ioctx, name: str, data: bytes) -> bool:
    """Or it is an error; nothing else will do."""
    try:
        check_bytes(io.read(name, len(data) + 1), data, name)
        return True
    except rados.Error as error:
        check_equal(abs(error.errno or 0), errno.EIO, f"errno of a read of {name}")
        return False


def check_refused(bed: Bed, pool: str, *arguments: object) -> None:
    try:
        bed.rados(pool, *arguments)
    except ClusterError as error:
        text = "\n".join([str(error), *error.details])
        check("Input/output error" in text, f"{arguments}: {text}")
        return
    raise ClusterError(f"rados {arguments} succeeded")


def check_eio(operation: Callable[[], object], what: str) -> None:
    try:
        operation()
    except rados.Error as error:
        check_equal(abs(error.errno or 0), errno.EIO, f"errno of the {what}")
        return
    raise ClusterError(f"the {what} succeeded")
