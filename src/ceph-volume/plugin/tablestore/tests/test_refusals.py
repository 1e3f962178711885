"""What would lose data, or would not come back, is refused in one line, and nothing is changed."""
from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

from conftest import CAPACITY, ROOM, Cluster, plugin, shell


def create(path: object, *words: object) -> tuple[object, ...]:
    return ("create", "--no-systemd", "--data", path, *words)


def test_directory_with_files(directory: Path) -> None:
    (directory / "letters").write_text("dear")
    plugin(*create(directory, "--capacity", CAPACITY)).refused("is not empty (letters)")
    assert os.listdir(directory) == ["letters"]


def test_directory_that_does_not_exist(cluster: Cluster) -> None:
    plugin(*create(ROOM / "none")).refused("does not exist")


def test_relative_path(cluster: Cluster) -> None:
    plugin(*create("osd")).refused("must be absolute")


def test_file(directory: Path) -> None:
    (directory / "file").touch()
    plugin(*create(directory / "file")).refused("neither a directory nor a block device")


def test_file_system_in_memory(directory: Path) -> None:
    shell("mount", "-t", "tmpfs", "tmpfs", directory)
    try:
        plugin(*create(directory)).refused("is on tmpfs")
    finally:
        shell("umount", directory)


def test_file_system_that_is_read_only(directory: Path) -> None:
    shell("mount", "--bind", "-o", "ro", directory, directory)
    try:
        plugin(*create(directory)).refused("read-only")
    finally:
        shell("umount", directory)


def test_file_system_that_is_shared_without_a_capacity(directory: Path) -> None:
    plugin(*create(directory)).refused("say how much")


def test_capacity_larger_than_the_file_system(directory: Path) -> None:
    plugin(*create(directory, "--capacity", "9P")).refused("is more than the file system")


def test_capacity_that_is_no_size(directory: Path) -> None:
    said = plugin(*create(directory, "--capacity", "much"))
    assert said.code == 2 and "'much' is not a size" in said.text


def test_capacity_that_cephadm_would_not_tell_the_osd(directory: Path) -> None:
    plugin(*create(directory, "--cephadm", "--capacity", CAPACITY)).refused("takes no capacity")
    assert os.listdir(directory) == []


def test_device_that_cephadm_would_not_mount(device: Path) -> None:
    plugin(*create(device, "--cephadm")).refused("needs a directory")
    assert subprocess.run(["blkid", "-p", device], capture_output=True).returncode == 2


def test_directory_that_the_unit_hides(cluster: Cluster) -> None:
    path = Path("/var/tmp/osd")
    path.mkdir(parents=True, exist_ok=True)
    try:
        plugin(*create(path, "--capacity", CAPACITY)).refused("hides from the OSD")
    finally:
        path.rmdir()


def test_directory_that_ceph_cannot_enter(directory: Path) -> None:
    (directory / "inner").mkdir()
    directory.chmod(0o700)
    plugin(*create(directory / "inner", "--capacity", CAPACITY)).refused("cannot enter")


def test_number_of_an_osd_that_exists(directory: Path, cluster: Cluster) -> None:
    number = shell("ceph", "osd", "new", "2f1c0e7a-4a68-4d39-9a61-6f0a3f9f6b10").strip()
    plugin(*create(directory, "--capacity", CAPACITY, "--osd-id", number)).refused("exists")
    assert os.listdir(directory) == []


def test_device_with_a_file_system(device: Path) -> None:
    shell("mkfs.ext4", "-q", device)
    plugin(*create(device)).refused("is not blank (ext4)")
    assert b"ext4" in subprocess.run(["blkid", "-p", device], capture_output=True).stdout


def test_device_with_a_partition_table(device: Path) -> None:
    entry = struct.pack("<BBBBBBBBII", 0, 0, 0, 0, 0x83, 0, 0, 0, 2048, 4096)
    with open(device, "r+b") as file:
        file.write(bytes(446) + entry + bytes(48) + b"\x55\xaa")
    plugin(*create(device)).refused("is not blank (dos)")


