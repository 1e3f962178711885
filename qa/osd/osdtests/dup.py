"""ceph-objectstore-tool --op dup: a stopped OSD moves to another kind of store, and back."""
from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import rados

from cephcluster.file_system import FileSystem
from cephcluster.scrub import damaged, scrubbed_deeply
from cephcluster.tool import COMMAND_SECONDS, run_tool

from .bed import Bed, check, check_bytes, check_equal, test
from .decay import oid_of, rot
from .store_tool import ONLY, data, start_again
from .tools import check_filled, fill, fresh, tool

MANY, MANY_BYTES = 4000, 5000
HOLE = 64 << 20
BLOCK_DEVICE_BYTES = 4 << 30
INTERRUPTIONS = 3
LARGE, LARGE_BYTES = 150, 4 << 20
SMALL_BYTES = 800 << 20


def empty_store(bed: Bed, kind: str) -> Path:
    path = bed.file(f"dup_{kind}")
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return make_store(bed, kind, path)


def make_store(bed: Bed, kind: str, path: Path) -> Path:
    device = [f"--bluestore_block_size={BLOCK_DEVICE_BYTES}"] if kind == "bluestore" else []
    words = ["ceph-objectstore-tool", "--no-mon-config", "--type", kind, "--op", "mkfs",
             "--data-path", str(path), "--fsid", (data(bed, bed.osd) / "fsid").read_text().strip(),
             *device]
    made = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS,
                          check=False, stdin=subprocess.DEVNULL, env=environment(bed))
    check_equal(made.returncode, 0, f"mkfs of {kind}: {made.stderr[-400:]}")
    return path


def environment(bed: Bed) -> dict[str, str]:
    return os.environ | {"CEPH_CONF": str(bed.cluster.layout.conf)}


def begin_dup(bed: Bed, source: Path, target: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "ceph-objectstore-tool",
                             "--no-mon-config", "--op", "dup", "--data-path", str(source),
                             "--target-data-path", str(target)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=environment(bed))


def dup(bed: Bed, source: Path, target: Path, refused: str = "") -> str:
    process = begin_dup(bed, source, target)
    said, _ = process.communicate(timeout=COMMAND_SECONDS)
    if refused:
        check(process.returncode != 0 and refused in said,
              f"ended with {process.returncode}: {said[-600:]}")
    else:
        check_equal(process.returncode, 0, f"dup: {said[-600:]}")
    return said


def dup_interrupted(bed: Bed, source: Path, target: Path) -> str:
    """With kill -9, in one collection after another."""
    for number in range(INTERRUPTIONS):
        process = begin_dup(bed, source, target)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(f"{2 + number}/"):
                break
        time.sleep(0.05)
        process.kill()
        process.communicate()
        check_equal(process.returncode, -signal.SIGKILL, "the end of an interrupted dup")
    said = dup(bed, source, target)
    check("goes on with what was interrupted" in said, said[:600])
    return said


def export_to(bed: Bed, origin: Path, other: Path) -> None:
    """A placement group of the one takes the place of the other one's."""
    words = ("ceph-objectstore-tool", "--no-mon-config", "--data-path")
    environment = {"CEPH_CONF": str(bed.cluster.layout.conf)}
    export = fresh(bed, "pg.export")
    for pgid in run_tool(*words, origin, "--op", "list-pgs", environment=environment).split():
        export.unlink(missing_ok=True)
        run_tool(*words, origin, "--op", "export", "--pgid", pgid, "--file", export,
                 environment=environment)
        run_tool(*words, other, "--op", "remove", "--force", "--pgid", pgid,
                 environment=environment)
        run_tool(*words, other, "--op", "import", "--file", export, environment=environment)


def fill_for_dup(io: rados.Ioctx) -> tuple[dict[str, bytes], bytes]:
    """Contents, and what object_3 is in the snapshot."""
    contents = fill(io)
    io.write("sparse", b"at the end", HOLE)
    io.create_snap("before")
    io.write_full("object_3", b"after the snapshot")
    before, contents["object_3"] = contents["object_3"], b"after the snapshot"
    io.set_xattr("object_3", "length", str(len(contents["object_3"])).encode())
    for written in [io.aio_write_full(f"many_{number}", many(number)) for number in range(MANY)]:
        written.wait_for_complete()
    return contents, before


