"""Rows of omap, of extent maps and of placement groups' logs rot below an OSD: what its clients,
its replicas and its next start make of the store's error."""
from __future__ import annotations

import json
import os
import secrets
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import rados
import rbd

from cephcluster.daemons import Daemon
from cephcluster.errors import ClusterError
from cephcluster.scrub import deep_scrub
from cephcluster.wait import wait_until

from .bed import Bed, check, check_bytes, check_equal, test
from .damage import (damage_rows, find_damage, group_of, repair, short_logs,
                     wait_for_state)
from .decay import Place, check_only_shards_of, make_whole, places_in_table, processes
from .fullness import result_of
from .tools import fresh, tool

KEYS = 60
VALUE_BYTES = 200       # so that an object's keys are several blocks of the table
MIB = 1 << 20
END_SECONDS = 120
MARK_CHARS = 24
OMAP_FILE = b"nameomap"     # the name of the column family, among the properties of a table file
COUNTER = "key_30_count"


def keys_of(io: rados.Ioctx, name: str) -> dict[str, bytes]:
    """Writes them. The counter of class numops lies beside the value of key_30."""
    values = {f"key_{number:02}": os.urandom(VALUE_BYTES) for number in range(KEYS)}
    with rados.WriteOpCtx() as operation:
        io.set_omap(operation, (*values, COUNTER), (*values.values(), b"41"))
        io.operate_write_op(operation, name)
    return values


def read_by_keys(io: rados.Ioctx, name: str, flag: int = 0) -> dict[str, bytes]:
    with rados.ReadOpCtx() as operation:
        values, _ = io.get_omap_vals_by_keys(operation, tuple(f"key_{number:02}"
                                                              for number in range(KEYS)))
        io.operate_read_op(operation, name, flag)
        return dict(values)


def read_all(io: rados.Ioctx, name: str) -> dict[str, bytes]:
    with rados.ReadOpCtx() as operation:
        values, _ = io.get_omap_vals(operation, "", "", 2 * KEYS)
        io.operate_read_op(operation, name)
        found = dict(values)
    check_equal(found.pop(COUNTER, None), b"41", f"the counter of {name}")
    return found


def check_names(io: rados.Ioctx, name: str) -> None:
    with rados.ReadOpCtx() as operation:
        keys, _ = io.get_omap_keys(operation, "", 2 * KEYS)
        io.operate_read_op(operation, name)
        check_equal([key for key, _ in keys],
                    sorted([f"key_{number:02}" for number in range(KEYS)] + [COUNTER]),
                    f"keys of {name}")


def check_compared(io: rados.Ioctx, name: str, value: bytes) -> None:
    with rados.WriteOpCtx() as operation:
        operation.omap_cmp("key_30", value)
        io.set_omap(operation, ("compared",), (b"yes",))
        io.operate_write_op(operation, name)


def add_one(io: rados.Ioctx, name: str) -> rados.Completion:
    """A class that reads a key, and takes what it gets nothing of for 0."""
    words = [COUNTER.encode(), b"1"]
    return io.aio_execute(name, "numops", "add",
                          b"".join(struct.pack("<I", len(word)) + word for word in words))


def around_the_counter(values: dict[str, bytes]) -> list[bytes]:
    """It is in the block of the one or of the other."""
    return [values["key_30"], values["key_31"]]


def check_done(bed: Bed, *completions: rados.Completion) -> None:
    for completion in completions:
        check_equal(result_of(bed, completion), 0, "result of an operation")


def counted(io: rados.Ioctx, name: str) -> bytes:
    with rados.ReadOpCtx() as operation:
        values, _ = io.get_omap_vals_by_keys(operation, (COUNTER,))
        io.operate_read_op(operation, name)
        return dict(values)[COUNTER]


def rot_below(bed: Bed, osd: Daemon, *values: bytes) -> None:
    """The OSD starts again, and cannot read the blocks of its table that have these."""
    osd.ask("tablestore checkpoint")
    osd.kill()
    places = [place for value in values for place in places_in_table(bed, osd, value)]
    for place in places:
        place.flip()
    bed.cluster.restart_killed(osd)
    bed.cluster.recovered()


