"""After an OSD was made: activate, list, deactivate, zap."""
from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

from conftest import CAPACITY, Cluster, plugin, shell

POINT = Path("/var/lib/ceph/osd/ceph-0")


def listed() -> dict[str, list[dict[str, object]]]:
    return json.loads(plugin("list", "--format", "json").output)


def test_activate_mounts_a_device_by_its_uuid(device: Path, cluster: Cluster) -> None:
    plugin("prepare", "--data", device)
    shell("umount", POINT)
    said = plugin("activate", "--no-systemd", 0, cluster.osds()[0])
    assert said.code == 0, said.text
    assert POINT.is_mount()
    assert (POINT / "type").read_text().strip() == "tablestore"


def test_activate_needs_no_number(device: Path, cluster: Cluster) -> None:
    plugin("prepare", "--data", device)
    shell("umount", POINT)
    POINT.rmdir() if POINT.exists() else None
    said = plugin("activate", "--no-systemd", "--all")
    assert said.code == 0, said.text
    assert POINT.is_mount()


def test_a_disk_of_another_cluster_is_in_nobodys_way(two_devices: tuple[Path, Path],
                                                     cluster: Cluster) -> None:
    foreign, own = two_devices
    plugin("prepare", "--data", own)
    shell("umount", POINT)
    shell("dd", f"if={own}", f"of={foreign}", "bs=1M", "conv=sparse")
    shell("xfs_admin", "-U", "11111111-0000-4000-8000-000000000000", foreign)
    shell("mount", foreign, POINT)
    (POINT / "ceph_fsid").write_text("22222222-0000-4000-8000-000000000000\n")
    (POINT / "fsid").write_text("11111111-0000-4000-8000-000000000000\n")
    shell("umount", POINT)
    for words in (["--all"], ["0"]):
        said = plugin("activate", "--no-systemd", *words)
        assert said.code == (words == ["--all"]), said.text
        assert f"{foreign} has osd.0 of another cluster" in said.text or words == ["0"]
        assert shell("findmnt", "-n", "-o", "SOURCE", POINT).strip() == str(own)
        assert f"{foreign} " not in Path("/proc/self/mountinfo").read_text()
        shell("umount", POINT)


def test_a_broken_disk_keeps_no_other_osd_from_starting(two_devices: tuple[Path, Path],
                                                        cluster: Cluster) -> None:
    broken, own = two_devices
    plugin("prepare", "--data", own)
    shell("umount", POINT)
    shell("mkfs.xfs", "-q", "-L", "tablestore", broken)
    shell("dd", "if=/dev/zero", f"of={broken}", "bs=512", "seek=1", "count=255")
    assert f"{broken} cannot be read" in str(listed()["unknown"][0]["problem"])
    assert f"an OSD that cannot be read ({broken})" in plugin("list").output
    for words in (["--all"], ["0"]):
        said = plugin("activate", "--no-systemd", *words)
        assert said.code == (words == ["--all"]), said.text
        assert POINT.is_mount()
        shell("umount", POINT)
    assert plugin("zap", broken).code == 0
    assert "unknown" not in listed()


def test_a_directory_that_cannot_be_read_keeps_no_other_osd_from_anything(directory: Path,
                                                                          cluster: Cluster
                                                                          ) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    broken = POINT.with_name("ceph-7")
    (broken / "whoami").mkdir(parents=True)   # a read of it is an error
    (broken / "type").write_text("tablestore\n")
    try:
        assert f"{broken} cannot be read" in str(listed()["unknown"][0]["problem"])
        assert "an OSD that cannot be read (a directory)" in plugin("list").output
        said = plugin("activate", "--no-systemd", 0, cluster.osds()[0])
        assert said.code == 0, said.text
        plugin("activate", "--no-systemd", "--all").refused("1 OSD(s) could not be activated")
    finally:
        shutil.rmtree(broken)


def test_activate_with_a_wrong_uuid_is_refused(place: list[str], cluster: Cluster) -> None:
    plugin("prepare", "--data", *place)
    plugin("activate", "--no-systemd", 0, "2f1c0e7a-4a68-4d39-9a61-6f0a3f9f6b10").refused(
        "there is no TableStore of osd.0")
    plugin("activate", "--no-systemd", 5, cluster.osds()[0]).refused("is osd.0, not osd.5")