def many(number: int) -> bytes:
    return f"{number:07d}".encode() * (MANY_BYTES // 7)


@test(stores=ONLY)
def dup_to_bluestore_and_back_keeps_all(bed: Bed) -> str:
    with bed.pool(groups=16) as pool:   # much is left after the third interruption
        io = bed.cluster.client.open_pool(pool)
        contents, before = fill_for_dup(io)
        bed.osd.stop()
        home = data(bed, bed.osd)
        bluestore = empty_store(bed, "bluestore")
        said = dup_interrupted(bed, home, bluestore)
        copied = sum(int(each) for each in re.findall(r"(\d+) bytes", said.replace("\r", "\n")))
        check(copied < HOLE, f"{copied} bytes were copied: the hole is none any more")
        back = empty_store(bed, "tablestore")
        dup_interrupted(bed, bluestore, back)
        for origin, other in ((bluestore, back), (back, bluestore)):
            export_to(bed, origin, other)
        home.rename(home.with_name("dup_original"))
        back.rename(home)
        start_again(bed)
        check_filled(io, contents)
        for number in range(MANY):
            check_bytes(io.read(f"many_{number}", MANY_BYTES), many(number), f"many_{number}")
        check_equal(io.stat("sparse")[0], HOLE + 10, "size of the sparse object")
        check_bytes(io.read("sparse", 10, HOLE), b"at the end", "sparse")
        io.set_read(io.lookup_snap("before").snap_id)
        check_bytes(io.read("object_3", 100_000), before, "object_3 in the snapshot")
        io.set_read(rados.LIBRADOS_SNAP_HEAD)
        check_equal(damaged(scrubbed_deeply(bed.cluster)), [], "damaged placement groups")
        io.close()
        shutil.rmtree(home.with_name("dup_original"))
        shutil.rmtree(bluestore)
    return f"{MANY + len(contents)} objects"


def snapshots_in(bed: Bed, path: Path) -> list[str]:
    """Keys of SnapMapper's object."""
    return run_tool("ceph-objectstore-tool", "--no-mon-config", "--data-path", path, "--pgid",
                    "meta", "snapmapper", "list-omap",
                    environment={"CEPH_CONF": str(bed.cluster.layout.conf)}).splitlines()


@test(stores=ONLY)
def dup_into_a_target_that_is_too_small_says_so(bed: Bed) -> None:
    """Before it has written what does not fit: a store that runs out of space ends the process."""
    with bed.pool(groups=1) as pool:
        io = bed.cluster.client.open_pool(pool)
        for number in range(LARGE):
            io.write_full(f"large_{number}", os.urandom(LARGE_BYTES))
        bed.osd.stop()
        small = FileSystem(bed.file("small.img"), bed.file("dup_tablestore"))
        small.remove()
        shutil.rmtree(small.directory, ignore_errors=True)
        small.directory.mkdir()
        small.make("xfs", SMALL_BYTES)
        try:
            shutil.rmtree(small.directory / "lost+found", ignore_errors=True)
            target = make_store(bed, "tablestore", small.directory)
            dup(bed, data(bed, bed.osd), target, refused="the target is full")
        finally:
            small.remove()
        start_again(bed)
        io.close()


@test(stores=ONLY)
def dup_leaves_nothing_out(bed: Bed) -> None:
    """What cannot be read ends it, and is named; when that is gone it goes on. A target that is not
    its own, or not of this moment, is refused."""
    with bed.pool(groups=1) as pool:
        io = bed.cluster.client.open_pool(pool)
        for name in ("whole", "rotten"):
            io.write_full(name, os.urandom(100_000))
        io.create_snap("before")
        io.write_full("rotten", os.urandom(100_000))
        mapped = bed.cluster.client.mon("osd map", pool=pool, object="rotten")
        snapshot = io.lookup_snap("before").snap_id
        rot(bed, bed.osd, oid_of(mapped, "rotten").replace(":head#", f":{snapshot:x}#"))
        bed.osd.stop()
        home, target = data(bed, bed.osd), empty_store(bed, "tablestore")
        dup(bed, home, target, refused="cannot read the data of")
        check(not (target / "ready").exists(), "a part of a store counts as an OSD")
        clone, = (line for line in tool(bed, bed.osd, "--op", "list", "rotten").splitlines()
                  if json.loads(line)[1]["snapid"] == snapshot)
        tool(bed, bed.osd, clone, "remove")
        check("goes on" in dup(bed, home, target), "dup does not go on")
        check_equal(snapshots_in(bed, target), snapshots_in(bed, home),
                    "what the copy knows of snapshots")
        start_again(bed)
        bed.osd.stop()
        dup(bed, home, target, refused="before its OSD ran again")
        target = empty_store(bed, "tablestore")
        dup(bed, home, target)
        check("is whole already" in dup(bed, home, target), "the same again")
        start_again(bed)
        bed.osd.stop()
        dup(bed, home, target, refused="before its OSD ran again")
        start_again(bed)
        io.close()
        shutil.rmtree(target)
