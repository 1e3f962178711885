#!/usr/bin/env python3
"""A Ceph cluster to play with, on this machine only."""
import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cephcluster.cluster import Cluster  # noqa: E402
from cephcluster.config import STATE, STORES, Layout, Settings  # noqa: E402
from cephcluster.errors import ClusterError, Interrupted  # noqa: E402
from cephcluster.wait import signals_as_exceptions  # noqa: E402

DEFAULT_DIRECTORY = STATE / "cluster"


def existing(directory: Path) -> Settings:
    settings = Layout(directory).load()
    if settings is None:
        raise ClusterError(f"there is no cluster in {directory}",
                           hint="start one: ./run cluster start")
    return settings


def reach(cluster: Cluster) -> str:
    layout = cluster.layout
    return (f"  ./run exec ceph -c {layout.conf} -s\n"
            f"  logs: {layout.on_host(layout.root / 'log')}")


def start(options: argparse.Namespace) -> None:
    began = time.monotonic()
    layout = Layout(options.dir)
    settings = layout.load()
    if settings is None:
        if layout.root.exists() and any(layout.root.iterdir()):
            raise ClusterError(f"{layout.root} is not empty and holds no cluster",
                               hint="choose another --dir")
        settings = Settings.new(options.store or "tablestore", options.osds or 1)
    elif options.store not in (None, settings.store) or options.osds not in (None, settings.osds):
        raise ClusterError(
            f"{layout.root} holds a cluster of {settings.osds} OSD(s) on {settings.store}",
            hint="start it without --store and --osds, choose another --dir,"
                 " or remove it: ./run cluster stop --remove")
    cluster = Cluster(options.dir, settings, progress=lambda line: print(f"  {line}", flush=True))
    if len(cluster.running()) == len(cluster.daemons):
        print(f"this cluster runs already:\n{reach(cluster)}")
        return
    print(f"{settings.osds} OSD(s) on {settings.store} in {layout.root}", flush=True)
    try:
        cluster.start()
        cluster.wait_clean()
    except BaseException:
        cluster.stop()
        raise
    print(f"up after {time.monotonic() - began:.0f} s; reach it with\n{reach(cluster)}\n"
          f"  ./run cluster stop{where(options)}")


def stop(options: argparse.Namespace) -> None:
    cluster = Cluster(options.dir, existing(options.dir))
    running = cluster.running()
    if options.remove:
        cluster.remove()
    else:
        cluster.stop()
    stopped = ", ".join(daemon.name for daemon in running) or "nothing was running"
    print(f"stopped: {stopped}" if running else stopped)
    print(f"removed {options.dir}" if options.remove else
          f"its data stays in {options.dir}; ./run cluster start{where(options)} starts it again")


def status(options: argparse.Namespace) -> None:
    cluster = Cluster(options.dir, existing(options.dir))
    print(f"{cluster.settings.osds} OSD(s) on {cluster.settings.store} in {options.dir}")
    for daemon in cluster.daemons:
        pid = daemon.pid()
        print(f"  {daemon.name:8} {f'runs, process {pid}' if pid else 'does not run'}")
    if not cluster.mon.pid():
        sys.exit(1)
    answer = cluster.client.mon("status")
    groups = {each["state_name"]: each["count"] for each in answer["pgmap"]["pgs_by_state"]}
    print(f"  {answer['health']['status']},"
          f" {answer['osdmap']['num_up_osds']} of {answer['osdmap']['num_osds']} OSDs up,"
          f" placement groups: {groups or 'none'}\n{reach(cluster)}")
    if len(cluster.running()) != len(cluster.daemons):
        sys.exit(1)


def where(options: argparse.Namespace) -> str:
    return "" if options.dir == DEFAULT_DIRECTORY else f" --dir {options.dir}"


def inside(directory: Path) -> Path:
    """The user may name the directory as the host sees it."""
    host_state = os.environ.get("TABLESTORE_HOST_STATE")
    if host_state and directory.is_relative_to(host_state):
        return STATE / directory.relative_to(host_state)
    return directory.absolute()


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run cluster", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="start|stop|status")
    for verb, function, text in (
            ("start", start, "make a cluster, or start the one in --dir again"),
            ("stop", stop, "stop it; its data stays"),
            ("status", status, "what runs; exit status 1 if something does not")):
        each = verbs.add_parser(verb, help=text, description=text)
        each.set_defaults(function=function)
        each.add_argument("--dir", type=Path, default=DEFAULT_DIRECTORY, metavar="D",
                          help="the cluster's directory, not on a tmpfs (default: %(default)s)")
        if verb == "start":
            each.add_argument("--store", choices=STORES, help="(default: tablestore)")
            each.add_argument("--osds", type=int, metavar="N", help="(default: 1)")
        if verb == "stop":
            each.add_argument("--remove", action="store_true", help="and delete all of its data")
    options = parser.parse_args()
    options.dir = inside(options.dir)
    signals_as_exceptions()
    try:
        options.function(options)
    except ClusterError as error:
        error.report("cluster")
        sys.exit(1)
    except Interrupted as interrupted:
        print("cluster: interrupted; what had started is stopped again", file=sys.stderr)
        sys.exit(128 + interrupted.signal_number)


if __name__ == "__main__":
    main()
