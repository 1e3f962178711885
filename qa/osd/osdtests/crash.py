"""OSDs that are killed, and what their clients may rely on afterwards."""
from __future__ import annotations

import os

from cephcluster.model import Contents
from cephcluster.scrub import deep_scrub
from cephcluster.verified import Possible, VerifiedWriter, describe, read
from cephcluster.wait import wait_until

from .bed import Bed, check, check_bytes, test

ROUNDS = 5
DOWN_SECONDS = 60


@test()
def acknowledged_writes_survive_kill(bed: Bed) -> str:
    """The OSD and its client are killed together under load: what was
    acknowledged is there, what was in flight is there wholly or not at all."""
    with bed.pool() as pool:
        writer = VerifiedWriter(bed.cluster, pool)
        for _ in range(ROUNDS):
            writer.start()
            writer.wait_acknowledged(700)
            bed.osd.kill()
            writer.kill()
            bed.cluster.restart_killed(bed.osd)
            bed.cluster.recovered()
            writer.check()
        deep_scrub(bed.cluster)
    return f"{ROUNDS} rounds, {writer.acknowledged} acknowledged writes"


@test(osds=3)
def replica_killed_under_load_recovers(bed: Bed) -> str:
    """The two others go on; the third one comes back and catches up."""
    victim = bed.cluster.osds[1]
    with bed.pool(groups=16) as pool:
        writer = VerifiedWriter(bed.cluster, pool)
        writer.start()
        writer.wait_acknowledged(400)
        victim.kill()
        wait_until("the mon to see that the OSD is down", lambda: is_down(bed, victim.ident),
                   DOWN_SECONDS)
        writer.wait_acknowledged(1000)
        bed.cluster.restart_killed(victim)
        writer.wait_acknowledged(1400)
        writer.stop()
        bed.cluster.recovered()
        objects = writer.check()
        groups = deep_scrub(bed.cluster)
    return (f"{writer.acknowledged} acknowledged writes of {objects} objects,"
            f" {groups} placement groups scrubbed clean")


@test(osds=3)
def snapshots_of_a_busy_pool_survive_kills(bed: Bed) -> str:
    """Snapshots that are taken while objects change and an OSD is killed: each object in each of
    them is as it was at one moment of that time, in every later life of the OSDs."""
    victim = bed.cluster.osds[1]
    with bed.pool(groups=16) as pool:
        writer = VerifiedWriter(bed.cluster, pool, objects=40)
        writer.start()
        writer.wait_acknowledged(300)
        states = {"whole": take_snapshot(bed, pool, "whole", writer)}
        victim.kill()
        wait_until("the mon to see that the OSD is down", lambda: is_down(bed, victim.ident),
                   DOWN_SECONDS)
        states["degraded"] = take_snapshot(bed, pool, "degraded", writer)
        bed.cluster.restart_killed(victim)
        states["recovering"] = take_snapshot(bed, pool, "recovering", writer)
        writer.stop()
        bed.cluster.recovered()
        writer.check()
        found = {snap: in_snapshot(bed, pool, snap, states[snap]) for snap in states}
        for osd in bed.cluster.osds:
            osd.kill()
        for osd in bed.cluster.osds:
            bed.cluster.restart_killed(osd)
        bed.cluster.recovered()
        writer.start()
        bed.cluster.client.mon("osd pool rmsnap", pool=pool, snap="degraded")
        writer.wait_acknowledged(300)
        writer.stop()
        writer.check()
        for snap in ("whole", "recovering"):
            in_snapshot(bed, pool, snap, {name: [contents]
                                          for name, contents in found[snap].items()})
        groups = deep_scrub(bed.cluster)
    return f"{writer.acknowledged} acknowledged writes, {groups} placement groups scrubbed clean"


def take_snapshot(bed: Bed, pool: str, snap: str, writer: VerifiedWriter) -> dict[str, Possible]:
    """What each object may be in it."""
    first = writer.mark()
    bed.cluster.client.mon("osd pool mksnap", pool=pool, snap=snap)
    epoch = bed.cluster.client.mon("osd dump")["epoch"]
    alive = [osd for osd in bed.cluster.osds if osd.pid()]
    wait_until("the OSDs to know of the snapshot", lambda: all(
        int(osd.ask("status")["newest_map"]) >= epoch for osd in alive), DOWN_SECONDS)
    # Once each object has been changed after that, it was changed with the snapshot known.
    writer.wait_acknowledged(writer.acknowledged_now() + 2 * writer.objects)
    return writer.states_between(first, writer.mark())


def in_snapshot(bed: Bed, pool: str, snap: str,
                states: dict[str, Possible]) -> dict[str, Contents | None]:
    """Every object of it, which must be in one of these states."""
    io = bed.cluster.client.open_pool(pool)
    io.set_read(io.lookup_snap(snap).snap_id)
    found = {name: read(io, name) for name in states}
    io.close()
    for name, contents in found.items():
        check(contents in states[name], f"{name} in snapshot {snap} {describe(contents)}; expected:"
              f" {' or '.join(describe(each) for each in states[name])}")
    return found


@test(osds=3)
def erasure_coded_pool(bed: Bed) -> None:
    """Whole objects and appends with one shard's OSD away; the shards use
    generations and rollback, which no replicated pool does."""
    client = bed.cluster.client
    client.mon("osd erasure-code-profile set", name="two_one", force=True,
               profile=["k=2", "m=1", "crush-failure-domain=osd", "plugin=jerasure"])
    client.mon("osd pool create", pool="coded", pg_num=8, pgp_num=8, pool_type="erasure",
               erasure_code_profile="two_one")
    client.mon("osd pool application enable", pool="coded", app="rados")
    client.mon("osd pool set", pool="coded", var="min_size", val="2")
    bed.cluster.wait_clean()
    io = client.open_pool("coded")
    contents = {f"object_{size}": os.urandom(size) for size in (1, 4096, 70_000, 1 << 20)}
    victim = bed.cluster.osds[2]
    try:
        for name, data in contents.items():
            io.write_full(name, data)
        victim.kill()
        wait_until("the mon to see that the OSD is down", lambda: is_down(bed, victim.ident),
                   DOWN_SECONDS)
        for name, data in contents.items():
            check_bytes(io.read(name, len(data) + 1), data, f"{name} from two shards")
            contents[name] = data[::-1]
            io.write_full(name, contents[name])
        bed.cluster.restart_killed(victim)
        bed.cluster.recovered()
        for name, data in contents.items():
            check_bytes(io.read(name, len(data) + 1), data, f"{name} after recovery")
        deep_scrub(bed.cluster)
    finally:
        io.close()
        bed.cluster.delete_pool("coded")


def is_down(bed: Bed, ident: str) -> bool:
    return any(str(each["osd"]) == ident and not each["up"]
               for each in bed.cluster.client.mon("osd dump")["osds"])
