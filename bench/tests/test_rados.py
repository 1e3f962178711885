"""What of a run of `rados bench` counts, and in which order stores have their turn."""
from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

import main
from storebench import rados


class Writes(unittest.TestCase):
    """Against a clock of processor seconds: a write takes 1, a removal 100."""

    def setUp(self) -> None:
        self.seconds = 0.0
        self.removals = 0
        for name, fake in (("rados_write", self.write), ("rados_remove", self.remove),
                           ("usage_of", lambda _: {"user_seconds": self.seconds})):
            patch = mock.patch.object(rados, name, fake)
            patch.start()
            self.addCleanup(patch.stop)
        self.writes = rados.Writes(SimpleNamespace(osds=[]), 4096, 16, 1 << 30)

    def write(self, *_: object) -> dict[str, Any]:
        self.seconds += 1
        return {"total_time_run": "2.5"}

    def remove(self, *_: object) -> None:
        self.seconds += 100
        self.removals += 1

    def test_what_a_removal_takes_is_nobodys(self) -> None:
        self.writes.come_and_go(10)
        self.assertEqual(self.removals, 4)
        self.assertEqual(self.writes.usage["user_seconds"], 4)
        self.assertEqual(self.writes.seconds(), 10)

    def test_the_rest_of_less_than_a_second_is_left(self) -> None:
        self.writes.come_and_go(5.9)
        self.assertEqual(len(self.writes.results), 2)


class Turns(unittest.TestCase):
    def test_each_round_begins_with_another_store(self) -> None:
        stores = ("a", "b", "c")
        self.assertEqual(main.in_turn(stores, 1), stores)
        self.assertEqual(main.in_turn(stores, 2), ("b", "c", "a"))
        self.assertEqual(main.in_turn(stores, 4), stores)
