"""A disk that decays below an OSD that runs: what is found, what it costs, how it is mended."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import rados

from cephcluster.daemons import Daemon
from cephcluster.errors import ClusterError
from cephcluster.scrub import damaged, deep_scrub, repair, scrubbed_deeply
from cephcluster.tool import run_tool
from cephcluster.wait import wait_until

from .bed import Bed, check, check_bytes, check_equal, test

BLOCK = 4096
OBJECT_BYTES = 100_000
SMALL_BYTES = 1000              # inline: in the table
MOST_ROWS_OF_A_BLOCK = 40
HEALTH_SECONDS = 300
# What a damaged replica raises, and what is gone when it is mended.
DAMAGE_CODES = {"OSD_SCRUB_ERRORS", "PG_DAMAGED"}


@dataclass(frozen=True)
class Place:
    """Where an object's first block lies on an OSD."""

    file: Path
    offset: int

    def flip(self) -> None:
        """Turns some bits of it around, on the disk."""
        with open(self.file, "r+b") as decaying:
            decaying.seek(self.offset + 100)
            rotten = bytes(byte ^ 0xff for byte in decaying.read(8))
            decaying.seek(self.offset + 100)
            decaying.write(rotten)
            decaying.flush()
            os.fsync(decaying.fileno())


def place_of(bed: Bed, osd: Daemon, oid: str) -> Place | None:
    """Nothing while the object is not there."""
    onode = osd.ask("tablestore onode", object_name=oid)
    if not onode:
        return None
    extent = onode["extents"][0]
    containers = bed.cluster.layout.data(osd.name) / "containers"
    file, = containers.glob(f"*/{extent['container']}")
    return Place(file, extent["block"] * BLOCK)


def rot(bed: Bed, osd: Daemon, oid: str) -> Place:
    place = place_of(bed, osd, oid)
    if place is None:
        raise ClusterError(f"{osd.name} does not know {oid}")
    place.flip()
    return place


def oid_of(mapped: dict[str, object], name: str) -> str:
    """An object's name as an OSD writes it, with the bits of its hash reversed."""
    pool, _, key = str(mapped["raw_pgid"]).partition(".")
    return f"#{pool}:{int(f'{int(key, 16):032b}'[::-1], 2):08x}:::{name}:head#"


def health_codes(bed: Bed) -> set[str]:
    return set(bed.cluster.client.mon("health")["checks"])


def lasting_health(bed: Bed) -> set[str]:
    """Without what a machine that stood still for a moment leaves there for a day."""
    return health_codes(bed) - {"SLOW_OPS", "TABLESTORE_SLOW_OPS", "TABLESTORE_STALLED_READ"}


def processes(bed: Bed) -> list[int | None]:
    return [osd.pid() for osd in bed.cluster.osds]


def fill(io: rados.Ioctx, count: int = 8, size: int = OBJECT_BYTES) -> dict[str, bytes]:
    contents = {f"object_{number}": os.urandom(size) for number in range(count)}
    for name, data in contents.items():
        io.write_full(name, data)
    return contents


def check_contents(io: rados.Ioctx, contents: dict[str, bytes]) -> None:
    for name, data in contents.items():
        check_bytes(io.read(name, len(data) + 1), data, name)


def check_finding(bed: Bed, pool: str, pgid: str, name: str, osd: Daemon) -> None:
    """Scrub blames this object, on this OSD alone, and says that it cannot be read."""
    found = json.loads(bed.rados(pool, "list-inconsistent-obj", pgid))["inconsistents"]
    check_equal([each["object"]["name"] for each in found], [name], "inconsistent objects")
    bad = {str(shard["osd"]): shard["errors"] for shard in found[0]["shards"] if shard["errors"]}
    check_equal(bad, {osd.ident: ["read_error"]}, "errors of the shards")


def scrubbed_and_repaired(bed: Bed, name: str, member: int) -> str:
    """The object decays on one of its OSDs, which all run on."""
    with bed.pool() as pool:
        io = bed.cluster.client.open_pool(pool)
        contents = fill(io)
        check_contents(io, contents)    # now the primary may have it in memory
        mapped = bed.cluster.client.mon("osd map", pool=pool, object=name)
        osd = bed.cluster.osds[mapped["acting"][member]]
        oid = oid_of(mapped, name)
        deep_scrub(bed.cluster)
        before, alive = lasting_health(bed), processes(bed)
        place = rot(bed, osd, oid)
        bad = damaged(scrubbed_deeply(bed.cluster))
        check_equal([group["pgid"] for group in bad], [mapped["pgid"]],
                    "groups that deep scrub finds damaged")
        check_finding(bed, pool, mapped["pgid"], name, osd)
        wait_until("the damage to be in the health report",
                   lambda: DAMAGE_CODES <= health_codes(bed), HEALTH_SECONDS)
        repair(bed.cluster, mapped["pgid"])
        wait_until("the health report to be as before", lambda: lasting_health(bed) == before,
                   HEALTH_SECONDS, explain=lambda: sorted(health_codes(bed)))
        deep_scrub(bed.cluster)
        check_contents(io, contents)
        check(place_of(bed, osd, oid) != place, "the object was mended where the disk is rotten")
        check_equal(processes(bed), alive, "processes of the OSDs")
        io.close()
    return f"{name} at {place.offset} of container {place.file.name} of {osd.name}"