@test(osds=3, stores=("tablestore",))
def omap_that_the_primary_cannot_read_comes_from_a_replica(bed: Bed) -> str:
    """By whatever it is asked for: as the data of an object does."""
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        header = secrets.token_urlsafe(VALUE_BYTES)

        def check_header(name: str) -> None:
            bed.rados(pool, "getomapheader", name, fresh(bed, "header"))
            check_bytes(bed.file("header").read_bytes(), header.encode(), f"header of {name}")

        def check_copy(name: str) -> None:
            bed.rados(pool, "cp", name, "copy")
            check_equal(read_all(io, "copy"), contents[name], "omap of the copy")

        ways: dict[str, Callable[[str], object]] = {
            "by keys": lambda name: check_equal(read_by_keys(io, name), contents[name], name),
            "all": lambda name: check_equal(read_all(io, name), contents[name], name),
            "names": lambda name: check_names(io, name),
            "compared": lambda name: check_compared(io, name, contents[name]["key_30"]),
            "counted": lambda name: check_done(bed, add_one(io, name)),
            "header": check_header,
            "copied": check_copy,
        }
        contents = {name: keys_of(io, name) for name in ways}
        bed.rados(pool, "setomapheader", "header", header)
        primary = bed.cluster.osds[group_of(bed, io)["acting"][0]]
        rot_below(bed, primary, header[:MARK_CHARS].encode(),
                  *around_the_counter(contents["counted"]),
                  *(contents[name]["key_30"] for name in ways if name not in ("header", "counted")))
        check_equal(group_of(bed, io)["acting_primary"], int(primary.ident), "the primary")
        alive = processes(bed)
        for name, check_way in ways.items():
            check_way(name)
        check_equal(counted(io, "counted"), b"42", "the counter")
        bed.cluster.wait_clean()
        deep_scrub(bed.cluster)
        for name in contents:
            check_equal(read_by_keys(io, name), contents[name], f"omap of {name} at the end")
        check_equal(processes(bed), alive, "processes of the OSDs")
        io.close()
        make_whole(bed, primary)
    return f"{len(ways)} ways"


def waiting_for_clean(osd: Daemon) -> int:
    return sum("waiting for clean to repair" in str(operation)
               for operation in osd.ask("dump_ops_in_flight")["ops"])


@test(osds=3, stores=("tablestore",))
def nothing_passes_a_write_that_waits_for_omap_to_be_repaired(bed: Bed) -> None:
    """As it does while an OSD is away: what the same client sends behind it comes behind it."""
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        values = keys_of(io, "object")
        primary, _, away = (bed.cluster.osds[number] for number in group_of(bed, io)["acting"])
        rot_below(bed, primary, *around_the_counter(values))
        away.stop()
        bed.cluster.client.mon("osd down", ids=[away.ident])
        wait_for_state(bed, io, lambda state: "undersized" in state and "active" in state)
        first = add_one(io, "object")
        wait_until("the class to wait for the repair", lambda: waiting_for_clean(primary) == 1,
                   END_SECONDS)
        with rados.WriteOpCtx() as operation:
            io.set_omap(operation, (COUNTER,), (b"7",))
            second = io.operate_aio_write_op(operation, "object")
            wait_until("the write behind it to wait, too", lambda: waiting_for_clean(primary) == 2,
                       END_SECONDS)
            bed.cluster.restart_killed(away)
            check_done(bed, first, second)
        check_equal(counted(io, "object"), b"7", "the counter")
        bed.cluster.recovered()
        deep_scrub(bed.cluster)
        check_equal(read_by_keys(io, "object"), values, "the rest of the omap")
        io.close()
        make_whole(bed, primary)


@test(osds=3, stores=("tablestore",))
def deep_scrub_finds_rotten_omap_and_repair_mends_it(bed: Bed) -> None:
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        contents = {name: keys_of(io, name) for name in ("of the primary", "of a replica")}
        acting = [bed.cluster.osds[number] for number in group_of(bed, io)["acting"]]
        rot_below(bed, acting[0], contents["of the primary"]["key_30"])
        rot_below(bed, acting[1], contents["of a replica"]["key_30"])
        alive = processes(bed)
        find_damage(bed)
        check_equal(blamed(bed, pool, io), {"of the primary": {acting[0].ident},
                                            "of a replica": {acting[1].ident}}, "blamed OSDs")
        repair(bed, io)
        bed.cluster.recovered()
        deep_scrub(bed.cluster)
        for name in contents:
            check_equal(read_all(io, name), contents[name], f"omap of {name}")
        check_equal(processes(bed), alive, "processes of the OSDs")
        io.close()
        for osd in acting[:2]:
            make_whole(bed, osd)


