"""ceph-objectstore-tool on an OSD that is stopped."""
from __future__ import annotations

import json
import os
from pathlib import Path

import rados

from cephcluster.daemons import Daemon
from cephcluster.tool import run_tool

from .bed import Bed, check, check_bytes, check_equal, test

OBJECTS = 40


def tool(bed: Bed, osd: Daemon, *arguments: object) -> str:
    """Its options are not Ceph's: ceph.conf comes by the environment."""
    return run_tool("ceph-objectstore-tool", "--no-mon-config", "--data-path",
                    bed.cluster.layout.data(osd.name), *arguments,
                    environment={"CEPH_CONF": str(bed.cluster.layout.conf)})


def listed(bed: Bed, osd: Daemon, pgid: str) -> list[str]:
    """Names of a placement group's objects, its own metadata left out."""
    lines = tool(bed, osd, "--op", "list", "--pgid", pgid).splitlines()
    names = [json.loads(line)[1]["oid"] for line in lines if line.startswith("[")]
    return sorted(name for name in names if name)


def fill(io: rados.Ioctx) -> dict[str, bytes]:
    contents = {f"object_{number}": os.urandom(number * 7001) for number in range(OBJECTS)}
    for name, data in contents.items():
        io.write_full(name, data)
        io.set_xattr(name, "length", str(len(data)).encode())
        with rados.WriteOpCtx() as operation:
            io.set_omap(operation, ("name",), (name.encode(),))
            io.operate_write_op(operation, name)
    return contents


def check_filled(io: rados.Ioctx, contents: dict[str, bytes]) -> None:
    for name, data in contents.items():
        check_bytes(io.read(name, len(data) + 1), data, name)
        check_equal(io.get_xattr(name, "length"), str(len(data)).encode(), f"attribute of {name}")
        with rados.ReadOpCtx() as operation:
            values, _ = io.get_omap_vals_by_keys(operation, ("name",))
            io.operate_read_op(operation, name)
            check_equal(dict(values), {"name": name.encode()}, f"omap of {name}")


def pg_of_pool(bed: Bed, io: rados.Ioctx) -> dict[str, object]:
    prefix = f"{io.get_pool_id()}."
    groups = [group for group in bed.cluster.placement_groups()
              if group["pgid"].startswith(prefix)]
    return max(groups, key=lambda group: group["stat_sum"]["num_objects"])


@test()
def objectstore_tool_export_remove_import(bed: Bed) -> str:
    with bed.io(groups=4) as io:
        contents = fill(io)
        pgid = str(pg_of_pool(bed, io)["pgid"])
        bed.osd.stop()
        export = fresh(bed, "pg.export")
        names = listed(bed, bed.osd, pgid)
        check(names and set(names) <= contents.keys(), f"--op list of {pgid} says {names[:5]}")
        tool(bed, bed.osd, "--op", "export", "--pgid", pgid, "--file", export)
        check(export.stat().st_size > 0, "the export is empty")
        tool(bed, bed.osd, "--op", "remove", "--force", "--pgid", pgid)
        check(pgid not in tool(bed, bed.osd, "--op", "list-pgs").split(),
              f"{pgid} is still listed after --op remove")
        tool(bed, bed.osd, "--op", "import", "--file", export)
        check_equal(listed(bed, bed.osd, pgid), names, "objects after the import")
        fsck(bed, bed.osd)
        bed.cluster.restart_killed(bed.osd)
        bed.cluster.recovered()
        check_filled(io, contents)
    return f"{len(names)} objects of {pgid}"


@test()
def objectstore_tool_reads_one_object(bed: Bed) -> None:
    with bed.io(groups=1) as io:
        data = os.urandom(123_457)
        io.write_full("one", data)
        pgid = str(pg_of_pool(bed, io)["pgid"])
        bed.osd.stop()
        target = fresh(bed, "object")
        tool(bed, bed.osd, "--pgid", pgid, "one", "get-bytes", target)
        check_bytes(target.read_bytes(), data, "get-bytes")
        bed.cluster.restart_killed(bed.osd)
        bed.cluster.recovered()
        check_bytes(io.read("one", 200_000), data, "the object after the tool")


@test(osds=3)
def objectstore_tool_import_into_another_osd(bed: Bed) -> str:
    with bed.pool(groups=4, size=2) as pool:
        io = bed.cluster.client.open_pool(pool)
        contents = fill(io)
        group = pg_of_pool(bed, io)
        pgid, acting = str(group["pgid"]), list(group["acting"])
        origin = bed.cluster.osds[acting[0]]
        target = next(osd for osd in bed.cluster.osds if int(osd.ident) not in acting)
        origin.stop()
        target.stop()
        export = fresh(bed, "pg.export")
        tool(bed, origin, "--op", "export", "--pgid", pgid, "--file", export)
        tool(bed, target, "--op", "import", "--file", export)
        check_equal(listed(bed, target, pgid), listed(bed, origin, pgid), "imported objects")
        fsck(bed, target)
        for osd in (origin, target):
            bed.cluster.restart_killed(osd)
        bed.cluster.recovered()
        check_filled(io, contents)
        io.close()
    return f"{pgid} from {origin.name} into {target.name}"


def fsck(bed: Bed, osd: Daemon) -> None:
    if bed.store not in ("kstore", "memstore"):  # these have none
        tool(bed, osd, "--op", "fsck")


def fresh(bed: Bed, name: str) -> Path:
    path = bed.file(name)
    path.unlink(missing_ok=True)
    return path
