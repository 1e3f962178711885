"""dm-crypt: LUKS2 whose UUID is the OSD's. The monitors keep the key, as for BlueStore; what may
ask them for it, the lockbox's secret, is in a token of the LUKS header."""
from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from ceph_volume import conf
from ceph_volume.util import encryption

from .mounts import LABEL
from .shell import Refusal, attempt, run
from .undo import Undo

TOKEN = "ceph-tablestore"
CONTROL = Path("/dev/mapper/control")


def check() -> None:
    """Before anything is written: luksFormat needs no device-mapper, and what it makes could not
    be opened."""
    if shutil.which("cryptsetup") is None:
        raise Refusal("--dmcrypt needs cryptsetup: install cryptsetup-bin; nothing was changed")
    try:
        os.close(os.open(CONTROL, os.O_RDWR))
    except OSError as error:
        raise Refusal(f"--dmcrypt needs a kernel with device-mapper ({CONTROL}: {error.strerror}):"
                      " try 'modprobe dm_crypt'; nothing was changed") from None


def uuid_of(device: Path) -> str:
    return "".join(run("cryptsetup", "luksUUID", device, show=False)).strip()


def mapping(device: Path) -> Path:
    return Path("/dev/mapper") / f"tablestore-{uuid_of(device)}"


def is_mapping(name: str) -> bool:
    """Of ours. An LV of a volume group `tablestore` has a name that begins like it."""
    return re.fullmatch(r"/dev/mapper/tablestore-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
                        name) is not None


def make(device: Path, osd_fsid: str, secrets: dict[str, str], undo: Undo) -> Path:
    run("cryptsetup", "--batch-mode", "--key-size", encryption.get_key_size_from_conf(),
        "--key-file", "-", "luksFormat", "--type", "luks2", "--label", LABEL, "--uuid", osd_fsid,
        device, stdin=secrets["dmcrypt_key"])
    token = {"type": TOKEN, "keyslots": [], "lockbox_secret": secrets["cephx_lockbox_secret"]}
    run("cryptsetup", "token", "import", "--json-file", "-", device, stdin=json.dumps(token))
    return undo.step(lambda: open_with(device, secrets["dmcrypt_key"]), "close {}",
                     lambda _: close(device))


def open_with(device: Path, key: str) -> Path:
    inner = mapping(device)
    if not inner.exists():
        run("cryptsetup", "--key-file", "-", "--allow-discards", "luksOpen", device, inner.name,
            stdin=key)
    return inner


def open_device(device: Path) -> Path:
    """With the key that the monitors keep."""
    if mapping(device).exists():
        return mapping(device)
    return open_with(device, fetch_key(uuid_of(device), lockbox_secret(device)))


def close(device: Path) -> None:
    if mapping(device).exists():
        run("cryptsetup", "luksClose", mapping(device).name)


def lockbox_secret(device: Path) -> str:
    for number in range(32):
        code, lines, _ = attempt("cryptsetup", "token", "export", "--token-id", number, device,
                                 secret=True)
        if code == 0 and (found := json.loads("\n".join(lines))).get("type") == TOKEN:
            return found["lockbox_secret"]
    raise Refusal(f"{device} has no lockbox secret in its LUKS header: the OSD was not finished;"
                  " 'ceph-volume tablestore zap' makes it blank")


def fetch_key(osd_fsid: str, secret: str) -> str:
    name = f"client.osd-lockbox.{osd_fsid}"
    with tempfile.NamedTemporaryFile("w", prefix="lockbox.") as keyring:
        keyring.write(f"[{name}]\n\tkey = {secret}\n")
        keyring.flush()
        return "".join(run("ceph", "--cluster", conf.cluster, "--connect-timeout", 60, "--name",
                           name, "--keyring", keyring.name, "config-key", "get",
                           f"dm-crypt/osd/{osd_fsid}/luks", secret=True)).strip()