@test(osds=3, stores=("tablestore",))
def a_replica_that_is_read_from_sends_clients_to_the_primary(bed: Bed) -> str:
    """Where it cannot read omap. Which OSD a client asks is chance: all but the primary are
    rotten."""
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        values = keys_of(io, "object")
        acting = [bed.cluster.osds[number] for number in group_of(bed, io)["acting"]]
        for osd in acting[1:]:
            rot_below(bed, osd, values["key_30"])
        alive = processes(bed)
        reads = 40
        before = {osd.name: asked_as_replica(osd) for osd in acting}
        for _ in range(reads):
            check_equal(read_by_keys(io, "object", rados.LIBRADOS_OPERATION_BALANCE_READS), values,
                        "what is read from any OSD")
        asked = {osd.name: asked_as_replica(osd) - before[osd.name] for osd in acting}
        check(any(asked[osd.name] for osd in acting[1:]), f"no replica was asked: {asked}")
        check_equal(processes(bed), alive, "processes of the OSDs")
        find_damage(bed)
        check_equal(blamed(bed, pool, io), {"object": {osd.ident for osd in acting[1:]}},
                    "blamed OSDs")
        repair(bed, io)
        deep_scrub(bed.cluster)
        io.close()
        for osd in acting[1:]:
            make_whole(bed, osd)
    return f"{asked}"


def asked_as_replica(osd: Daemon) -> int:
    """Counted where it begins to read."""
    return int(osd.ask("perf dump")["osd"]["replica_read_served"])


def blamed(bed: Bed, pool: str, io: rados.Ioctx) -> dict[str, set[str]]:
    """By the scrub of the pool's only placement group."""
    pgid = str(group_of(bed, io)["pgid"])
    found = json.loads(bed.rados(pool, "list-inconsistent-obj", pgid))["inconsistents"]
    return {each["object"]["name"]: {str(shard["osd"]) for shard in each["shards"]
                                     if shard["errors"]} for each in found}


def damaged_shards(bed: Bed, osd: Daemon, *names: str) -> None:
    osd.stop()
    for name in names:
        damage_rows(bed, osd, name, "shards")
    bed.cluster.restart_killed(osd)
    bed.cluster.recovered()


@test(osds=3, stores=("tablestore",))
def an_extent_map_that_cannot_be_read_is_not_pushed_as_zeros(bed: Bed) -> None:
    """The primary, whose map it is, has to give the object to an OSD that comes in new."""
    with bed.pool(groups=1, size=2) as pool:
        io = bed.cluster.client.open_pool(pool)
        contents = {name: os.urandom(MIB) for name in ("damaged", "with a clone", "sound")}
        for name, data in contents.items():
            io.write_full(name, data)
        io.create_snap("before")
        old = contents["with a clone"]
        contents["with a clone"] = os.urandom(4096) + old[4096:]
        io.write_full("with a clone", contents["with a clone"])
        acting = [bed.cluster.osds[number] for number in group_of(bed, io)["acting"]]
        damaged_shards(bed, acting[0], "damaged", "with a clone")
        check_equal(group_of(bed, io)["acting_primary"], int(acting[0].ident), "the primary")
        alive = processes(bed)
        bed.cluster.client.mon("osd pool set", pool=pool, var="size", val="3")
        wait_until("three OSDs to have the group",
                   lambda: len(group_of(bed, io)["acting"]) == 3, END_SECONDS)
        bed.cluster.wait_clean()
        for name, data in contents.items():
            check_bytes(io.read(name, MIB + 1), data, name)
        bed.rados(pool, "-s", "before", "get", "with a clone", fresh(bed, "snap"))
        check_bytes(bed.file("snap").read_bytes(), old, "the clone")
        deep_scrub(bed.cluster)
        check_equal(processes(bed), alive, "processes of the OSDs")
        pgid = str(group_of(bed, io)["pgid"])
        io.close()
        for osd in bed.cluster.osds:
            osd.stop()
            for name in ("damaged", "sound"):       # the tool takes no name that has a clone, too
                data = contents[name]
                target = fresh(bed, "object")
                tool(bed, osd, "--pgid", pgid, name, "get-bytes", target)
                check_bytes(target.read_bytes(), data, f"'{name}' of {osd.name}")
            bed.cluster.restart_killed(osd)
            bed.cluster.recovered()