def test_device_of_bluestore(device: Path) -> None:
    with open(device, "r+b") as file:
        file.write(b"bluestore block device\n")
    plugin(*create(device)).refused("is not blank (ceph_bluestore)")


def test_device_that_is_mounted(device: Path, directory: Path) -> None:
    shell("mkfs.ext4", "-q", device)
    shell("mount", device, directory)
    plugin(*create(device)).refused("is mounted at")
    shell("umount", directory)


def test_device_that_is_in_use(device: Path) -> None:
    held = os.open(device, os.O_RDONLY | os.O_EXCL)
    plugin(*create(device)).refused("is in use")
    os.close(held)


def test_device_that_is_read_only(device: Path) -> None:
    shell("blockdev", "--setro", device)
    plugin(*create(device)).refused("is read-only")
    shell("blockdev", "--setrw", device)


def test_encryption_of_a_directory(directory: Path) -> None:
    plugin(*create(directory, "--capacity", CAPACITY, "--dmcrypt")).refused("needs a device")


def test_osd_of_another_cluster(directory: Path, cluster: Cluster) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    path = directory / "ceph_fsid"
    path.write_text("00000000-0000-0000-0000-000000000001\n")
    plugin(*create(directory, "--capacity", CAPACITY)).refused("of another cluster")
    plugin("activate", "--no-systemd", "0").refused("of another cluster")


def test_without_the_bootstrap_key(directory: Path, cluster: Cluster) -> None:
    key = Path("/var/lib/ceph/bootstrap-osd/ceph.keyring")
    aside = key.rename(key.with_suffix(".aside"))
    plugin(*create(directory, "--capacity", CAPACITY)).refused("is missing")
    aside.rename(key)
    assert os.listdir(directory) == []


def test_ceph_osd_without_tablestore(directory: Path) -> None:
    def packaged_first() -> None:
        os.environ["PATH"] = os.environ["PATH"].replace("/ceph/build/ours:", "")

    plugin(*create(directory, "--capacity", CAPACITY), before=packaged_first).refused(
        "has no TableStore")


def with_letters(device: Path) -> None:
    """Somebody's file system, whose label is ours."""
    shell("mkfs.xfs", "-q", "-L", "tablestore", device)
    point = ROOM / "point"
    point.mkdir(exist_ok=True)
    shell("mount", device, point)
    (point / "letters").write_text("dear")
    shell("umount", point)


def letters_are_there(device: Path) -> None:
    point = ROOM / "point"
    shell("mount", device, point)
    assert (point / "letters").read_text() == "dear"
    shell("umount", point)
    point.rmdir()


def test_device_with_our_label_that_is_no_osd(device: Path, cluster: Cluster) -> None:
    with_letters(device)
    plugin(*create(device)).refused("files that are not an OSD's")
    letters_are_there(device)
    assert cluster.osds() == {}


def test_directory_beside_somebodys_own(directory: Path, cluster: Cluster) -> None:
    (directory / "type").mkdir()
    (directory / "b").mkdir()
    said = plugin(*create(directory / "b", "--capacity", CAPACITY))
    assert said.code == 0, said.text


def test_directory_of_another_osd(directory: Path, cluster: Cluster) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    (directory / "b").mkdir()
    plugin(*create(directory / "b", "--capacity", CAPACITY)).refused("which is an OSD's")


def test_number_whose_place_is_taken_is_not_taken(directory: Path, cluster: Cluster) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    shell("ceph", "osd", "destroy-actual", 0, "--yes-i-really-mean-it")
    tree = shell("ceph", "osd", "tree", "-f", "json")
    other = ROOM / "other"
    other.mkdir()
    plugin(*create(other, "--capacity", CAPACITY, "--osd-id", 0)).refused("is taken")
    assert shell("ceph", "osd", "tree", "-f", "json") == tree
    other.rmdir()


def test_place_of_the_osd_that_is_taken(directory: Path, cluster: Cluster) -> None:
    Path("/var/lib/ceph/osd/ceph-0").mkdir()
    Path("/var/lib/ceph/osd/ceph-0/block").touch()
    plugin(*create(directory, "--capacity", CAPACITY)).refused("is taken")
    assert cluster.osds() == {}
    assert os.listdir(directory) == []
