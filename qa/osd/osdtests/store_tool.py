"""ceph-tablestore-tool on the store of an OSD that was filled: what it says, what it refuses, and
that what only looks changes nothing."""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from cephcluster.daemons import Daemon
from cephcluster.errors import ClusterError
from cephcluster.tool import COMMAND_SECONDS, run_tool

from .bed import Bed, check, check_equal, test
from .damage import damage_rows
from .tools import check_filled, fill

DONE, ERRORS, USAGE, IN_USE, NO_STORE, FAILED, NO_SPACE = 0, 1, 2, 3, 4, 5, 6
LOOKING = ("fsck", "fsck --deep", "show-label", "stats", "containers", "free-dump", "free-score",
           "list", "log-dump")
ONLY = ("tablestore",)
ZAP = "--yes-i-really-really-mean-it"


def run(bed: Bed, path: Path, command: str, *more: object, expect: int = DONE
        ) -> subprocess.CompletedProcess[str]:
    words = ["ceph-tablestore-tool", *command.split(), "--path", str(path), *map(str, more)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS,
                          check=False, stdin=subprocess.DEVNULL,
                          env=os.environ | {"CEPH_CONF": str(bed.cluster.layout.conf)})
    check(done.returncode == expect, f"'{' '.join(words)}' ended with {done.returncode}, expected"
          f" {expect}: {done.stdout[-300:]} {done.stderr[-600:]}")
    return done


def told(bed: Bed, path: Path, command: str, *more: object, expect: int = DONE) -> Any:
    """What it says in JSON, and nothing beside it."""
    done = run(bed, path, command, *more, "--format", "json", expect=expect)
    check_equal(done.stderr, "", f"standard error of {command}")
    return json.loads(done.stdout)


def refused(bed: Bed, path: Path, command: str, *more: object, expect: int) -> str:
    """In one line."""
    done = run(bed, path, command, *more, "--format", "json", expect=expect)
    check_equal(done.stdout, "", f"standard output of {command}")
    check_equal(done.stderr.count("\n"), 1, f"lines of {command}: {done.stderr}")
    return done.stderr


def data(bed: Bed, osd: Daemon) -> Path:
    return bed.cluster.layout.data(osd.name)


