"""OSDs that are killed, and what their clients may rely on afterwards."""
from __future__ import annotations

import os

from cephcluster.scrub import deep_scrub
from cephcluster.verified import VerifiedWriter
from cephcluster.wait import wait_until

from .bed import Bed, check_bytes, test

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
