"""Which program a command line is for. The programs on the host are replaced by ones that say
which they are and what they were given."""
from __future__ import annotations

from dataclasses import dataclass, field

from fresh_host import FreshHost

OURS, PACKAGED = "tablestore's", "the packaged one"
OSDS = "/var/lib/ceph/osd"

# Directories with a file `type`.
TYPES = {
    f"{OSDS}/ceph-1": "tablestore",
    f"{OSDS}/ceph-2": "bluestore",
    f"{OSDS}/other-1": "bluestore",
    f"{OSDS}/other-2": "tablestore",
    "/elsewhere/5": "tablestore",
    "/with space/1": "tablestore",
}
ASKS_FOR_IT = "[osd]\nosd objectstore = tablestore\n[osd.9]\nosd_objectstore = bluestore\n"
ELSEWHERE = "[osd]\n\tosd data = /elsewhere/$id\n"


@dataclass(frozen=True)
class Case:
    words: list[str]
    runs: str
    conf: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def osd(words: list[str], runs: str, conf: str = "", **environment: str) -> Case:
    return Case(["ceph-osd", *words], runs, conf, environment)


def tool(words: list[str], runs: str) -> Case:
    return Case(["ceph-objectstore-tool", *words], runs)


CASES = (
    # The directory, found by the number as ceph-osd@.service gives it.
    osd(["-f", "--cluster", "ceph", "--id", "1", "--setuser", "ceph", "--setgroup", "ceph"], OURS),
    osd(["-f", "--cluster", "ceph", "--id", "2", "--setuser", "ceph", "--setgroup", "ceph"],
        PACKAGED),
    osd(["-i", "1"], OURS),
    osd(["--id=1"], OURS),
    osd(["-n", "osd.1", "-f"], OURS),
    osd(["--name=osd.1"], OURS),
    osd(["--cluster", "other", "-i", "1"], PACKAGED),
    osd(["--cluster=other", "-i", "2"], OURS),
    osd(["-i", "3"], PACKAGED),
    osd([], PACKAGED),
    osd(["--help"], PACKAGED),
    # The directory, named by the command line, the environment or the configuration.
    osd(["-i", "3", "--osd-data", f"{OSDS}/ceph-1"], OURS),
    osd(["-i", "3", f"--osd_data={OSDS}/ceph-1"], OURS),
    osd(["-i", "1", "--osd-data", "/with space/$id"], OURS),
    osd(["-i", "1"], PACKAGED, CEPH_ARGS=f"--osd-data {OSDS}/ceph-2"),
    osd(["-i", "5"], OURS, ELSEWHERE),
    osd(["-i", "1"], PACKAGED, ELSEWHERE),
    osd(["-i", "5", "-c", "/tmp/other.conf"], OURS),
    # A directory that is none yet: what is asked for.
    osd(["-i", "3", "--mkfs", "--osd-objectstore", "tablestore"], OURS),
    osd(["-i", "3", "--mkfs", "--osd_objectstore=tablestore"], OURS),
    osd(["-i", "3", "--mkfs", "--osd-objectstore", "bluestore"], PACKAGED, ASKS_FOR_IT),
    osd(["-i", "3", "--mkfs"], OURS, CEPH_ARGS="--osd-objectstore=tablestore"),
    osd(["-i", "3", "--mkfs"], OURS, ASKS_FOR_IT),
    osd(["-i", "9", "--mkfs"], PACKAGED, ASKS_FOR_IT),
    # The directory knows better than both.
    osd(["-i", "2", "--osd-objectstore", "tablestore"], PACKAGED, ASKS_FOR_IT),
    osd(["-i", "1", "--osd-objectstore", "bluestore"], OURS),
    tool(["--data-path", f"{OSDS}/ceph-1", "--op", "list"], OURS),
    tool([f"--data-path={OSDS}/ceph-1", "--op", "list"], OURS),
    tool(["--data-path", "/with space/1", "--op", "list"], OURS),
    tool(["--data-path", f"{OSDS}/ceph-2", "--op", "list"], PACKAGED),
    tool(["--data-path", f"{OSDS}/ceph-2", "--type", "tablestore"], PACKAGED),
    tool(["--data-path", f"{OSDS}/ceph-3", "--op", "mkfs", "--type", "tablestore"], OURS),
    tool(["--data-path", f"{OSDS}/ceph-3", "--op", "mkfs", "--type=bluestore"], PACKAGED),
    tool(["--op", "dup", "--data-path", f"{OSDS}/ceph-2",
          "--target-data-path", f"{OSDS}/ceph-1"], OURS),
    tool(["--op", "dup", "--data-path", f"{OSDS}/ceph-1",
          f"--target-data-path={OSDS}/ceph-2"], OURS),
    tool(["--help"], PACKAGED),
)


def run_all(host: FreshHost) -> list[str]:
    """A line for each case that ran the wrong program, or handed it other words."""
    for directory, kind in TYPES.items():
        host.write(f"{directory}/type", f"{kind}\n")
    host.write("/tmp/other.conf", ELSEWHERE)
    for program in ("ceph-osd", "ceph-objectstore-tool"):
        for folder, name in (("", OURS), ("packaged/", PACKAGED)):
            host.write(f"/usr/lib/ceph-tablestore/{folder}{program}",
                       f'#!/bin/sh\nprintf "%s\\n" "{name}" "$@"\n', 0o755)
    wrong = []
    for case in CASES:
        host.write("/etc/ceph/ceph.conf", case.conf)
        said = host.run(*case.words, **case.environment).splitlines()
        if said != [case.runs, *case.words[1:]]:
            wrong.append(f"{case} ran {said}")
    return wrong
