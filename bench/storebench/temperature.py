"""A cell that is called hot reads nothing from the disk while it is measured, and
one that is called cold reads all of its bytes from there. Else it is not what its
name says, and counts as failed.

It goes by read_bytes of /proc/self/io: the kernel adds to it what the process's threads
ask a block device for, page by page. That is exact for direct reads, and for reads
through the page cache it is what was not there, with what is read ahead: the same for
files, and for BlueStore's file. On a loop device it is what the loop device was asked
for, which with direct I/O is what its disk was asked for.
The disk's own count (disk_read_bytes) has what others read, too."""
from __future__ import annotations

import re
from typing import Any

HOT_MOST_BYTES = 256 << 10      # a page of the program itself, when memory is scarce
COLD_LEAST_SHARE = 0.9          # ranges of keys overlap a little


def wrong_temperature(result: dict[str, Any]) -> str:
    """What is wrong with it, or nothing."""
    if result["options"]["store"] == "memstore":   # no disk, no caches
        return ""
    return "; ".join(filter(None, map(of_phase, result["phases"])))


def of_phase(phase: dict[str, Any]) -> str:
    name, read, payload = phase["name"], phase["usage"]["read_bytes"], phase["payload_bytes"]
    words = re.findall(r"\w+", name)
    if "hot" in words and read > HOT_MOST_BYTES:
        return f"'{name}' is not hot: {read:,} bytes came from the disk"
    if "cold" in words and read < payload * COLD_LEAST_SHARE:
        return f"'{name}' is not cold: of {payload:,} bytes only {read:,} came from the disk"
    return ""
