"""The machine and the versions that figures are of."""
from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any


JOURNALS = {"none": " without a journal", "ordered": " with its journal"}


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
    facts = {"type": best[1], "options": best[2]} if best else {}
    if facts.get("type") == "ext4":
        facts["journal"] = journal_of(Path("/proc/fs/ext4") / block_device(folder).name / "options")
    return facts


def journal_of(options: Path) -> str:
    """Of an ext4, from the kernel's list of its options: how data go with its journal, or none."""
    if not options.exists():
        return "unknown"
    modes = [line.removeprefix("data=") for line in options.read_text().splitlines()
             if line.startswith("data=")]
    return modes[0] if modes else "none"


def block_device(folder: Path) -> Path:
    number = os.stat(folder).st_dev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()


def disk(folder: Path) -> dict[str, str]:
    block = block_device(folder)
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


def place(folder: Path) -> dict[str, Any]:
    return {"file_system": file_system(folder), "disk": disk(folder)}


def place_text(m: dict[str, Any]) -> str:
    """What place() says, and where it is `below` another."""
    kind, on = m["file_system"], m.get("disk", {})
    text = kind.get("type", "?") + JOURNALS.get(kind.get("journal", ""), "")
    if kind.get("type") == "ext4" and "journal" not in kind:
        text += " (whether with a journal, was not noted)"
    if "below" in m:
        return (f"{text} on a loop device with direct I/O, on a written file of"
                f" {place_text(m['below'])}")
    return (f"{text} on {on.get('name', '?')} ({on.get('queue/write_cache', '?')} cache,"
            f" {'' if on.get('queue/fua') == '1' else 'no '}FUA)")


def describe(folder: Path, commit: str) -> dict[str, Any]:
    return {
        "processor": first_line("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        **place(folder),
        "tablestore_commit": commit,
        "ceph": command("ceph-osd", "--version"),
    }
