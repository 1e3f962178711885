#!/usr/bin/env python3
"""How much memory an OSD takes under load, beside its osd_memory_target, and in the start after a
kill -9. Prints a line for each target; fails where the resident memory exceeds one by more than a
tenth. A young OSD stays below by what it does not need of osd_memory_base and of
osd_memory_expected_fragmentation; --tight sets these to nearly nothing, so that what is measured
alone keeps it at the target, and fails also where it is more than a tenth below."""
import argparse
import random
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))

import rados  # noqa: E402
from cephcluster.cluster import Cluster  # noqa: E402
from cephcluster.daemons import Daemon  # noqa: E402
from cephcluster.ephemeral import EphemeralCluster  # noqa: E402
from cephcluster.errors import ClusterError, Interrupted  # noqa: E402
from cephcluster.wait import signals_as_exceptions  # noqa: E402

MIB = 1 << 20
GIB = 1 << 30
POOL = "memory"
OBJECT_BYTES = 1 * MIB
KEYS = 50              # of omap, of every object
KEY_BYTES = 1000
SLACK = 1.1


@dataclass
class Seen:
    resident: list[int] = field(default_factory=list)
    mapped: list[int] = field(default_factory=list)
    caches: list[int] = field(default_factory=list)


def memory_of(osd: Daemon, name: str) -> int:
    """A line of /proc/PID/status in bytes."""
    for line in Path(f"/proc/{osd.pid()}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise ClusterError(f"no {name} of {osd.pid()}")


def write_one(io: rados.Ioctx, number: int) -> None:
    io.write(name_of(number), random.randbytes(OBJECT_BYTES), 0)
    with rados.WriteOpCtx() as op:
        keys = tuple(f"key-{n}" for n in range(KEYS))
        io.set_omap(op, keys, tuple(random.randbytes(KEY_BYTES) for _ in keys))
        io.operate_write_op(op, name_of(number))


def name_of(number: int) -> str:
    return f"object-{number}"


def load(cluster: Cluster, stop: threading.Event, objects: int, failed: list[Exception]) -> None:
    """Writes small and large, reads, and reads omap, all over the pool."""
    io = cluster.client.open_pool(POOL)
    try:
        while not stop.is_set():
            number = random.randrange(objects)
            match random.randrange(8):
                case 0:
                    write_one(io, number)
                case 1 | 2:
                    io.write(name_of(number), random.randbytes(4096),
                             random.randrange(OBJECT_BYTES // 4096) * 4096)
                case 3:
                    with rados.ReadOpCtx() as op:
                        rows, _ = io.get_omap_vals(op, "", "", KEYS)
                        io.operate_read_op(op, name_of(number))
                        list(rows)
                case _:
                    io.read(name_of(number), OBJECT_BYTES)
    except rados.Error as error:
        failed.append(error)


def look(osd: Daemon, seen: Seen) -> None:
    counters = osd.ask("perf dump")
    seen.resident.append(memory_of(osd, "VmRSS"))
    seen.mapped.append(counters["tablestore-pricache"]["mapped_bytes"])
    store = counters["tablestore"]
    seen.caches.append(store["onode_bytes"] + store["data_cache_bytes"] +
                       store["table_cache_bytes"])


def measure(target: int, options: argparse.Namespace) -> bool:
    settings = {"osd_memory_target": str(target)}
    if options.tight:
        settings |= {"osd_memory_base": str(64 * MIB), "osd_memory_expected_fragmentation": "0"}
    with EphemeralCluster("memory-target", "tablestore", 1, osd_options=settings) as cluster:
        osd = cluster.osds[0]
        cluster.create_pool(POOL, size=1)
        cluster.wait_clean()
        objects = int(target * options.fill // OBJECT_BYTES)
        io = cluster.client.open_pool(POOL)
        for number in range(objects):
            write_one(io, number)
        stop, failed, seen = threading.Event(), [], Seen()
        threads = [threading.Thread(target=load, args=(cluster, stop, objects, failed))
                   for _ in range(options.threads)]
        for thread in threads:
            thread.start()
        try:
            deadline = time.monotonic() + options.seconds
            while time.monotonic() < deadline and not failed:
                time.sleep(1)
                look(osd, seen)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        if failed:
            raise ClusterError(f"the load failed: {failed[0]}")
        osd.kill()
        cluster.restart_killed(osd)
        return report(target, seen, memory_of(osd, "VmHWM"), options.tight)


def report(target: int, seen: Seen, restart: int, tight: bool) -> bool:
    late = slice(len(seen.resident) // 2, None)
    most = max(seen.resident)
    resident = mean(seen.resident[late])
    print(f"target {target / GIB:.2f} GiB: resident at most {most / GIB:.2f},"
          f" in the second half {resident / GIB:.2f} ({resident / target:.0%});"
          f" mapped {mean(seen.mapped[late]) / GIB:.2f};"
          f" caches {mean(seen.caches[late]) / GIB:.2f}; restart at most {restart / GIB:.2f}",
          flush=True)
    if tight and resident < target * (2 - SLACK):
        return False
    return most <= target * SLACK and restart <= target * SLACK


def mean(numbers: list[int]) -> float:
    return sum(numbers) / len(numbers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", default="1.5,2,4", help="GiB (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=120, help="of load (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--fill", type=float, default=1.25,
                        help="objects, in targets (default: %(default)s)")
    parser.add_argument("--tight", action="store_true", help="see above")
    options = parser.parse_args()
    signals_as_exceptions()
    try:
        met = [measure(int(float(word) * GIB), options) for word in options.targets.split(",")]
    except Interrupted as interrupted:
        sys.exit(128 + interrupted.signal_number)
    sys.exit(0 if all(met) else "a target was missed by more than a tenth")


if __name__ == "__main__":
    main()
