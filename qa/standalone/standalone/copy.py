"""A tree that looks to the scripts like Ceph's source, with what they need of it."""
from __future__ import annotations

import difflib
from pathlib import Path

from cephcluster.config import MGR_MODULES
from cephcluster.errors import ClusterError

from .scripts import SCRIPTS, SHARED
from .substitutions import substituted


def copy_scripts(ceph: Path, root: Path) -> str:
    """Copies the scripts of the source `ceph` into `root`, to be their CEPH_ROOT, and makes the
    substitutions. Returns all that differs, as a diff."""
    changes: list[str] = []
    for name in (*SHARED, *SCRIPTS):
        source, target = (tree / "qa" / "standalone" / name for tree in (ceph, root))
        if not source.exists():
            raise ClusterError(f"Ceph's source has no {source}",
                               hint="set the environment up first: ./run setup")
        theirs = source.read_text()
        ours = substituted(name, theirs)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(ours)
        target.chmod(0o755)
        changes += difflib.unified_diff(theirs.splitlines(keepends=True),
                                        ours.splitlines(keepends=True),
                                        f"ceph/qa/standalone/{name}", f"run/qa/standalone/{name}")
    # Of the mgr that is run, which is the packaged one.
    modules = root / "src" / "pybind" / "mgr"
    modules.parent.mkdir(parents=True)
    modules.symlink_to(MGR_MODULES)
    return "".join(changes)
