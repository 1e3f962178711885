#!/usr/bin/env python3
"""Puts packages into an apt repository and makes its indexes; signing comes after.

    repository.py DIR DEBS_DIR --epoch SECONDS

DIR may be one of before: its packages stay, so that clients can go back.
"""
import argparse
import email.utils
import gzip
import lzma
import shutil
import subprocess
import sys
from pathlib import Path

SUITE, COMPONENT, ARCHITECTURE = "forky", "main", "amd64"


def make(root: Path, debs: list[Path], epoch: int) -> None:
    pool = root / "pool" / COMPONENT
    indexes = root / "dists" / SUITE / COMPONENT / f"binary-{ARCHITECTURE}"
    for directory in (pool, indexes):
        directory.mkdir(parents=True, exist_ok=True)
    for deb in debs:
        shutil.copy(deb, pool)
    packages = ftparchive(root, "packages", f"pool/{COMPONENT}")
    (indexes / "Packages").write_bytes(packages)
    (indexes / "Packages.xz").write_bytes(lzma.compress(packages))
    (indexes / "Packages.gz").write_bytes(gzip.compress(packages, mtime=0))
    release = root / "dists" / SUITE / "Release"
    for old in release.parent.glob("*Release*"):
        old.unlink()
    fields = {"Origin": "TableStore", "Label": "TableStore", "Suite": SUITE, "Codename": SUITE,
              "Components": COMPONENT, "Architectures": f"{ARCHITECTURE} all",
              "Date": email.utils.formatdate(epoch, usegmt=True)}
    options = [word for name, value in fields.items()
               for word in ("-o", f"APT::FTPArchive::Release::{name}={value}")]
    release.write_bytes(ftparchive(root, *options, "release", f"dists/{SUITE}"))
    (root / "tablestore.sources").write_text(
        "# For /etc/apt/sources.list.d; the key tablestore.asc goes to /etc/apt/keyrings.\n"
        "Types: deb\n"
        f"URIs: file:{root}\n"
        f"Suites: {SUITE}\n"
        f"Components: {COMPONENT}\n"
        "Signed-By: /etc/apt/keyrings/tablestore.asc\n", encoding="utf-8")


def ftparchive(root: Path, *words: str) -> bytes:
    return subprocess.run(["apt-ftparchive", *words], cwd=root, check=True,
                          stdout=subprocess.PIPE).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("debs", type=Path)
    parser.add_argument("--epoch", type=int, required=True)
    options = parser.parse_args()
    make(options.root.resolve(), sorted(options.debs.glob("*.deb")), options.epoch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