def test_activate_of_a_directory_whose_file_system_is_not_there(directory: Path) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    away = directory.rename(directory.with_name("away"))
    plugin("activate", "--no-systemd", 0).refused("is its file system mounted?")
    away.rename(directory)


def test_deactivate_of_what_cannot_be_read(directory: Path) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    away = directory.rename(directory.with_name("away"))
    said = plugin("deactivate", 0)
    assert said.code == 0 and "cannot be read" in said.text, said.text
    away.rename(directory)
    (directory / "whoami").unlink()
    (directory / "whoami").mkdir()
    said = plugin("deactivate", 0)
    assert said.code == 0 and "cannot be read" in said.text, said.text


def test_activate_changes_the_capacity(directory: Path) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    said = plugin("activate", "--no-systemd", 0, "--capacity", "2G")
    assert "--tablestore-capacity=2147483648" in said.text
    assert listed()["0"][0]["capacity"] == 2 << 30


def test_files_of_root_are_given_to_ceph(directory: Path) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    os.chown(directory / "keyring", 0, 0)
    plugin("activate", "--no-systemd", 0)
    assert (directory / "keyring").owner() == "ceph"


def test_list_mounts_nothing_for_good(device: Path, cluster: Cluster) -> None:
    assert listed() == {}
    plugin("prepare", "--data", device)
    shell("umount", POINT)
    entry, = listed()["0"]
    assert (entry["osd_fsid"], entry["device"]) == (cluster.osds()[0], str(device))
    assert str(device) not in Path("/proc/self/mountinfo").read_text()


def test_zap_gives_a_place_back(place: list[str], cluster: Cluster) -> None:
    plugin("prepare", "--data", *place)
    said = plugin("zap", "--osd-id", 0)
    assert said.code == 0, said.text
    assert listed() == {}
    assert not POINT.exists()
    if not place[1:]:
        assert subprocess.run(["blkid", "-p", place[0]], capture_output=True).returncode == 2


def test_zap_destroy_removes_the_directory(directory: Path) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    assert plugin("zap", "--destroy", directory).code == 0
    assert not directory.exists()


def test_zap_of_what_is_not_ours_is_refused(directory: Path, device: Path) -> None:
    (directory / "letters").write_text("dear")
    plugin("zap", directory).refused("holds no OSD of TableStore")
    assert os.listdir(directory) == ["letters"]
    shell("mkfs.xfs", "-q", device)
    plugin("zap", device).refused("holds no OSD of TableStore")
    assert subprocess.run(["blkid", "-p", device], capture_output=True).returncode == 0


