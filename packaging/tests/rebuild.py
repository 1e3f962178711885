#!/usr/bin/env python3
"""Compiles objects of our programs a second time and compares them, byte by byte.

    rebuild.py [--all] [--sample N] [--seed TEXT] [--jobs N]

Runs inside the environment, after a build: each object by the command of that build, but without
ccache, and to another place: N of ours and N of Ceph's, which the seed chooses. Then
ceph-tablestore-tool is linked once more. --all: all objects that are ours, and all programs that
are packed, too. The last line is the count.
"""
import argparse
import hashlib
import itertools
import random
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

BUILD = Path("/ceph/build")
STATE = Path("/state")
TOOL = "bin/ceph-tablestore-tool"
PROGRAMS = (TOOL, "bin/ceph-osd", "bin/ceph-objectstore-tool", "bin/ceph-kvstore-tool")
OURS = re.compile(r"/(os|tools)/tablestore/")


@dataclass(frozen=True)
class Step:
    """A command of the build that makes one file."""

    output: str
    words: tuple[str, ...]

    @property
    def is_ours(self) -> bool:
        return bool(OURS.search(self.words[-1]))

    def again(self, output: Path) -> list[str]:
        """Without ccache, and with no list of dependencies."""
        words = [word for word in self.words if word != "-MD" and not word.endswith("ccache")]
        for option in ("-MT", "-MF"):
            at = words.index(option)
            del words[at:at + 2]
        words[words.index("-o") + 1] = str(output)
        return words


def commands(target: str) -> list[str]:
    return subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", target], check=True,
                          capture_output=True, text=True).stdout.splitlines()


def compilations() -> list[Step]:
    found = {}
    for line in (line for program in PROGRAMS for line in commands(program)):
        if " -c " not in line or " -MF " not in line or "&&" in line:
            continue
        words = tuple(shlex.split(line))
        if words[-1].endswith((".cc", ".cxx", ".cpp")):
            output = words[words.index("-o") + 1]
            found[output] = Step(output, words)
    return list(found.values())


def digest(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def same_object(step: Step, room: Path) -> str:
    """"" or what is wrong."""
    again = room / hashlib.sha256(step.output.encode()).hexdigest()
    done = subprocess.run(step.again(again), cwd=BUILD, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return done.stderr[-400:]
    differ = digest(again) != digest(BUILD / step.output)
    again.unlink()
    return "other bytes" if differ else ""


def same_program(program: str, room: Path) -> str:
    line = next(each for each in reversed(commands(program)) if f" -o {program} " in each)
    again = room / "linked"
    line = re.sub(r"-Wl,--dependency-file=\S+", "", line)
    line = line.replace(f" -o {program} ", f" -o {again} ")
    done = subprocess.run(["bash", "-c", line], cwd=BUILD, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return done.stderr[-400:]
    return "" if digest(again) == digest(BUILD / program) else "other bytes"


def chosen(options: argparse.Namespace) -> list[Step]:
    steps = compilations()
    ours = [step for step in steps if step.is_ours]
    pick = random.Random(options.seed)
    theirs = [step for step in steps if not step.is_ours]
    some = [*pick.sample(ours, options.sample), *pick.sample(theirs, options.sample)]
    return [*ours, *some[options.sample:]] if options.all else some


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--all", action="store_true", help="all of ours")
    parser.add_argument("--sample", type=int, default=4, metavar="N")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    steps = chosen(options)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="rebuild.", dir=STATE) as temporary:
        room = Path(temporary)
        programs = PROGRAMS if options.all else PROGRAMS[:1]
        with ThreadPoolExecutor(options.jobs) as pool:
            outcomes = pool.map(lambda step: (step.output, same_object(step, room)), steps)
            linked = ((program, same_program(program, room)) for program in programs)
            for name, wrong in itertools.chain(outcomes, linked):
                failed += bool(wrong)
                print(f"{'FAIL' if wrong else 'ok  '} {name}{f': {wrong}' if wrong else ''}",
                      flush=True)
    print(f"{len(steps) + len(programs) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
