#!/usr/bin/env python3
"""In a machine: objects that can be compared byte by byte, before and after.

fill POOL COUNT    writes objects of many sizes, with attributes and omap
check POOL COUNT   compares all of them
churn POOL         writes until it dies, and notes in /srv what was acknowledged
recheck POOL       compares what churn wrote with its notes"""
from __future__ import annotations

import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import rados

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cluster"))
from cephcluster.client import Client  # noqa: E402
from cephcluster.verified import VerifiedWriter  # noqa: E402

CONF = Path("/etc/ceph/ceph.conf")
NOTES = Path("/srv/notes")
THREADS = 16
CHURN = {"objects": 160, "threads": 8}


def content(number: int) -> bytes:
    chance = random.Random(number)
    return chance.randbytes(chance.choice((0, 100, 4096, 5000, 65536, 300_000)))


def write(io: rados.Ioctx, number: int) -> None:
    name, data = f"file_{number}", content(number)
    stamp = str(number).encode()
    with rados.WriteOpCtx() as operation:
        operation.write_full(data)
        operation.set_xattr("number", stamp)
        io.set_omap(operation, ("number",), (stamp,))
        io.operate_write_op(operation, name)


def differs(io: rados.Ioctx, number: int) -> str:
    name, data = f"file_{number}", content(number)
    stamp = str(number).encode()
    try:
        found = io.read(name, len(data) + 1)
        attribute = io.get_xattr(name, "number")
        with rados.ReadOpCtx() as operation:
            values, _ = io.get_omap_vals_by_keys(operation, ("number",))
            io.operate_read_op(operation, name)
            omap = dict(values).get("number")
    except rados.Error as error:
        return f"{name}: {error}"
    if (found, attribute, omap) != (data, stamp, stamp):
        return f"{name}: {len(found)} bytes, attribute {attribute!r}, omap {omap!r}"
    return ""


def main() -> None:
    action, pool = sys.argv[1:3]
    client = Client(CONF)
    client.wait_connected()
    io = client.open_pool(pool)
    writer = VerifiedWriter(SimpleNamespace(layout=SimpleNamespace(root=NOTES, conf=CONF),
                                            client=client), pool, run=1, **CHURN)
    if action == "churn":
        NOTES.mkdir(exist_ok=True)
        os.chdir(Path(__file__).resolve().parent.parent / "cluster")
        os.execvp("python3", ["python3", "-m", "cephcluster.writer", "--conf", str(CONF), "--pool",
                              pool, "--log", str(NOTES / f"writer.{pool}.1.log"), "--run", "1",
                              "--objects", str(CHURN["objects"]),
                              "--threads", str(CHURN["threads"])])
    if action == "recheck":
        writer.check()
        print(f"{writer.acknowledged} acknowledged writes are there")
        return
    count = int(sys.argv[3])
    with ThreadPoolExecutor(THREADS) as threads:
        if action == "fill":
            list(threads.map(lambda number: write(io, number), range(count)))
            print(f"{count} objects written")
            return
        wrong = [line for line in threads.map(lambda number: differs(io, number), range(count))
                 if line]
    if wrong:
        sys.exit("\n".join([*wrong[:10], f"{len(wrong)} of {count} objects are wrong"]))
    print(f"{count} objects compared: all as written")


if __name__ == "__main__":
    main()