@dataclass(frozen=True)
class Snapped:
    """An object with a snapshot of which an OSD cannot read the head."""

    bed: Bed
    pool: str
    io: rados.Ioctx
    old: bytes
    new: bytes

    def check(self) -> None:
        check_bytes(self.io.read("object", len(self.new) + 1), self.new, "the head")
        snap = fresh(self.bed, "snap")
        self.bed.rados(self.pool, "-s", "before", "get", "object", snap)
        check_bytes(snap.read_bytes(), self.old, "the clone")


@contextmanager
def snapped_with_a_rotten_head(bed: Bed, pool: str) -> Iterator[Snapped]:
    """On the primary of a pool of two replicas, which a third one joins then."""
    io = bed.cluster.client.open_pool(pool)
    snapped = Snapped(bed, pool, io, os.urandom(300_000), os.urandom(200_000))
    io.write_full("object", snapped.old)
    io.create_snap("before")
    io.write_full("object", snapped.new)
    for number in range(40):        # short logs do not go back behind these
        io.write_full(f"other_{number}", b"other")
    primary = bed.cluster.osds[group_of(bed, io)["acting"][0]]
    primary.stop()
    damage_rows(bed, primary, "object", "head")
    bed.cluster.restart_killed(primary)
    bed.cluster.recovered()
    check_equal(group_of(bed, io)["acting_primary"], int(primary.ident), "the primary")
    bed.cluster.client.mon("osd pool set", pool=pool, var="size", val="3")
    yield snapped
    io.close()
    make_whole(bed, primary)


@test(osds=3, stores=("tablestore",))
def a_clone_whose_head_cannot_be_read_is_recovered_behind_it(bed: Bed) -> None:
    """What a clone has is in its head: without that, it was pushed as zeros."""
    with bed.pool(groups=1, size=2) as pool, snapped_with_a_rotten_head(bed, pool) as snapped:
        wait_until("three OSDs to have the group",
                   lambda: len(group_of(bed, snapped.io)["acting"]) == 3, END_SECONDS)
        bed.cluster.wait_clean()
        snapped.check()
        deep_scrub(bed.cluster)


@test(osds=3, stores=("tablestore",))
def a_backfill_stops_at_a_clone_whose_head_cannot_be_read(bed: Bed) -> None:
    """Until an OSD leads it that can read the head. The clone was backfilled as zeros."""
    with short_logs(bed), bed.pool(groups=1, size=2) as pool, \
            snapped_with_a_rotten_head(bed, pool) as snapped:
        io = snapped.io
        group = group_of(bed, io)
        primary, whole = (bed.cluster.osds[number] for number in group["acting"][:2])
        wait_for_state(bed, io, lambda state: "backfill_unfound" in state)
        bed.cluster.check_daemons()
        primary.stop()
        wait_for_state(bed, io, lambda state: "backfill" not in state and "active" in state)
        check_equal(group_of(bed, io)["acting_primary"], int(whole.ident), "the primary meanwhile")
        snapped.check()
        bed.cluster.restart_killed(primary)
        bed.cluster.recovered()
        find_damage(bed)
        check_only_shards_of(bed, pool, str(group["pgid"]), primary)
        repair(bed, io)
        deep_scrub(bed.cluster)
        snapped.check()


@test(osds=3, stores=("tablestore",))
def an_only_copy_that_cannot_be_read_is_unfound(bed: Bed) -> None:
    """It is not given to other OSDs as zeros."""
    with bed.pool(groups=1, size=1) as pool:
        io = bed.cluster.client.open_pool(pool)
        io.write_full("damaged", os.urandom(MIB))
        group = group_of(bed, io)
        origin = bed.cluster.osds[group["acting"][0]]
        damaged_shards(bed, origin, "damaged")
        alive = processes(bed)
        bed.cluster.client.mon("osd pool set", pool=pool, var="size", val="2")
        wait_for_state(bed, io, lambda state: "unfound" in state)
        check_equal(processes(bed), alive, "processes of the OSDs")
        io.close()


