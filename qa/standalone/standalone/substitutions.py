"""What is changed in Ceph's scripts before they run, all of it.

The scripts choose no store: an OSD takes the one of its ceph.conf, and inject_eio names the option
by the OSD's `type` file. So neither needs a change but where ceph.conf is, and the name under which
ceph-kvstore-tool knows the store.
"""
from __future__ import annotations

from dataclasses import dataclass

from cephcluster.errors import ClusterError


@dataclass(frozen=True)
class Substitution:
    file: str       # below qa/standalone
    old: str        # a whole line, without its indentation
    new: str
    count: int      # how often it is there
    why: str


HELPERS = "ceph-helpers.sh"
SNAPS = "scrub/osd-scrub-snaps.sh"

SUBSTITUTIONS = (
    Substitution(
        HELPERS, "export CEPH_CONF=/dev/null", "export CEPH_CONF=$TABLESTORE_QA_CONF", 2,
        "the OSDs' store, and what Debian's mon must be told, are in a ceph.conf"),
    Substitution(
        HELPERS, "TIMEOUT=300", "TIMEOUT=$((300 * TABLESTORE_QA_PATIENCE))", 1,
        "a slow machine waits longer: --patience"),
    Substitution(
        HELPERS, "WAIT_FOR_CLEAN_TIMEOUT=90",
        "WAIT_FOR_CLEAN_TIMEOUT=$((90 * TABLESTORE_QA_PATIENCE))", 1,
        "a slow machine waits longer: --patience"),
    Substitution(
        SNAPS, "ceph-kvstore-tool bluestore-kv $dir/${osd} list 2> /dev/null > $dir/drk.log",
        "ceph-kvstore-tool ${TABLESTORE_QA_STORE}-kv $dir/${osd} list 2> /dev/null > $dir/drk.log",
        4,
        "looks at the rows of SnapMapper"),
)


def substituted(file: str, text: str, table: tuple[Substitution, ...] = SUBSTITUTIONS) -> str:
    """The text of `file` with its substitutions made. A ClusterError where one does not match as
    often as the table says: then Ceph's script is another one than the table was written for."""
    lines = text.split("\n")
    for each in table:
        if each.file != file:
            continue
        found = [at for at, line in enumerate(lines) if line.strip() == each.old]
        if len(found) != each.count:
            raise ClusterError(
                f"qa/standalone/{file} has the line '{each.old}' {len(found)} times, expected"
                f" {each.count}: Ceph's script has changed",
                hint="look at what it does now and mend qa/standalone/standalone/substitutions.py")
        for at in found:
            lines[at] = lines[at].replace(each.old, each.new)
    return "\n".join(lines)
