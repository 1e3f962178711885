#!/usr/bin/env python3
"""Makes an image archive (OCI) of a root file system's tar: 'podman load -i FILE' takes it.

    image.py ROOT_TAR FILE --release R --ceph-release C --epoch SECONDS [--commit HASH]

Runs inside the environment. The labels are those of the Containerfile.
"""
import argparse
import datetime
import gzip
import hashlib
import io
import json
import re
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

CONTAINERFILE = Path(__file__).resolve().parent / "Containerfile"
NAME = "localhost/ceph-tablestore"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def labels(values: dict[str, str]) -> dict[str, str]:
    """Of the Containerfile, with its arguments in place."""
    text = CONTAINERFILE.read_text(encoding="utf-8")
    found = re.findall(r'([\w.]+)="([^"]*)"', text[text.index("\nLABEL"):])
    return {name: re.sub(r"\$\{(\w+)\}", lambda argument: values[argument[1]], value)
            for name, value in found}


def digest(stream: BinaryIO) -> str:
    return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()


class Archive:
    """An archive that is being written: blobs by their digests, then the index."""

    def __init__(self, path: Path, epoch: int):
        self.epoch = epoch
        self.tar = tarfile.open(path, "w")

    def add(self, name: str, size: int, stream: BinaryIO) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mtime = size, self.epoch
        self.tar.addfile(entry, stream)

    def add_blob(self, kind: str, content: bytes) -> dict[str, Any]:
        name = hashlib.sha256(content).hexdigest()
        self.add(f"blobs/sha256/{name}", len(content), io.BytesIO(content))
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{name}",
                "size": len(content)}

    def add_layer(self, root_tar: Path, work: Path) -> tuple[dict[str, Any], str]:
        packed = work / "layer.gz"
        with open(root_tar, "rb") as plain, open(packed, "wb") as out, \
                gzip.GzipFile("", "wb", 6, out, mtime=0) as sink:
            shutil.copyfileobj(plain, sink, 1 << 20)
        with open(root_tar, "rb") as plain, open(packed, "rb") as stream:
            identity, name = digest(plain), digest(stream)
            stream.seek(0)
            size = packed.stat().st_size
            self.add(f"blobs/{name.replace(':', '/')}", size, stream)
        return {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": name,
                "size": size}, identity


def as_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def make(root_tar: Path, path: Path, options: argparse.Namespace) -> None:
    archive = Archive(path, options.epoch)
    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        layer, identity = archive.add_layer(root_tar, Path(work))
    made = datetime.datetime.fromtimestamp(options.epoch, datetime.UTC).isoformat()
    values = {"RELEASE": options.release, "CEPH_RELEASE": options.ceph_release}
    config = archive.add_blob("config.v1+json", as_json({
        "created": made, "architecture": "amd64", "os": "linux",
        "config": {"Env": [f"PATH={PATH}"], "Cmd": ["/bin/bash"],
                   "Labels": labels(values) | {"GIT_COMMIT": options.commit}},
        "rootfs": {"type": "layers", "diff_ids": [identity]},
        "history": [{"created": made, "created_by": "./run package --image"}]}))
    manifest = archive.add_blob("manifest.v1+json", as_json({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": [layer]}))
    manifest["annotations"] = {"org.opencontainers.image.ref.name": f"{NAME}:{options.release}"}
    for name, value in (("index.json", {"schemaVersion": 2, "manifests": [manifest]}),
                        ("oci-layout", {"imageLayoutVersion": "1.0.0"})):
        content = as_json(value)
        archive.add(name, len(content), io.BytesIO(content))
    archive.tar.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("root_tar", type=Path)
    parser.add_argument("path", type=Path)
    for name in ("release", "ceph-release"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--commit", default="")
    parser.add_argument("--epoch", type=int, required=True)
    options = parser.parse_args()
    make(options.root_tar, options.path, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
