"""--dmcrypt: cryptsetup's own header, keys and tokens, and a monitor that keeps the key. Only what
is behind the header is in plain text, since these tests need no device-mapper: see mapper.sh."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOM, Cluster, StopAt, plugin, shell
from test_create import MOST_PROGRAMS, nothing_is_left, osd_is_whole
from test_life import POINT, listed
from test_refusals import create, letters_are_there, with_letters

MAPPER = Path("/dev/mapper")


@pytest.fixture
def blank(device: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A device, where mappings can be made."""
    room = ROOM / "mapper"
    room.mkdir()
    (room / "cryptsetup.real").symlink_to(shutil.which("cryptsetup") or "")
    shutil.copy(Path(__file__).with_name("mapper.sh"), room / "cryptsetup")
    (room / "cryptsetup").chmod(0o755)
    monkeypatch.setenv("PATH", f"{room}:{os.environ['PATH']}")
    shell("mount", "-t", "tmpfs", "tmpfs", MAPPER)
    (MAPPER / "control").touch()
    shell("mount", "--bind", "/dev/null", MAPPER / "control")   # cryptsetup would make its own
    yield device
    for name in mappings():
        subprocess.run(["umount", "--all-targets", MAPPER / name], capture_output=True)
        shell("cryptsetup", "luksClose", name)
    shell("umount", "--recursive", MAPPER)
    shutil.rmtree(room)


def mappings() -> list[str]:
    return sorted(path.name for path in MAPPER.iterdir() if path.name != "control")


def prepare(device: Path) -> None:
    said = plugin("prepare", "--dmcrypt", "--data", device)
    assert said.code == 0, said.text


def opens(device: Path, key: str) -> bool:
    return subprocess.run(["cryptsetup", "--test-passphrase", "--key-file", "-", "luksOpen",
                           device, "test"], input=key, text=True,
                          capture_output=True).returncode == 0


def test_the_monitors_keep_the_key_and_the_header_what_may_ask_for_it(blank: Path,
                                                                      cluster: Cluster) -> None:
    prepare(blank)
    osd_is_whole(cluster)
    identity = cluster.osds()[0]
    assert shell("cryptsetup", "luksUUID", blank).strip() == identity
    assert mappings() == [f"tablestore-{identity}"]
    assert shell("findmnt", "-n", "-o", "SOURCE", POINT).strip() == f"/dev/mapper/{mappings()[0]}"
    key = shell("ceph", "config-key", "get", f"dm-crypt/osd/{identity}/luks")
    assert opens(blank, key) and not opens(blank, key[:-1])
    token = json.loads(shell("cryptsetup", "token", "export", "--token-id", "0", blank))
    lockbox = json.loads(shell("ceph", "auth", "get", f"client.osd-lockbox.{identity}", "-f",
                               "json"))[0]
    assert token["lockbox_secret"] == lockbox["key"]
    for path in POINT.rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes(), path


def test_closed_it_is_known_by_its_uuid_and_activate_opens_it(blank: Path, cluster: Cluster
                                                              ) -> None:
    prepare(blank)
    identity = cluster.osds()[0]
    (POINT / "letters").write_text("dear")
    assert plugin("deactivate", "0", identity).code == 0
    assert mappings() == []
    entry, = listed()["unknown"]
    assert (entry["osd_fsid"], entry["encrypted"]) == (identity, True)
    plugin("prepare", "--dmcrypt", "--data", blank).refused("is an encrypted OSD already")
    for words in (["--all"], ["0", identity]):
        said = plugin("activate", "--no-systemd", *words)
        assert said.code == 0, said.text
        assert (POINT / "letters").read_text() == "dear"
        entry, = listed()["0"]
        assert (entry["device"], entry["encrypted"]) == (str(blank), True)
        plugin("deactivate", "0", identity)


def test_without_its_key_it_stays_closed(blank: Path, cluster: Cluster) -> None:
    prepare(blank)
    identity = cluster.osds()[0]
    plugin("deactivate", "0", identity)
    shell("ceph", "config-key", "set", f"dm-crypt/osd/{identity}/luks", "another")
    plugin("activate", "--no-systemd", "0", identity).refused("cryptsetup failed (2)")
    assert mappings() == []


@pytest.mark.parametrize("is_open", [True, False])
def test_zap_makes_the_device_blank(blank: Path, cluster: Cluster, is_open: bool) -> None:
    prepare(blank)
    if not is_open:
        plugin("deactivate", "0", cluster.osds()[0])
    said = plugin("zap", blank)
    assert said.code == 0, said.text
    cluster.forget_all()
    assert mappings() == []
    nothing_is_left([str(blank)], cluster)


def test_what_has_our_label_already_is_not_encrypted_over(blank: Path, cluster: Cluster) -> None:
    with_letters(blank)
    plugin(*create(blank, "--dmcrypt")).refused("is not blank")
    letters_are_there(blank)


def test_no_secret_comes_into_the_log(blank: Path, cluster: Cluster) -> None:
    prepare(blank)
    identity = cluster.osds()[0]
    plugin("deactivate", "0", identity)
    log = ROOM / "ceph-volume.log"

    def all_is_logged() -> None:
        import logging
        logging.basicConfig(filename=log, level=logging.DEBUG, force=True)
    assert plugin("activate", "--no-systemd", "0", identity, before=all_is_logged).code == 0
    said = log.read_text()
    log.unlink()
    assert "luksOpen" in said
    assert shell("ceph", "config-key", "get", f"dm-crypt/osd/{identity}/luks").strip() not in said
    token = json.loads(shell("cryptsetup", "token", "export", "--token-id", "0", blank))
    assert token["lockbox_secret"] not in said


def test_interrupted_anywhere_leaves_nothing(blank: Path, cluster: Cluster) -> None:
    for number in range(1, MOST_PROGRAMS):
        said = plugin("prepare", "--dmcrypt", "--data", blank,
                      before=StopAt(number, "interrupt"))
        if said.code == 0:
            break
        assert said.code == 1 and "interrupted" in said.text or said.code == 70, said.text
        assert mappings() == []
        nothing_is_left([str(blank)], cluster)
    assert said.code == 0 and number > 8, said.text
    osd_is_whole(cluster)


def test_a_kernel_without_device_mapper_is_told_before_anything_is_written(
        blank: Path, cluster: Cluster) -> None:
    shell("umount", MAPPER / "control")
    (MAPPER / "control").unlink()
    plugin(*create(blank, "--dmcrypt")).refused("needs a kernel with device-mapper")
    nothing_is_left([str(blank)], cluster)


def test_the_kernel_that_is_here_encrypts_or_is_said_not_to(device: Path, cluster: Cluster
                                                            ) -> None:
    said = plugin("prepare", "--dmcrypt", "--data", device)
    if said.code == 0:
        osd_is_whole(cluster)
        identity = cluster.osds()[0]
        assert "crypt" in shell("lsblk", "-n", "-o", "TYPE", f"/dev/mapper/tablestore-{identity}")
        plugin("zap", device)
    else:
        said.refused("needs a kernel with device-mapper")
        nothing_is_left([str(device)], cluster)


def test_a_host_without_cryptsetup_is_told_before_anything_is_written(
        blank: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def hide() -> None:
        from ceph_volume_tablestore import crypt
        monkeypatch.setattr(crypt.shutil, "which", lambda _: None)

    said = plugin(*create(blank, "--dmcrypt"), before=hide)
    said.refused("needs cryptsetup")
    nothing_is_left([str(blank)], cluster)
