"""CephFS: creation, stat, listing, renaming and removal of small files, by libcephfs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cephcluster.cluster import Cluster
from cephcluster.daemons import Daemon
from cephcluster.errors import ClusterError
from cephcluster.services import start_file_system
from cephcluster.wait import wait_until

from ..consumption import settle
from .load import Load
from .meter import measured
from .together import Done, of_workers
from .workers import Workers

FIRST_SECONDS = 1
DROP_SECONDS = 60
FORGOTTEN = 50      # inodes: its own, which it keeps, and not one directory's files


class Metadata:
    """The phases of one run. Each client looks at what the next one has made; `files` is how many
    each has."""

    def __init__(self, cluster: Cluster, load: Load, progress: Callable[[str], None]):
        self._cluster = cluster
        self._load = load
        self._progress = progress
        self._files = [0] * load.depth
        self.found: list[dict[str, Any]] = []

    def workers(self) -> Workers:
        settings = {"kind": "cephfs", "conf": str(self._cluster.layout.conf),
                    "size": self._load.size}
        return Workers(self._load.depth, settings, self._cluster.check_daemons)

    def create(self, workers: Workers, seconds: float) -> Done:
        reported = workers.phase("create", seconds, files=self._files)
        self._files = [had + each["operations"] for had, each in zip(self._files, reported)]
        return of_workers(reported)

    def measure_creation(self, workers: Workers) -> None:
        self._measure("create", lambda: self.create(workers, self._load.seconds), True,
                      self._load.size)

    def measure(self, name: str, workers: Workers, changes: bool) -> None:
        self._measure(name, lambda: workers.done(name, self._load.seconds, files=self._files),
                      changes)

    def _measure(self, name: str, work: Callable[[], Done], changes: bool, size: int = 0) -> None:
        self._progress(name)
        self.found.append(measured(self._cluster, name, self._load.depth, work, size,
                                   self._load.seconds if changes else 0))


def phases(cluster: Cluster, load: Load, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Who looks has made nothing: else a file's maker would have to give up its write access at
    each look, which now and then takes until the metadata server's next tick, five seconds. Before
    the listing that server forgets, too: directories come from the OSDs."""
    progress("making a file system")
    mds = start_file_system(cluster)
    run = Metadata(cluster, load, progress)
    with run.workers() as workers:
        progress("first files")
        run.create(workers, FIRST_SECONDS)
        settle(cluster, load.seconds)
        run.measure_creation(workers)
    flushed = mds.ask("flush journal", DROP_SECONDS)
    if flushed["return_code"]:
        raise ClusterError(f"the metadata server's journal was not flushed: {flushed}")
    with run.workers() as workers:
        run.measure("stat", workers, changes=False)
    progress("forgetting what was made")
    wait_until("the metadata server to forget", lambda: forgets(mds), DROP_SECONDS)
    with run.workers() as workers:
        run.measure("readdir", workers, changes=False)
        run.measure("rename", workers, changes=True)
        run.measure("unlink", workers, changes=True)
    return run.found


def forgets(mds: Daemon) -> bool:
    mds.ask("cache drop", DROP_SECONDS + 30, timeout=DROP_SECONDS)
    return mds.ask("perf dump")["mds_mem"]["ino"] < FORGOTTEN