def test_zap_of_an_osd_in_use_is_refused(place: list[str], cluster: Cluster) -> None:
    plugin("prepare", "--data", *place)
    with open(POINT / "fsid", "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        plugin("zap", place[0]).refused("runs")
    assert (POINT / "label").exists()


def test_zap_that_was_cut_off_is_repeated(directory: Path) -> None:
    for lost in ("fsid", "ready", "whoami"):
        plugin("prepare", "--data", directory, "--capacity", CAPACITY)

        def dies() -> None:
            from ceph_volume_tablestore import osd_dir
            osd_dir.shutil.rmtree = lambda _: os._exit(137)
        assert plugin("zap", directory, before=dies).code == 137
        (directory / lost).unlink(missing_ok=True)
        said = plugin("zap", directory)
        assert said.code == 0, said.text
        assert os.listdir(directory) == []


def test_zap_leaves_what_is_mounted_in_a_directory(directory: Path) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    below = directory / "exports"
    below.mkdir()
    shell("mount", "-t", "tmpfs", "tmpfs", below)
    (below / "pg").write_text("dear")
    try:
        plugin("zap", directory).refused(f"{below} is mounted in {directory}")
        assert (below / "pg").exists() and (directory / "label").exists()
    finally:
        shell("umount", below)


def test_zap_by_number_is_of_this_cluster(device: Path, cluster: Cluster) -> None:
    plugin("prepare", "--data", device)
    (POINT / "ceph_fsid").write_text("22222222-0000-4000-8000-000000000000\n")
    shell("umount", POINT)
    for words in (["zap", "--osd-id", 0], ["deactivate", 0]):
        plugin(*words).refused("osd.0 of another cluster")
    assert plugin("zap", device).code == 0


def test_a_disk_and_its_copy_are_not_taken_for_each_other(two_devices: tuple[Path, Path],
                                                          cluster: Cluster) -> None:
    copy, own = two_devices
    plugin("prepare", "--data", own)
    identity = cluster.osds()[0]
    shell("umount", POINT)
    shell("dd", f"if={own}", f"of={copy}", "bs=1M", "conv=sparse")
    for words in (["activate", "--no-systemd", "--all"], ["zap", "--osd-fsid", identity],
                  ["activate", "--no-systemd", 0, identity]):
        said = plugin(*words)
        assert said.code == 1 and "have the same UUID" in said.text, said.text
    shell("mount", own, POINT)   # the one that is in use is it
    assert listed()["0"][0]["device"] == str(own)


def test_a_look_writes_nothing(two_devices: tuple[Path, Path], cluster: Cluster) -> None:
    first, second = two_devices
    plugin("prepare", "--data", first)
    plugin("prepare", "--data", second)
    shell("umount", POINT)
    shell("umount", POINT.with_name("ceph-1"))
    before = [shell("sha256sum", each) for each in two_devices]
    assert set(listed()) == {"0", "1"}
    assert plugin("activate", "--no-systemd", 1, cluster.osds()[1]).code == 0
    assert shell("sha256sum", first) == before[0], "another one's is not so much as looked at"


def test_a_look_that_was_killed_is_taken_away(device: Path, cluster: Cluster) -> None:
    plugin("prepare", "--data", device)
    shell("umount", POINT)
    left = Path("/run/ceph-volume-tablestore") / cluster.osds()[0]
    left.mkdir(parents=True, exist_ok=True)
    shell("mount", "-t", "xfs", "-o", "ro,norecovery,nouuid", device, left)
    before = shell("sha256sum", device)
    assert set(listed()) == {"0"}
    assert shell("sha256sum", device) == before
    assert str(device) not in Path("/proc/self/mountinfo").read_text()


def test_activate_after_a_power_cut(device: Path, cluster: Cluster) -> None:
    """XFS's log has more than lies in its place."""
    plugin("prepare", "--data", device)
    shell("xfs_io", "-x", "-c", "shutdown -f", POINT)
    shell("umount", POINT)
    identity = cluster.osds()[0]
    said = plugin("activate", "--no-systemd", 0, identity)
    assert said.code == 0, said.text
    assert (POINT / "fsid").read_text().strip() == identity


def test_a_start_of_all_goes_on_behind_one_that_fails(two_devices: tuple[Path, Path],
                                                      cluster: Cluster) -> None:
    plugin("prepare", "--data", two_devices[0])
    plugin("prepare", "--data", two_devices[1])
    (POINT / "ceph-volume.json").write_text("[")
    for number in (0, 1):
        shell("umount", POINT.with_name(f"ceph-{number}"))
    said = plugin("activate", "--no-systemd", "--all")
    assert said.code == 1 and "is not JSON" in said.text and "osd.1 is in" in said.text, said.text
    assert set(listed()) == {"0", "1"}


def test_settings_of_a_later_version_are_passed_over(directory: Path) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    settings = json.loads((directory / "ceph-volume.json").read_text()) | {"later": 1}
    (directory / "ceph-volume.json").write_text(json.dumps(settings))
    assert plugin("activate", "--no-systemd", 0).code == 0


def test_zap_wants_to_know_what(cluster: Cluster) -> None:
    plugin("zap").refused("a directory or a device")


def test_deactivate_unmounts_and_keeps_the_data(device: Path, cluster: Cluster) -> None:
    plugin("prepare", "--data", device)
    said = plugin("deactivate", 0)
    assert said.code == 0, said.text
    assert str(device) not in Path("/proc/self/mountinfo").read_text()
    assert listed()["0"][0]["osd_fsid"] == cluster.osds()[0]


def test_trigger_understands_the_units_name(cluster: Cluster) -> None:
    plugin("trigger", "nonsense").refused("is not NUMBER-UUID")
    plugin("trigger", "7-2f1c0e7a-4a68-4d39-9a61-6f0a3f9f6b10").refused(
        "there is no TableStore of osd.7 (2f1c0e7a-4a68-4d39-9a61-6f0a3f9f6b10)")
