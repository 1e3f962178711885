"""What clients do with objects: data, attributes, omap, listing, snapshots."""
from __future__ import annotations

import os
import random

import rados

from cephcluster.bench import RadosBench
from cephcluster.wait import wait_until

from .bed import Bed, check, check_bytes, check_equal, test

SNAPSHOT_TRIM_SECONDS = 120


def bench(bed: Bed, size: int, seconds: int = 3) -> str:
    with bed.pool(groups=32) as pool:
        runner = RadosBench(bed.cluster, pool, 16, 1 << 30)
        written = runner.write(size, seconds)
        read = runner.read_back()
        check_equal(read.operations, written.operations, "objects read back")
        runner.clean_up()
        io = bed.cluster.client.open_pool(pool)
        check_equal([entry.key for entry in io.list_objects()], [], "objects left after clean-up")
        io.close()
    return f"{written.operations} objects, {written.iops:.0f} IOPS"


@test()
def bench_small_verified(bed: Bed) -> str:
    return bench(bed, 4096)


@test()
def bench_large_verified(bed: Bed) -> str:
    return bench(bed, 1 << 20)


@test()
def put_get_same_bytes(bed: Bed) -> None:
    """Through the rados command and files; again after a crash restart."""
    sizes = (0, 1, 4095, 4096, 4097, 100 << 10, (1 << 20) + 3, 9 << 20)
    with bed.pool() as pool:
        contents = {f"object_{size}": os.urandom(size) for size in sizes}
        for name, data in contents.items():
            bed.file("put").write_bytes(data)
            bed.rados(pool, "put", name, bed.file("put"))
        for _ in range(2):
            for name, data in contents.items():
                bed.file("get").unlink(missing_ok=True)
                bed.rados(pool, "get", name, bed.file("get"))
                check_bytes(bed.file("get").read_bytes(), data, name)
            bed.restart_osd()


@test()
def overwrite_append_truncate(bed: Bed) -> None:
    """Random changes of a few objects at any offset, against plain bytes."""
    dice = random.Random(20)
    expected: dict[str, bytearray] = {f"object_{n}": bytearray() for n in range(6)}
    with bed.io() as io:
        for _ in range(50):
            for name, data in expected.items():
                change(io, name, data, dice)
            name = dice.choice(list(expected))
            check_bytes(io.read(name, len(expected[name]) + 1), bytes(expected[name]), name)
        for _ in range(2):
            for name, data in expected.items():
                check_bytes(io.read(name, len(data) + 1), bytes(data), name)
                offset = dice.randrange(len(data) + 1)
                check_bytes(io.read(name, 10_000, offset), bytes(data[offset:offset + 10_000]),
                            f"{name} from {offset}")
            bed.restart_osd()


def change(io: rados.Ioctx, name: str, data: bytearray, dice: random.Random) -> None:
    length = dice.choice((1, 511, 4096, 10_000, 65_536, 200_000))
    piece = dice.randbytes(length)
    kind = dice.choice(("write", "write", "append", "truncate"))
    if kind == "append":
        io.append(name, piece)
        data += piece
    elif kind == "truncate" and data:
        size = dice.randrange(2 * len(data))
        io.trunc(name, size)
        data[size:] = bytes(max(0, size - len(data)))
    else:
        offset = dice.randrange(600_000)
        io.write(name, piece, offset)
        data.extend(bytes(max(0, offset + length - len(data))))
        data[offset:offset + length] = piece


@test()
def omap_set_list_remove(bed: Bed) -> None:
    expected = {f"key {number:05}": os.urandom(number % 300) for number in range(3000)}
    with bed.io() as io:
        keys = sorted(expected)
        for start in range(0, len(keys), 500):
            set_omap(io, "o", {key: expected[key] for key in keys[start:start + 500]})
        for _ in range(2):
            check_equal(list_omap(io, "o"), expected, "omap listed in pages")
            check_equal(list_omap(io, "o", prefix="key 012"),
                        {key: value for key, value in expected.items()
                         if key.startswith("key 012")}, "omap filtered by prefix")
            with rados.WriteOpCtx() as operation:
                gone = [key for key in expected if key.endswith("7")]
                io.remove_omap_keys(operation, tuple(gone))
                io.operate_write_op(operation, "o")
            expected = {key: value for key, value in expected.items() if key not in gone}
            check_equal(list_omap(io, "o"), expected, "omap after keys were removed")
            bed.restart_osd()
        with rados.WriteOpCtx() as operation:
            io.clear_omap(operation)
            io.operate_write_op(operation, "o")
        check_equal(list_omap(io, "o"), {}, "omap after it was cleared")


