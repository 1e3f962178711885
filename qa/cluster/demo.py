#!/usr/bin/env python3
"""The main job: a cluster on TableStore, rados bench from 4K to 1M with every
byte read back and compared, and a table of what came out. Stops and removes
everything that it started, also on ^C."""
import argparse
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cephcluster.bench import RadosBench, ReadBack, Written  # noqa: E402
from cephcluster.cluster import Cluster  # noqa: E402
from cephcluster.config import STORES, store_bytes  # noqa: E402
from cephcluster.counters import CommitCounters  # noqa: E402
from cephcluster.ephemeral import EphemeralCluster  # noqa: E402
from cephcluster.errors import ClusterError, Interrupted  # noqa: E402
from cephcluster.wait import signals_as_exceptions  # noqa: E402

POOL = "demo"
DEFAULT_SIZES = "4K,8K,16K,32K,64K,128K,256K,512K,1M"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}
LARGEST = 64 << 20

HEADER = (f"{'':>6}   {'write':^40}   {'read back':^31}\n"
          f"{'size':>6}   {'IOPS':>8} {'MB/s':>8} {'mean ms':>10} {'p99 ms':>11}"
          f"   {'IOPS':>8} {'MB/s':>8} {'verified':>13}")


def size_of(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KM]?)", text.strip().upper())
    size = int(found.group(1)) * UNITS[found.group(2)] if found else 0
    if not 64 <= size <= LARGEST:
        raise argparse.ArgumentTypeError(f"'{text}' is no size between 64 and 64M, like 4K or 1M")
    return size


def sizes_of(text: str) -> list[int]:
    return [size_of(each) for each in text.split(",")]


def name_of(size: int) -> str:
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no positive number")
    return int(text)


class Line:
    """What happens now, on a terminal only; the next row replaces it."""

    def __init__(self) -> None:
        self._shown = sys.stdout.isatty()

    def now(self, text: str) -> None:
        if self._shown:
            print(f"\r\033[K{text}", end="", flush=True)

    def clear(self) -> None:
        self.now("")


def row(size: int, written: Written, read: ReadBack, p99_ms: float) -> str:
    return (f"{name_of(size):>6}   {written.iops:8.0f} {written.mb_per_second:8.1f}"
            f" {written.mean_ms:10.2f} {p99_ms:11.2f}"
            f"   {read.iops:8.0f} {read.mb_per_second:8.1f}"
            f" {read.operations:6} objects")


def measure(cluster: Cluster, options: argparse.Namespace) -> None:
    bench = RadosBench(cluster, POOL, options.threads, store_bytes(options.store) // 4)
    line = Line()
    print(f"\n{HEADER}", flush=True)
    for size in options.sizes:
        line.now(f"{name_of(size)}: writing for {options.seconds} s")
        written = bench.write(size, options.seconds)
        line.now(f"{name_of(size)}: reading {written.operations} objects back")
        read = bench.read_back()
        if read.operations < written.operations:
            raise ClusterError(f"{written.operations} objects of {name_of(size)} were written,"
                               f" only {read.operations} could be read in time")
        line.now(f"{name_of(size)}: writing again, for the latency's tail")
        p99_ms = bench.tail(size, max(1.0, options.seconds / 2))
        line.clear()
        print(row(size, written, read, p99_ms), flush=True)
        line.now(f"{name_of(size)}: removing the objects")
        bench.clean_up()
    line.clear()


def run(options: argparse.Namespace) -> None:
    began = time.monotonic()
    print(f"{options.osds} OSD(s) on {options.store}, {options.threads} writes in flight,"
          f" {options.seconds} s per size", flush=True)
    with EphemeralCluster("demo", options.store, options.osds, keep=options.keep,
                          progress=lambda step: print(f"  {step}", flush=True)) as cluster:
        cluster.create_pool(POOL)
        before = CommitCounters.of(cluster)
        measure(cluster, options)
        print("\nrados bench wrote, read back and compared every byte. p99 is from a second run as"
              "\ndeep and half as long, by a client that times each write; rados bench tells none.")
        spent = CommitCounters.of(cluster) - before
        if spent.groups:
            print(spent.report())
        if options.keep:
            root = cluster.layout.on_host(cluster.layout.root)
            print(f"\nkept and running:\n"
                  f"  ./run exec ceph -c {cluster.layout.conf} -s\n"
                  f"  ./run cluster stop --remove --dir {root}")
    print(f"done in {time.monotonic() - began:.0f} s"
          f"{'' if options.keep else '; everything is stopped and removed'}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    parser.add_argument("--store", choices=STORES, default="tablestore",
                        help="(default: %(default)s)")
    parser.add_argument("--osds", type=positive, default=1, metavar="N",
                        help="each object on min(3, N) of them (default: %(default)s)")
    parser.add_argument("--seconds", type=positive, default=5, metavar="S",
                        help="of writing, for each size (default: %(default)s)")
    parser.add_argument("--sizes", type=sizes_of, default=DEFAULT_SIZES, metavar="LIST",
                        help="(default: %(default)s)")
    parser.add_argument("--threads", type=positive, default=16, metavar="N",
                        help="operations in flight (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    options = parser.parse_args()
    signals_as_exceptions()
    try:
        run(options)
    except ClusterError as error:
        print(flush=True)
        error.report("demo")
        sys.exit(1)
    except Interrupted as interrupted:
        print("\ndemo: interrupted; everything is stopped and removed", file=sys.stderr)
        sys.exit(128 + interrupted.signal_number)


if __name__ == "__main__":
    main()
