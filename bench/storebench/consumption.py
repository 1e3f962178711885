"""What daemons and the disk have consumed, and what the OSDs' stores say of themselves. Names as in
ceph_tablestore_bench's results."""
from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cephcluster.cluster import Cluster
from cephcluster.daemons import Daemon

TICKS = os.sysconf("SC_CLK_TCK")
SECTIONS = ("tablestore", "statistics", "bluestore", "bluefs", "kstore")
# BlueStore writes deferred data down after three seconds without new ones.
QUIET_SECONDS = 4.0
QUIET_BYTES = 1 << 20
MOST_SETTLE_SECONDS = 20.0


def proc(daemon: Daemon, name: str) -> str:
    """A file of the kernel's about its process."""
    try:
        return Path(f"/proc/{daemon.pid()}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        daemon.check_alive()
        raise


def processor_seconds(daemon: Daemon) -> tuple[float, float]:
    """In the program itself, and in the kernel."""
    stat = proc(daemon, "stat").rpartition(")")[2].split()
    return int(stat[11]) / TICKS, int(stat[12]) / TICKS


def process_usage(daemon: Daemon) -> dict[str, float]:
    user, system = processor_seconds(daemon)
    io = dict(line.split(": ") for line in proc(daemon, "io").splitlines())
    switches = 0
    for task in Path(f"/proc/{daemon.pid()}/task").iterdir():
        try:
            status = (task / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue        # a thread has ended
        switches += sum(int(line.split()[1]) for line in status.splitlines()
                        if "ctxt_switches" in line)
    return {"user_seconds": user, "system_seconds": system, "context_switches": switches,
            "write_bytes": int(io["write_bytes"]), "read_bytes": int(io["read_bytes"])}


def machine_usage(folder: Path) -> dict[str, float]:
    """Of all that runs, on all processors and on the disk of a directory, or on the device that a
    store there has as `block`."""
    block = folder / "block"
    device = block.stat().st_rdev if block.is_block_device() else folder.stat().st_dev
    disk_file = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    disk = [int(word) for word in disk_file.read_text().split()] if disk_file.exists() else [0] * 17
    machine = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return {"disk_write_bytes": disk[6] * 512, "disk_flushes": disk[15],
            "machine_busy_seconds": (sum(machine[:7]) - machine[3] - machine[4]) / TICKS,
            "machine_stolen_seconds": machine[7] / TICKS}


def usage_of(osds: Sequence[Daemon]) -> dict[str, float]:
    """What the OSDs' processes, taken together, and the disk below them have consumed."""
    total: Counter[str] = Counter()
    for osd in osds:
        total.update(process_usage(osd))
    return {**total, **machine_usage(osds[0].layout.data(osds[0].name))}


def since(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}


def peak_memory_of(osds: Sequence[Daemon]) -> int:
    return sum(int(line.split()[1]) << 10 for osd in osds
               for line in proc(osd, "status").splitlines()
               if line.startswith("VmHWM"))


def counters_of(osds: Sequence[Daemon]) -> dict[str, float]:
    """The flat numbers of the stores' own sections, added up; TableStore's engine tells more
    elsewhere."""
    total: Counter[str] = Counter()
    for osd in osds:
        dump = osd.ask("perf dump")
        if "tablestore" in dump:
            dump["statistics"] = osd.ask("dump_objectstore_kv_stats")
        total.update({f"{section}.{name}": value for section in SECTIONS
                      for name, value in dump.get(section, {}).items()
                      if isinstance(value, (int, float))})
    return dict(total)


def changes(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Of counters, those that changed."""
    return {path: value - before.get(path, 0) for path, value in after.items()
            if value != before.get(path, 0)}


def settle(cluster: Cluster, seconds: float) -> None:
    """Until the OSDs have written hardly anything for a while, at most so long."""
    deadline = time.monotonic() + min(seconds, MOST_SETTLE_SECONDS)
    last, since_when = written(cluster), time.monotonic()
    while (now := time.monotonic()) < deadline and now - since_when < QUIET_SECONDS:
        time.sleep(0.2)
        cluster.check_daemons()
        if written(cluster) - last > QUIET_BYTES:
            last, since_when = written(cluster), time.monotonic()


def written(cluster: Cluster) -> float:
    return sum(process_usage(osd)["write_bytes"] for osd in cluster.osds)