@test()
def omap_by_the_rados_command(bed: Bed) -> None:
    with bed.pool() as pool:
        bed.rados(pool, "setomapval", "o", "colour", "blue")
        bed.rados(pool, "setomapval", "o", "shape", "round")
        bed.rados(pool, "setomapheader", "o", "head")
        check_equal(bed.rados(pool, "listomapkeys", "o").split(), ["colour", "shape"], "keys")
        check("blue" in bed.rados(pool, "getomapval", "o", "colour"), "value of 'colour'")
        check("head" in bed.rados(pool, "getomapheader", "o"), "omap header")
        bed.rados(pool, "rmomapkey", "o", "colour")
        check_equal(bed.rados(pool, "listomapkeys", "o").split(), ["shape"], "keys left")


def set_omap(io: rados.Ioctx, name: str, values: dict[str, bytes]) -> None:
    with rados.WriteOpCtx() as operation:
        io.set_omap(operation, tuple(values), tuple(values.values()))
        io.operate_write_op(operation, name)


def list_omap(io: rados.Ioctx, name: str, prefix: str = "", page: int = 333) -> dict[str, bytes]:
    """All of it, page after page; the order of the keys is checked."""
    found: dict[str, bytes] = {}
    after = ""
    while True:
        with rados.ReadOpCtx() as operation:
            values, _ = io.get_omap_vals(operation, after, prefix, page)
            io.operate_read_op(operation, name)
            listed = list(values)
        keys = [key for key, _ in listed]
        check(keys == sorted(keys) and (not keys or keys[0] > after),
              f"omap keys after '{after}' are not in order")
        found.update((key, value or b"") for key, value in listed)
        if not listed:
            return found
        after = keys[-1]


@test()
def xattrs(bed: Bed) -> None:
    values = {"a": b"1", "empty": b"", "binary": bytes(range(256)), "large": os.urandom(60_000)}
    with bed.io() as io:
        io.write_full("o", b"data")
        for name, value in values.items():
            io.set_xattr("o", name, value)
        io.set_xattr("o", "a", b"changed")
        io.set_xattr("o", "gone", b"x")
        io.rm_xattr("o", "gone")
        values["a"] = b"changed"
        for _ in range(2):
            check_equal(dict(io.get_xattrs("o")), values, "attributes")
            for name, value in values.items():
                check_bytes(io.get_xattr("o", name), value, f"attribute {name}")
            bed.restart_osd()


@test()
def stat_and_list(bed: Bed) -> None:
    names = [f"plain {number}" for number in range(300)]
    names += ["a/b", "100%", "_", "\u00e4\u4e16", "tab\there", "x" * 900, "-", "a\\b", "A", "a"]
    with bed.io(groups=16) as io:
        for index, name in enumerate(names):
            io.write_full(name, b"x" * index)
        io.set_namespace("elsewhere")
        io.write_full("a", b"other")
        check_equal([entry.key for entry in io.list_objects()], ["a"], "names in the namespace")
        check_bytes(io.read("a"), b"other", "a in the namespace")
        io.set_namespace("")
        for _ in range(2):
            check_equal(sorted(entry.key for entry in io.list_objects()), sorted(names), "names")
            for index, name in enumerate(names):
                check_equal(io.stat(name)[0], index, f"size of {name[:20]}")
            bed.restart_osd()
        io.remove_object("100%")
        check("100%" not in {entry.key for entry in io.list_objects()}, "a removed name is listed")


@test()
def snapshots_keep_and_roll_back(bed: Bed) -> None:
    """Pool snapshots: changed, deleted and untouched objects; the shared parts
    must neither change nor be lost when either side goes."""
    old = {name: os.urandom(300_000) for name in ("overwritten", "deleted", "untouched", "rolled")}
    patch = os.urandom(50_000)
    with bed.pool() as pool:
        io = bed.cluster.client.open_pool(pool)
        for name, data in old.items():
            io.write_full(name, data)
        io.create_snap("before")
        for name in ("overwritten", "rolled"):
            io.write(name, patch, 99_999)
        io.trunc("rolled", 120_000)
        io.remove_object("deleted")
        new = old["overwritten"][:99_999] + patch + old["overwritten"][149_999:]
        for _ in range(2):
            for name, data in old.items():
                bed.rados(pool, "-s", "before", "get", name, bed.file("snap"))
                check_bytes(bed.file("snap").read_bytes(), data, f"{name} in the snapshot")
            check_bytes(io.read("overwritten", 400_000), new, "the head beside its snapshot")
            bed.restart_osd()
        bed.rados(pool, "rollback", "rolled", "before")
        check_bytes(io.read("rolled", 400_000), old["rolled"], "after the rollback")
        io.write("rolled", b"after", 7)
        bed.rados(pool, "rmsnap", "before")
        wait_until("the snapshot's clones to be trimmed", lambda: clones(bed) == 0,
                   SNAPSHOT_TRIM_SECONDS)
        check_bytes(io.read("overwritten", 400_000), new, "the head after its snapshot went")
        check_bytes(io.read("rolled", 400_000),
                    old["rolled"][:7] + b"after" + old["rolled"][12:], "the rolled-back head")
        io.close()


def clones(bed: Bed) -> int:
    return sum(group["stat_sum"]["num_object_clones"]
               for group in bed.cluster.placement_groups())