@test(osds=3, stores=("tablestore",))
def decay_of_a_replica_is_scrubbed_and_repaired(bed: Bed) -> str:
    return scrubbed_and_repaired(bed, "object_3", member=-1)


@test(osds=3, stores=("tablestore",))
def decay_below_what_is_in_memory_is_scrubbed_and_repaired(bed: Bed) -> str:
    """Scrub looks at the disk, not at what the OSD remembers of it."""
    return scrubbed_and_repaired(bed, "object_4", member=0)


@test(osds=3, stores=("tablestore",))
def decay_of_the_primary_is_read_from_a_replica(bed: Bed) -> str:
    """The client gets the right bytes at once, and the read mends the object."""
    name = "object_5"
    with bed.pool() as pool:
        io = bed.cluster.client.open_pool(pool)
        contents = fill(io)
        mapped = bed.cluster.client.mon("osd map", pool=pool, object=name)
        osd = bed.cluster.osds[mapped["acting_primary"]]
        oid = oid_of(mapped, name)
        osd.kill()
        bed.cluster.restart_killed(osd)     # what it reads next comes from the disk
        bed.cluster.recovered()
        alive = processes(bed)
        place = rot(bed, osd, oid)
        check_contents(io, contents)
        wait_until(f"{name} to be written anew",
                   lambda: place_of(bed, osd, oid) not in (None, place), HEALTH_SECONDS)
        bed.cluster.wait_clean()
        deep_scrub(bed.cluster)
        check_contents(io, contents)
        check(not DAMAGE_CODES & health_codes(bed), "damage is left in the health report")
        check_equal(processes(bed), alive, "processes of the OSDs")
        io.close()
    return f"{name} of {osd.name}"


@test(osds=3, stores=("tablestore",))
def decay_of_a_table_file_costs_the_rows_of_its_block(bed: Bed) -> str:
    """Small objects lie in the table: some of them are found damaged and mended, no OSD ends."""
    with bed.pool() as pool:
        io = bed.cluster.client.open_pool(pool)
        contents = fill(io, count=300, size=SMALL_BYTES)
        osd = bed.cluster.osds[1]
        osd.ask("tablestore checkpoint")
        osd.kill()
        for place in places_in_table(bed, osd, contents["object_7"]):
            place.flip()
        bed.cluster.restart_killed(osd)
        bed.cluster.recovered()
        alive = processes(bed)
        found = set()
        for group in damaged(scrubbed_deeply(bed.cluster)):
            found |= check_only_shards_of(bed, pool, group["pgid"], osd)
        check("object_7" in found and len(found) <= MOST_ROWS_OF_A_BLOCK,
              f"scrub finds {sorted(found)}")
        check_contents(io, contents)
        for group in damaged(bed.cluster.placement_groups()):
            repair(bed.cluster, group["pgid"])
        deep_scrub(bed.cluster)
        check_contents(io, contents)
        check_equal(processes(bed), alive, "processes of the OSDs")
        make_whole(bed, osd)
        check_contents(io, contents)
        io.close()
    return f"{len(found)} of {len(contents)} objects"


def make_whole(bed: Bed, osd: Daemon) -> None:
    """The tool's repair gives up what is rotten in the table, all of which `pg repair` has brought
    back: nothing of it is left for who uses this OSD next."""
    osd.stop()
    words = ("ceph-tablestore-tool", "repair", "--path", bed.cluster.layout.data(osd.name))
    try:
        run_tool(*words)
    except ClusterError as first:       # it says what it gives up, once
        try:
            run_tool(*words)
        except ClusterError as second:
            raise ClusterError(str(second), details=[*first.details, *second.details]) from first
    bed.cluster.restart_killed(osd)
    bed.cluster.recovered()
    osd.ask("tablestore settle lost objects")
    wait_for_lost_objects(bed, False)


def wait_for_lost_objects(bed: Bed, there: bool) -> None:
    wait_until(f"the health report to {'' if there else 'not '}tell of lost objects",
               lambda: ("TABLESTORE_OBJECTS_LOST" in health_codes(bed)) == there, HEALTH_SECONDS,
               explain=lambda: sorted(health_codes(bed)))


def places_in_table(bed: Bed, osd: Daemon, data: bytes) -> list[Place]:
    """In one file, or in two, of which a compaction that was killed has made the one."""
    places = [Place(file, at)
              for file in (bed.cluster.layout.data(osd.name) / "table").glob("*.sst")
              if (at := file.read_bytes().find(data)) >= 0]
    check(places, "no table file has the bytes")
    return places


def check_only_shards_of(bed: Bed, pool: str, pgid: str, osd: Daemon) -> set[str]:
    """The objects that scrub blames, all of them on this OSD alone."""
    found = json.loads(bed.rados(pool, "list-inconsistent-obj", pgid))["inconsistents"]
    for each in found:
        blamed = [str(shard["osd"]) for shard in each["shards"] if shard["errors"]]
        check_equal(blamed, [osd.ident], f"OSDs blamed for {each['object']['name']}")
    return {each["object"]["name"] for each in found}
