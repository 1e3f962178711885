"""The scripts of Ceph's qa/standalone that are run, and what is known of each of their tests."""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cephcluster.errors import ClusterError

# What the scripts source.
SHARED = ("ceph-helpers.sh", "scrub/scrub-helpers.sh")

SCRIPTS = (
    "erasure-code/test-erasure-eio.sh",
    "osd/osd-rep-recov-eio.sh",
    "scrub/osd-scrub-repair.sh",
    "scrub/osd-scrub-snaps.sh",
)

# --quick: errors of data and of attributes on replicas and on shards, found by a client's read, by
# scrub and by recovery, in a few minutes. In the order in which they start: the longest first.
QUICK = (
    "TEST_rados_get_with_eio",
    "TEST_corrupt_and_repair_replicated",
    "TEST_ec_object_attr_read_error",
    "TEST_rados_get_with_subreadall_eio_shard_0",
)

# Not run, and why.
SKIPPED = {
    "TEST_periodic_scrub_replicated": "Ceph has disabled it: it returns at once",
}

# As the scripts find their own tests when none is named.
DEFINITION = re.compile(r"^function (TEST_[0-9a-z_]+)\(\)", re.MULTILINE)


@dataclass(frozen=True)
class Test:
    script: str     # below qa/standalone
    function: str

    @property
    def name(self) -> str:
        return f"{Path(self.script).stem}.{self.function.removeprefix('TEST_')}"

    @property
    def quick(self) -> bool:
        return self.function in QUICK

    @property
    def skipped(self) -> str:
        """Why it is not run, or nothing."""
        return SKIPPED.get(self.function, "")


def find_tests(standalone: Path) -> list[Test]:
    """Every test of every script; a ClusterError where the tables above name one that is gone."""
    tests = [Test(script, function) for script in SCRIPTS
             for function in DEFINITION.findall((standalone / script).read_text())]
    gone = {*QUICK, *SKIPPED} - {test.function for test in tests}
    if gone:
        raise ClusterError(f"no script of {', '.join(SCRIPTS)} has {', '.join(sorted(gone))}",
                           hint="mend the tables in qa/standalone/standalone/scripts.py")
    return tests
