"""The machine and the versions that figures are of."""
from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any


def first_line(path: str, beginning: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(beginning):
            return line.partition(":")[2].strip()
    return ""


def file_system(folder: Path) -> dict[str, str]:
    """Type and options of the file system that holds a directory."""
    best: list[str] = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4]
        if folder.resolve().is_relative_to(point) and (not best or len(point) >= len(best[0])):
            best = [point, after.split()[0], before.split()[5] + "," + after.split()[-1]]
    return {"type": best[1], "options": best[2]} if best else {}


def disk(folder: Path) -> dict[str, str]:
    number = os.stat(folder).st_dev
    block = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    facts = {"name": block.name}
    for name in ("size", "queue/rotational", "queue/write_cache", "queue/fua",
                 "queue/logical_block_size", "queue/scheduler"):
        path = block / name
        if not path.exists():
            path = block.parent / name     # a partition's disk
        if path.exists():
            facts[name] = path.read_text().strip()
    return facts


def command(*words: str) -> str:
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def describe(folder: Path, commit: str) -> dict[str, Any]:
    return {
        "processor": first_line("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "file_system": file_system(folder),
        "disk": disk(folder),
        "tablestore_commit": commit,
        "ceph": command("ceph-osd", "--version"),
    }
