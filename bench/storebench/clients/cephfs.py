"""CephFS: creation, stat, listing, renaming and removal of small files, by libcephfs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cephcluster.cluster import Cluster
from cephcluster.services import start_file_system

from .load import Load
from .meter import measured
from .together import Done, of_workers
from .workers import Workers

FIRST_SECONDS = 1
DROP_SECONDS = 60


def phases(cluster: Cluster, load: Load, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Each looks at what the next one has made. Before the listing the metadata server forgets
    what it knows: directories come from the OSDs."""
    progress("making a file system")
    mds = start_file_system(cluster)
    settings = {"kind": "cephfs", "conf": str(cluster.layout.conf), "size": load.size}
    with Workers(load.depth, settings, cluster.check_daemons) as workers:
        progress("first files")
        made = [each["operations"] for each in workers.phase("create", FIRST_SECONDS)]
        found = []

        def create() -> Done:
            reported = workers.phase("create", load.seconds)
            made[:] = [sum(both) for both in zip(made, (each["operations"] for each in reported))]
            return of_workers(reported)

        for name in ("create", "stat", "readdir", "rename", "unlink"):
            progress(name)
            if name == "readdir":
                mds.ask("cache drop", DROP_SECONDS + 30, timeout=DROP_SECONDS)
            others = made[1:] + made[:1]
            work = create if name == "create" else lambda: workers.done(name, load.seconds, others)
            found.append(measured(cluster, name, load.depth, work,
                                  load.size if name == "create" else 0,
                                  0 if name in ("stat", "readdir") else load.seconds))
    return found
