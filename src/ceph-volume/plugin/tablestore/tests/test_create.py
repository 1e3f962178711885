"""An OSD is made whole, or not at all."""
from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import CAPACITY, Cluster, StopAt, plugin, shell

OSDS = Path("/var/lib/ceph/osd")
MOST_PROGRAMS = 40     # that a create starts; the loops end long before


def nothing_is_left(place: list[str], cluster: Cluster) -> None:
    path = Path(place[0])
    assert cluster.osds() == {}
    assert list(OSDS.iterdir()) == []
    assert place[0] not in Path("/proc/self/mountinfo").read_text()
    if path.is_dir():
        assert os.listdir(path) == []
    else:
        assert subprocess.run(["blkid", "-p", path], capture_output=True).returncode == 2


def osd_is_whole(cluster: Cluster) -> None:
    """As many as the monitor knows, and it opens."""
    (number, identity), = cluster.osds().items()
    data = OSDS / f"ceph-{number}"
    assert (data / "fsid").read_text().strip() == identity
    assert (data / "whoami").read_text().strip() == str(number)
    shell("ceph-osd", "-i", number, "--get-osd-fsid", "--no-mon-config")
    key = json.loads(shell("ceph", "auth", "get", f"osd.{number}", "-f", "json"))[0]["key"]
    assert key in (data / "keyring").read_text()
    assert not (data / "ceph-volume.unfinished").exists()


def test_is_known_to_the_monitor_and_ready_to_start(place: list[str], cluster: Cluster) -> None:
    said = plugin("prepare", "--data", *place)
    assert said.code == 0, said.text
    osd_is_whole(cluster)
    data = OSDS / "ceph-0"
    assert (data / "type").read_text().strip() == "tablestore"
    assert (data / "keyring").owner() == (data / "log").owner() == "ceph"


def test_again_changes_nothing(place: list[str], cluster: Cluster) -> None:
    plugin("prepare", "--data", *place)
    before = cluster.osds()
    said = plugin("prepare", "--data", *place)
    assert said.code == 0, said.text
    assert "nothing to prepare" in said.text
    assert cluster.osds() == before
    osd_is_whole(cluster)


def test_interrupted_anywhere_leaves_nothing(place: list[str], cluster: Cluster) -> None:
    for number in range(1, MOST_PROGRAMS):
        said = plugin("prepare", "--data", *place, before=StopAt(number, "interrupt"))
        if said.code == 0:
            break
        assert said.code == 1 and "interrupted" in said.text or said.code == 70, said.text
        nothing_is_left(place, cluster)
    assert said.code == 0 and number > 6, said.text
    osd_is_whole(cluster)


def test_killed_anywhere_it_goes_on_when_repeated(place: list[str], cluster: Cluster) -> None:
    for number in range(1, MOST_PROGRAMS):
        words = ["prepare", "--data", *place, *(["--osd-id", 0] if number % 2 else [])]
        said = plugin(*words, before=StopAt(number, "kill"))
        if said.code == 0:
            break
        assert said.code == 137, said.text
        said = plugin(*words)
        assert said.code == 0, said.text
        osd_is_whole(cluster)
        zapped = plugin("zap", place[0])
        assert zapped.code == 0, zapped.text
        cluster.forget_all()
        nothing_is_left(place, cluster)
        said = None
    assert said is not None and number > 6


def test_class_number_and_capacity_are_kept(directory: Path, cluster: Cluster) -> None:
    said = plugin("prepare", "--data", directory, "--capacity", CAPACITY, "--osd-id", 7,
                  "--crush-device-class", "nvme")
    assert said.code == 0, said.text
    assert list(cluster.osds()) == [7]
    assert shell("ceph", "osd", "crush", "get-device-class", 7).strip() == "nvme"
    listed = json.loads(plugin("list", "--format", "json").output)
    assert listed["7"][0]["capacity"] == 1 << 30
    assert listed["7"][0]["data"] == str(directory)


def test_for_cephadm_there_is_no_keyring(directory: Path, cluster: Cluster) -> None:
    said = plugin("prepare", "--cephadm", "--data", directory, "--capacity", 0)
    assert said.code == 0, said.text
    assert not (directory / "keyring").exists()
    shell("ceph-osd", "-i", 0, "--get-osd-fsid", "--no-mon-config")
    assert shell("ceph", "auth", "get-key", "osd.0")


def test_number_of_a_destroyed_osd_is_taken_again(directory: Path, cluster: Cluster) -> None:
    plugin("prepare", "--data", directory, "--capacity", CAPACITY)
    shell("ceph", "osd", "destroy-actual", 0, "--yes-i-really-mean-it")
    assert plugin("zap", directory).code == 0
    said = plugin("prepare", "--data", directory, "--capacity", CAPACITY, "--osd-id", 0)
    assert said.code == 0, said.text
    osd_is_whole(cluster)


@pytest.mark.parametrize("fault", ["ceph-osd", "chown"])
def test_failure_of_a_program_is_undone(directory: Path, cluster: Cluster, fault: str) -> None:
    def break_it() -> None:
        from ceph_volume import process
        for name in ("call", "run"):
            whole = getattr(process, name)
            setattr(process, name, lambda words, whole=whole, **options: whole(
                ["false"] if words[0] == fault and "--show-config-value" not in words
                else words, **options))

    said = plugin("prepare", "--data", directory, "--capacity", CAPACITY, before=break_it)
    assert said.code != 0
    nothing_is_left([str(directory)], cluster)


def test_program_that_dies_with_many_words_is_not_waited_for(directory: Path, cluster: Cluster
                                                             ) -> None:
    """As ceph-osd when it aborts: it says all that it remembers."""
    many = "yes 'what there was' | head -c 500000 >&2; echo 'the last words' >&2; exit 1"

    def break_it() -> None:
        from ceph_volume import process
        signal.alarm(300)
        whole = process.call
        process.call = lambda words, **options: whole(
            ["sh", "-c", many] if "--mkfs" in words else words, **options)

    plugin("prepare", "--data", directory, "--capacity", CAPACITY,
           before=break_it).refused("the last words")
    nothing_is_left([str(directory)], cluster)
