#!/usr/bin/env python3
"""Does the suite notice? Made-up scripts that fail, hang, crash or leave something behind.

    ./run exec python3 qa/standalone/test_standalone.py

Ends with a line of counts in the format of the other suites.
"""
import fcntl
import socket
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))

from cephcluster.config import STATE  # noqa: E402
from cephcluster.errors import ClusterError  # noqa: E402
from standalone.room import Bench, Outcome, Room, check_store  # noqa: E402
from standalone.scripts import QUICK, SCRIPTS, SKIPPED, Test, find_tests  # noqa: E402
from standalone.substitutions import Substitution, substituted  # noqa: E402

# As Ceph's scripts: the function's name is the argument, all is traced.
PROLOGUE = """
PS4='${BASH_SOURCE[0]}:$LINENO: ${FUNCNAME[0]}:  '
set -x
main() { if $1; then code=0; else code=1; fi; exit $code; }
"""


class Substitutions(unittest.TestCase):
    TABLE = (Substitution("a.sh", "export A=1", "export A=2", 2, "why"),)

    def test_all_places_and_only_these_are_changed(self) -> None:
        self.assertEqual(substituted("a.sh", "export A=1\n  export A=1\n# export A=1", self.TABLE),
                         "export A=2\n  export A=2\n# export A=1")
        self.assertEqual(substituted("b.sh", "export A=1", self.TABLE), "export A=1")

    def test_a_script_that_has_changed_is_refused(self) -> None:
        for text in ("export A=1", "export A=1\n" * 3, "export A=3\n" * 2):
            with self.assertRaisesRegex(ClusterError, "Ceph's script has changed"):
                substituted("a.sh", text, self.TABLE)


class Scratch(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(dir=STATE)
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)


class Tables(Scratch):
    def test_a_test_that_is_gone_is_noticed(self) -> None:
        known = sorted({*QUICK, *SKIPPED})
        for name in SCRIPTS:
            functions = known if name == SCRIPTS[0] else []
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"function {each}() {{\n" for each in functions))
        self.assertEqual(len(find_tests(self.root)), len(known))
        (self.root / SCRIPTS[0]).write_text("".join(f"function {each}() {{\n"
                                                    for each in known[1:]))
        with self.assertRaisesRegex(ClusterError, known[0]):
            find_tests(self.root)


class Stores(Scratch):
    def test_an_osd_that_takes_another_store_is_refused(self) -> None:
        for store in ("tablestore", "bluestore"):
            check_store(Bench(self.root, self.root, store))
        with self.assertRaisesRegex(ClusterError, "does not know nonestore: it would make a"):
            check_store(Bench(self.root, self.root, "nonestore"))


class Rooms(Scratch):
    def room(self, body: str, seconds: int = 60) -> Room:
        script = self.root / "ceph" / "qa" / "standalone" / "made-up.sh"
        script.parent.mkdir(parents=True)
        script.write_text(PROLOGUE + "function TEST_it() {\n" + body + "\n}\nmain $1\n")
        bench = Bench(self.root, self.root / "logs", "tablestore", test_seconds=seconds)
        return Room(bench, Test("made-up.sh", "TEST_it"))

    def run_script(self, body: str, seconds: int = 60) -> Outcome:
        return self.room(body, seconds).run()

    def test_a_script_that_ends_well_passes(self) -> None:
        self.assertEqual(self.run_script("true").failure, "")

    def test_a_failure_shows_what_came_before_it(self) -> None:
        outcome = self.run_script("echo one\n  ls /not/there || return 1")
        self.assertEqual(outcome.failure, "exit status 1")
        self.assertRegex("\n".join(outcome.details), "ls /not/there(.|\n)*return 1$")

    def test_a_room_that_was_ended_before_it_began_ends_at_once(self) -> None:
        room = self.room("sleep 1000")
        room.kill()
        self.assertEqual(room.run().failure, "killed by SIGKILL")

    def test_a_script_that_hangs_is_ended(self) -> None:
        self.assertEqual(self.run_script("sleep 1000", seconds=1).failure, "not done after 1 s")

    def test_a_crash_fails_a_script_that_ends_well(self) -> None:
        outcome = self.run_script(f"mkdir {self.root}/logs/made-up.it/crash/1_2")
        self.assertRegex(outcome.failure, "a daemon crashed")

    def test_what_a_script_leaves_behind_ends_with_it(self) -> None:
        lock = self.root / "lock"
        self.assertEqual(self.run_script(f"setsid flock {lock} sleep 1000 &\n"
                                         f"while flock -n {lock} true; do sleep 0.1; done"
                                         ).failure, "")
        with open(lock, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_a_port_that_is_taken_here_is_free_in_a_test(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            bind = (f"import socket; s = socket.socket(); s.bind(('127.0.0.1',"
                    f" {taken.getsockname()[1]})); s.listen();"
                    " socket.create_connection(s.getsockname())")
            self.assertEqual(self.run_script(f'python3 -c "{bind}"').failure, "")


def main() -> int:
    result = unittest.TextTestRunner(sys.stdout, verbosity=2).run(
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