def everything_in(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        stat = path.lstat()
        digest = hashlib.md5(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size,
                            stat.st_blocks, digest)
    return found


def start_again(bed: Bed) -> None:
    bed.cluster.restart_killed(bed.osd)
    bed.cluster.recovered()


def names_in(listed: Any) -> set[str]:
    """#pool:hash:namespace:key:name:snapshot#"""
    return {entry["object"].strip("#").split(":")[4] for entry in listed["objects"]}


@test(stores=ONLY)
def store_tool_looks_and_changes_nothing(bed: Bed) -> str:
    with bed.io(groups=4) as io:
        contents = fill(io)
        bed.osd.kill()   # so that the log has more than the table
        path = data(bed, bed.osd)
        before = everything_in(path)
        said = {command: told(bed, path, command) for command in LOOKING}
        onode = told(bed, path, "dump-onode", "--object", "object_7")["onodes"][0]["object"]
        plain = run(bed, path, "fsck").stdout
        after = everything_in(path)
        check_equal({name for name in before | after if before.get(name) != after.get(name)}, set(),
                    "what has changed")
        for deep in ("fsck", "fsck --deep"):
            check(said[deep]["complete"], f"{deep} is not complete")
            check_equal(said[deep]["findings"], [], f"what {deep} finds")
        check("errors: 0\n" in plain and "findings: none\n" in plain, f"it says {plain}")
        check_equal(said["show-label"]["osd_uuid"], (path / "fsid").read_text().strip(), "the uuid")
        check(contents.keys() <= names_in(said["list"]), "not all objects are listed")
        check_equal(onode["size"], len(contents["object_7"]), "the size of object_7")
        used = sum(each["used_bytes"] for each in said["containers"]["containers"])
        check(used >= sum(map(len, contents.values())) * 0.9, f"{used} bytes are used")
        free = sum(extent["length"] for each in said["free-dump"]["containers"]
                   for extent in each["extents"])
        check_equal(free, said["free-score"]["free_bytes"], "bytes of free space")
        check(0 <= said["free-score"]["fragmentation_rating"] <= 1,
              f"the score is {said['free-score']}")
        check(said["stats"]["space"]["allocated"] > 0, "nothing is allocated")
        groups = said["log-dump"]["groups"]
        check(groups and all(one["first_lsn"] + one["transactions"] == other["first_lsn"]
                             for one, other in zip(groups, groups[1:])), "groups do not follow")
        start_again(bed)
        check_filled(io, contents)
    return f"{said['fsck']['objects']} objects, {len(groups)} groups of the log"


@test(stores=ONLY)
def store_tool_refuses_what_it_should(bed: Bed) -> None:
    path = data(bed, bed.osd)
    for command in (*LOOKING, "repair", "quick-fix", "compact", "trim", "expand",
                    "shrink --size 1T", "set-label-key --key a --value b", "rm-label-key --key a",
                    "prime", "zap --yes-i-really-really-mean-it"):
        if command != "show-label":
            said = refused(bed, path, command, expect=IN_USE)
            check("is in use" in said, f"{command} says {said}")
    check_equal(told(bed, path, "show-label")["osd_uuid"], (path / "fsid").read_text().strip(),
                "the label of an OSD that runs")
    empty = bed.file("empty")
    empty.mkdir(exist_ok=True)
    refused(bed, empty, "fsck", expect=NO_STORE)
    for command in ("fsk", "fsck --format xml", "fsck --no-such-option",
                    "shrink --size much", "compact --containers --max-live-percent 0"):
        refused(bed, empty, command, expect=USAGE)
    check_equal(list(empty.iterdir()), [], "what was made in an empty directory")
    helped = run_tool("ceph-tablestore-tool", "--help")
    check("fsck" in helped and "Exit codes" in helped, "--help says nothing")


@test(stores=ONLY)
def store_tool_finds_damage_and_repairs(bed: Bed) -> str:
    with bed.io(groups=1) as io:
        contents = fill(io)
        bed.osd.stop()
        path = data(bed, bed.osd)
        damage_rows(bed, bed.osd, "object_9")
        found = told(bed, path, "fsck", expect=ERRORS)
        check(any("object_9" in line for line in found["findings"]), f"fsck says {found}")
        check_equal(found["left"], found["errors"], "errors that are left by fsck")
        plain = run(bed, path, "fsck", expect=ERRORS)
        check("object_9" in plain.stdout, f"fsck says {plain.stdout}")
        repaired = told(bed, path, "quick-fix", expect=ERRORS)   # a lost object stays an error
        check(any("object_9" in line for line in repaired["findings"]), f"repair says {repaired}")
        left = told(bed, path, "repair", "--deep", expect=ERRORS)
        check(any("is lost" in line for line in left["findings"]), f"then it says {left}")
        start_again(bed)
        del contents["object_9"]   # no other OSD has it
        check_filled(io, contents)
    return f"{found['errors']} errors"


@test(stores=ONLY)
def store_tool_makes_a_store_smaller(bed: Bed) -> str:
    with bed.io(groups=1) as io:
        for number in range(120):
            io.write_full(f"large_{number}", os.urandom(1 << 20))
        contents = fill(io)
        for number in range(120):
            if number % 8:
                io.remove_object(f"large_{number}")
        bed.osd.stop()
        path = data(bed, bed.osd)
        before = taken(path)
        told(bed, path, "compact")
        told(bed, path, "compact", "--containers", "--max-live-percent", 60)
        given_back = told(bed, path, "trim")
        check(given_back["complete"], "trim is not complete")
        after = taken(path)
        check(after < before - (40 << 20), f"{before} bytes became {after}")
        told(bed, path, "fsck", "--deep")
        start_again(bed)
        check_filled(io, contents)
    return f"{before >> 20} MiB became {after >> 20} MiB"


def taken(path: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in (path / "containers").rglob("*"))


@test(stores=ONLY)
def store_tool_names_what_to_do_where_files_of_the_directory_are_lost(bed: Bed) -> None:
    store = small_store(bed, "lost_files_store")
    uuid = (store / "fsid").read_text()

    # As a power cut after a copy of them leaves them.
    (store / "fsid").write_text("")
    check("prime" in refused(bed, store, "stats", expect=NO_STORE), "an empty fsid file")
    try:
        make_small(store, "--fsid", "11111111-2222-3333-4444-555555555555",
                   "--err-to-stderr=true")
        raise AssertionError("another store was made over one")
    except ClusterError as error:
        check("prime" in " ".join(error.details), f"mkfs says {error.details}")
    told(bed, store, "prime")
    check_equal((store / "fsid").read_text(), uuid, "the uuid")
    (store / "fsid").unlink()
    refused(bed, store, "set-label-key", "--key", "a", "--value", "b", expect=NO_STORE)
    check(not (store / "fsid").exists(), "an empty fsid file was made")
    told(bed, store, "prime")
    told(bed, store, "fsck")

    # As a zap that was killed leaves it.
    (store / "label").unlink()
    (store / "fsid").write_text("")
    told(bed, store, "zap", ZAP)
    check_equal(list(store.iterdir()), [], "what is left")
    make_small(store)
    (store / "label").unlink()
    (store / "fsid").write_text("")
    make_small(store)
    told(bed, store, "fsck")
    shutil.rmtree(store)


def small_store(bed: Bed, name: str) -> Path:
    store = bed.file(name)
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir()
    make_small(store)
    return store


def make_small(store: Path, *more: object) -> None:
    run_tool("ceph-objectstore-tool", "--no-mon-config", "--type", "tablestore", "--op", "mkfs",
             "--data-path", store, "--tablestore_log_size=64M", "--tablestore_capacity=1G", *more)


@test(stores=ONLY)
def store_tool_changes_the_label_of_a_store(bed: Bed) -> str:
    store = small_store(bed, "label_store")
    told(bed, store, "set-label-key", "--key", "whoami", "--value", "77")
    told(bed, store, "set-label-key", "--key", "note", "--value", "in the third rack")
    told(bed, store, "rm-label-key", "--key", "note")
    refused(bed, store, "rm-label-key", "--key", "note", expect=NO_STORE)
    check_equal(told(bed, store, "show-label")["keys"], {"whoami": "77"}, "keys")
    refused(bed, store, "set-label-key", "--key", "long", "--value", "x" * 4000, expect=FAILED)

    uuid = (store / "fsid").read_text()
    for name in ("fsid", "type"):
        (store / name).unlink()
    check_equal(sorted(told(bed, store, "prime")["made"]), ["fsid", "type", "whoami"], "files made")
    check_equal((store / "fsid").read_text(), uuid, "the uuid")
    check_equal((store / "whoami").read_text(), "77\n", "whoami")
    check_equal(told(bed, store, "prime")["made"], [], "files made by a second call")
    (store / "whoami").write_text("78\n")
    check("78" in refused(bed, store, "prime", expect=FAILED), "another whoami is not told")

    zero = "--tablestore_capacity=0"
    told(bed, store, "shrink", zero, "--size", "600M")
    shrunk = told(bed, store, "stats", zero)["space"]["total"]
    check(shrunk <= 600 << 20, f"{shrunk} bytes after shrink")
    refused(bed, store, "shrink", zero, "--size", "10M", expect=NO_SPACE)
    grown = told(bed, store, "expand", zero, "--size", "900M")
    check(grown["before"]["total_bytes"] == shrunk < grown["now"]["total_bytes"] <= 900 << 20,
          f"expand says {grown}")
    told(bed, store, "fsck", "--deep")

    # As ceph-volume keeps what it was given.
    (store / "ceph-volume.json").write_text('{"capacity": 900000000, "provision": 0}')
    check("--capacity" in refused(bed, store, "shrink", "--size", "600M", expect=USAGE),
          "a capacity of ceph-volume does not count")
    (store / "ceph-volume.json").unlink()

    (store / "keyring").write_text("mine\n")
    refused(bed, store, "zap", expect=USAGE)
    told(bed, store, "zap", ZAP)
    check_equal(sorted(path.name for path in store.iterdir()), ["keyring", "whoami"],
                "what is left")
    shutil.rmtree(store)
    return f"{shrunk >> 20} MiB, then {grown['now']['total_bytes'] >> 20}"
