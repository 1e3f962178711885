"""A cluster for the length of one program: nothing of it is left behind."""
from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType

from .cluster import Cluster, Progress
from .config import STATE, STORE_BYTES, Layout, Settings

KEPT = "kept"   # marks a cluster that the user wanted to keep


class EphemeralCluster:
    """Starts a cluster below STATE on entry; stops and removes it on exit,
    also after an exception. Its logs stay until the next one for the same
    purpose starts. With `keep` all of it stays, running."""

    def __init__(self, purpose: str, store: str, osds: int, *, keep: bool = False,
                 osd_options: dict[str, str] | None = None, file_system: str = "",
                 file_system_bytes: int = STORE_BYTES, cephx: bool = False,
                 progress: Progress = lambda line: None):
        self.keep = keep
        self.purpose = purpose
        sweep(purpose)
        root = STATE / f"{purpose}.{os.getpid()}"
        settings = Settings.new(store, osds, osd_options, file_system, file_system_bytes, cephx)
        self.cluster = Cluster(root, settings, ephemeral=not keep, progress=progress)

    def __enter__(self) -> Cluster:
        try:
            self.cluster.layout.make_directories("" if self.keep else f"{self.purpose}-cluster")
            if self.keep:
                (self.cluster.layout.root / KEPT).touch()
            self.cluster.start()
            self.cluster.wait_clean()
        except BaseException:
            self.cluster.remove()
            raise
        return self.cluster

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None,
                 _trace: TracebackType | None) -> None:
        if not (self.keep and kind is None):
            self.cluster.remove()


def sweep(purpose: str) -> None:
    """Removes what a run left that was killed with SIGKILL: its daemons died
    with it, its directory did not."""
    for directory in STATE.glob(f"{purpose}.*"):
        owner = directory.name.rpartition(".")[2]
        if not owner.isdigit() or runs_python(int(owner)) or (directory / KEPT).exists():
            continue
        settings = Layout(directory).load()
        if settings is not None:
            Cluster(directory, settings).remove()
        else:
            shutil.rmtree(directory, ignore_errors=True)


def runs_python(pid: int) -> bool:
    try:
        return b"python" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
