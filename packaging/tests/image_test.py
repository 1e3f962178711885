#!/usr/bin/env python3
"""Tests of the image: image_test.py FILE RELEASE. The last line is the count."""
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fresh_host import ENVIRONMENT, Failed  # noqa: E402

STATE = Path("/state")


class Image:
    """An archive, unpacked; and the root file system of its only layer."""

    def __init__(self, archive: Path, release: str, work: Path):
        self.release = release
        self.blobs = work / "blobs/sha256"
        self.root = work / "root"
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")
        self.index = json.loads((work / "index.json").read_bytes())
        self.manifest = self.blob(self.index["manifests"][0])
        self.config = self.blob(self.manifest["config"])
        self.root.mkdir()
        layer = self.path(self.manifest["layers"][0])
        subprocess.run(["tar", "-C", str(self.root), "--exclude=./dev/*", "-xpzf", str(layer)],
                       check=True)

    def path(self, reference: dict[str, Any]) -> Path:
        return self.blobs / reference["digest"].removeprefix("sha256:")

    def blob(self, reference: dict[str, Any]) -> Any:
        return json.loads(self.path(reference).read_bytes())

    def run(self, *words: str) -> str:
        done = subprocess.run(
            ["unshare", "--mount", "--propagation", "unchanged", "sh", "-ec",
             'mount --rbind /dev "$0/dev"; mount -t proc proc "$0/proc"; exec chroot "$0" "$@"',
             str(self.root), *words],
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=ENVIRONMENT, check=False)
        if done.returncode != 0:
            raise Failed(f"'{' '.join(words)}' ended with {done.returncode}: {done.stdout[-2000:]}")
        return done.stdout


def each_blob_is_what_its_name_says(image: Image) -> None:
    for path in image.blobs.iterdir():
        with open(path, "rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != path.name:
                raise Failed(f"blob {path.name} has other bytes")


def labels_say_what_it_is(image: Image) -> None:
    labels = image.config["config"]["Labels"]
    if labels.get("ceph") != "True" or \
            labels.get("org.opencontainers.image.version") != image.release:
        raise Failed(f"labels: {labels}")
    if image.config["config"].get("User"):
        raise Failed("Ceph's images have no user: cephadm starts daemons as root")


def both_programs_run_with_nothing_but_what_the_packages_brought(image: Image) -> None:
    lines = image.run("ceph-osd", "--version").splitlines()
    if len(lines) != 2 or f"tablestore {image.release}" not in lines[1]:
        raise Failed("\n".join(lines))
    image.run("ceph", "--version")
    identity = "11111111-2222-3333-4444-555555555555"
    image.run("mkdir", "-p", "/var/lib/ceph/osd/ceph-0")
    image.run("chown", "ceph:ceph", "/var/lib/ceph/osd/ceph-0")
    image.run("ceph-osd", "-i", "0", "--mkfs", "--no-mon-config", "--osd-uuid", identity, "--fsid",
              identity, "--osd-objectstore", "tablestore", "--tablestore-capacity", "2G",
              "--setuser", "ceph", "--setgroup", "ceph")
    listed = image.run("ceph-objectstore-tool", "--data-path", "/var/lib/ceph/osd/ceph-0",
                       "--no-mon-config", "--op", "list", "--pgid", "meta")
    if "osd_superblock" not in listed:
        raise Failed(listed)


TESTS: tuple[Callable[[Image], None], ...] = (
    each_blob_is_what_its_name_says, labels_say_what_it_is,
    both_programs_run_with_nothing_but_what_the_packages_brought)


def main() -> int:
    archive, release = sys.argv[1:]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="image-test.", dir=STATE) as work:
        image = Image(Path(archive), release, Path(work))
        for test in TESTS:
            began = time.monotonic()
            try:
                test(image)
                passed += 1
                print(f"ok   {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
            except (Failed, OSError, KeyError) as error:
                failed += 1
                print(f"FAIL {test.__name__}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
