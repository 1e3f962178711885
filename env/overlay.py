#!/usr/bin/env python3
"""Lays this project over Ceph's source: patches, then our own files.

The wanted state (pristine + patches + overlay) is put together in a
temporary directory and compared with the source tree; only files whose
content differs are written, so that a change of one patch rebuilds what
that patch touches and nothing else. Files that are no longer patched or
overlaid go back to what they were.

Runs inside the environment: overlay.py SOURCE PRISTINE CHECKOUT
"""
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def patched_paths(patch: Path) -> set[str]:
    """The files that a patch touches, relative to the source tree."""
    paths = set()
    for line in patch.read_text().splitlines():
        found = re.match(r"(?:---|\+\+\+) [ab]/(\S+)", line)
        if found:
            paths.add(found.group(1))
    return paths


def overlay_paths(checkout: Path) -> list[str]:
    found = []
    for folder, _, names in os.walk(checkout / "src"):
        for name in names:
            path = str((Path(folder) / name).relative_to(checkout))
            if not path.endswith(".pyc"):
                found.append(path)
    return found


def copy(origin: Path, target: Path) -> None:
    """A copy that appears at once, with a new time stamp."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    shutil.copyfile(origin, part)
    shutil.copymode(origin, part)
    part.rename(target)


def keep_pristine(source: Path, pristine: Path, paths: set[str], ours: set[str]) -> None:
    """Before a file is changed for the first time, keep what it was.

    `ours` are the paths of the last run: of these, one without a pristine
    copy did not exist in Ceph."""
    for path in paths - ours:
        if (source / path).exists() and not (pristine / path).exists():
            copy(source / path, pristine / path)


def apply(patch: Path, staging: Path) -> None:
    done = subprocess.run(
        ["patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "--force", "-i", patch],
        cwd=staging, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"patch {patch.name} does not apply:\n{done.stdout}{done.stderr}")


def main(source: Path, pristine: Path, checkout: Path) -> None:
    patches = sorted((checkout / "patches/20.2").glob("*.patch"))
    patched = set().union(*map(patched_paths, patches)) - {"dev/null"}
    overlaid = set(overlay_paths(checkout))
    if both := patched & overlaid:
        sys.exit(f"both patched and overlaid: {', '.join(sorted(both))}")

    manifest = pristine / ".ours"
    before = set(manifest.read_text().split("\n")) - {""} if manifest.exists() else set()
    ours = patched | overlaid
    keep_pristine(source, pristine, ours, before)
    # Written first: after an interruption all these count as changed by us.
    manifest.write_text("\n".join(sorted(before | ours)))

    with tempfile.TemporaryDirectory() as temporary:
        staging = Path(temporary)
        for path in patched:
            if (pristine / path).exists():
                copy(pristine / path, staging / path)
        for patch in patches:
            apply(patch, staging)
        for path in overlaid:
            copy(checkout / path, staging / path)

        for path in sorted(before | ours):
            wanted = staging / path
            if path not in ours:
                wanted = pristine / path  # back to Ceph's own, or gone
            present = source / path
            if not wanted.exists():
                if present.exists():
                    print(f"removed {path}")
                    present.unlink()
            elif not present.exists() or not filecmp.cmp(wanted, present, shallow=False):
                print(f"updated {path}")
                copy(wanted, present)
    manifest.write_text("\n".join(sorted(ours)))


if __name__ == "__main__":
    main(*(Path(folder).resolve() for folder in sys.argv[1:4]))
