"""What of a run of `rados bench` counts, and in which order stores have their turn."""
from __future__ import annotations

import contextlib
import io
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

import main
from samples import run
from storebench import consumption, rados


class Writes(unittest.TestCase):
    """Against a clock of processor seconds: a write takes 1, a removal 100."""

    def setUp(self) -> None:
        self.seconds = self.asked = 0.0
        self.taken = "2.5"
        self.removals = 0
        for name, fake in (("rados_write", self.write), ("rados_remove", self.remove),
                           ("usage_of", lambda _: {"user_seconds": self.seconds})):
            patch = mock.patch.object(rados, name, fake)
            patch.start()
            self.addCleanup(patch.stop)
        self.writes = rados.Writes(SimpleNamespace(osds=[]), 4096, 16, 1 << 30)

    def write(self, _cluster: object, _size: int, _threads: int, seconds: float,
              _most_bytes: int) -> dict[str, Any]:
        self.seconds += 1
        self.asked = seconds
        return {"total_time_run": self.taken}

    def remove(self, *_: object) -> None:
        self.seconds += 100
        self.removals += 1

    def test_what_a_removal_takes_is_nobodys(self) -> None:
        self.writes.come_and_go(10, lambda: None)
        self.assertEqual(self.removals, rados.BOUTS)
        self.assertEqual(self.writes.usage["user_seconds"], rados.BOUTS)

    def test_a_store_that_is_faster_or_slower_has_as_many_removals(self) -> None:
        for rate, seconds in (("0.1", 100), ("50", 100), ("2.5", 7)):
            self.removals, self.taken = 0, rate
            self.writes.come_and_go(seconds, lambda: None)
            self.assertEqual(self.removals, rados.BOUTS)
            self.assertEqual(self.asked, seconds / rados.BOUTS)

    def test_the_space_is_looked_at_while_the_last_objects_are_there(self) -> None:
        seen: list[int] = []
        self.writes.come_and_go(10, lambda: seen.append(self.removals))
        self.assertEqual(seen, [rados.BOUTS - 1])


class Settling(unittest.TestCase):
    """Against a clock, and a disk that is written to until some time."""

    def settled_after(self, busy_seconds: float, most_seconds: float,
                      bytes_per_second: int) -> float:
        now = 0.0

        def sleep(seconds: float) -> None:
            nonlocal now
            now += seconds

        def written(_: object) -> float:
            return min(now, busy_seconds) * bytes_per_second

        clock = SimpleNamespace(monotonic=lambda: now, sleep=sleep)
        with mock.patch.object(consumption, "time", clock), \
                mock.patch.object(consumption, "written", written):
            consumption.settle(SimpleNamespace(check_daemons=lambda: None), most_seconds)
        return now

    def test_it_ends_when_little_was_written_for_a_while(self) -> None:
        self.assertAlmostEqual(self.settled_after(5, 60, 100 << 20),
                               5 + consumption.QUIET_SECONDS, delta=0.5)

    def test_a_trickle_counts_as_nothing(self) -> None:
        """A daemon writes some bytes always."""
        self.assertAlmostEqual(self.settled_after(1000, 60, 100 << 10),
                               consumption.QUIET_SECONDS, delta=0.5)

    def test_it_ends_at_last(self) -> None:
        self.assertAlmostEqual(self.settled_after(1000, 60, 100 << 20),
                               consumption.MOST_SETTLE_SECONDS, delta=0.5)
        self.assertAlmostEqual(self.settled_after(1000, 7, 100 << 20), 7, delta=0.5)


class Shown(unittest.TestCase):
    def test_runs_that_failed_are_listed(self) -> None:
        runs = [run("tablestore", 1, 1000), run("tablestore", 2, 1000), run("kstore", 1, 1000)]
        runs[1]["result"] = {"failed": "something"}
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            main.show(runs)
        self.assertTrue(said.getvalue().endswith(
            "FAILED: 1 of 3 runs\n  new-4K-qd16 on tablestore: 1 of 2\n"), said.getvalue())
        self.assertIn("kstore", said.getvalue())


class Turns(unittest.TestCase):
    def test_each_round_begins_with_another_store(self) -> None:
        stores = ("a", "b", "c")
        self.assertEqual(main.in_turn(stores, 1), stores)
        self.assertEqual(main.in_turn(stores, 2), ("b", "c", "a"))
        self.assertEqual(main.in_turn(stores, 4), stores)