@test(osds=3, stores=("tablestore",))
def an_image_whose_extent_maps_cannot_be_read_comes_from_a_replica(bed: Bed) -> None:
    """librbd asks what is mapped before it reads."""
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        rbd.RBD().create(io, "image", 4 * MIB)
        data = os.urandom(4 * MIB)
        with rbd.Image(io, "image") as image:
            image.write(data, 0)
            name = f"{image.block_name_prefix()}.{0:016x}"
        primary = bed.cluster.osds[group_of(bed, io)["acting"][0]]
        damaged_shards(bed, primary, name)
        check_equal(group_of(bed, io)["acting_primary"], int(primary.ident), "the primary")
        alive = processes(bed)
        with rbd.Image(io, "image") as image:
            check_bytes(image.read(0, 4 * MIB), data, "the image")
        bed.cluster.wait_clean()
        deep_scrub(bed.cluster)
        check_equal(processes(bed), alive, "processes of the OSDs")
        io.close()


def rot_in_group(bed: Bed, osd: Daemon, entries: list[str], behind: bytes = b"") -> None:
    """In a placement group's log, where it tells of a change of one of these objects; or behind
    that, where these bytes are next. (Blocks are compressed: most of what is looked for is
    found.)"""
    tables = {file: file.read_bytes()
              for file in (bed.cluster.layout.data(osd.name) / "table").glob("*.sst")}
    for entry in entries:
        places = [Place(file, table.find(behind, at)) for file, table in tables.items()
                  if OMAP_FILE in table and (at := table.find(entry.encode())) >= 0]
        if places and all(place.offset >= 0 for place in places):
            break
    else:
        raise ClusterError(f"none of {entries} is in a table file of omap",
                           details=[f"{file.name}: {OMAP_FILE in table}, {len(table)} bytes"
                                    for file, table in tables.items()])
    for place in places:
        place.flip()


def ends_with(bed: Bed, osd: Daemon, words: tuple[str, ...]) -> None:
    """The OSD ends when it is started, and says these. Its report of that is no other's."""
    reports = bed.cluster.layout.root / "log" / "crash"
    before = set(reports.glob("*"))
    log = bed.cluster.layout.log(osd.name)
    read = log.stat().st_size
    osd.start()
    osd.wait_gone(END_SECONDS)
    said = log.read_bytes()[read:].decode(errors="replace")
    for line in said.splitlines():
        if all(word in line for word in words):
            break
    else:
        raise ClusterError(f"no line of the log has {words}", details=osd.last_lines())
    for report in set(reports.glob("*")) - before:
        shutil.rmtree(report)


def group_is_refused(bed: Bed, what: str, behind: bytes = b"") -> None:
    """The OSD says which group it is and what to do; done so, the group comes back from others."""
    with bed.pool(groups=1, size=3) as pool:
        io = bed.cluster.client.open_pool(pool)
        contents = {f"object_{number}_{secrets.token_urlsafe(MARK_CHARS)}": os.urandom(5000)
                    for number in range(80)}
        for name, data in contents.items():
            io.write_full(name, data)
        group = group_of(bed, io)
        pgid, victim = str(group["pgid"]), bed.cluster.osds[group["acting"][0]]
        victim.ask("tablestore checkpoint")
        victim.kill()
        marks = [name[-MARK_CHARS:] for name in contents]
        rot_in_group(bed, victim, marks[30:50], behind)
        ends_with(bed, victim, (f"the {what} of placement group {pgid} cannot be read",
                                "--op remove"))
        tool(bed, victim, "--op", "remove", "--force", "--pgid", pgid)
        bed.cluster.restart_killed(victim)
        bed.cluster.recovered()
        for name, data in contents.items():
            check_bytes(io.read(name, 5001), data, name)
        deep_scrub(bed.cluster)
        io.close()
        make_whole(bed, victim)


@test(osds=3, stores=("tablestore",))
def a_rotten_log_of_a_placement_group_is_not_taken_for_a_short_one(bed: Bed) -> None:
    group_is_refused(bed, "log")


@test(osds=3, stores=("tablestore",))
def rotten_info_of_a_placement_group_is_named(bed: Bed) -> None:
    group_is_refused(bed, "info", b"epoch")
