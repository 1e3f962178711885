"""The arithmetic of ./run bench: figures, medians, goals, cells."""
from __future__ import annotations

import math
import random
import statistics
import unittest
from typing import Any

from storebench import calm, figures, sustained, table, targets
from storebench.cells import FEW, LEVELS, chosen
from storebench.numbers import (chances_of_median, difference_of, interval_of_median,
                                interval_of_percentile, number, percentile)
from storebench.temperature import wrong_temperature
from storebench.variants import LOOPS, SETTINGS, VARIANTS

from samples import phase, run


class Figures(unittest.TestCase):
    def test_rates_are_per_second_and_per_operation(self) -> None:
        found = figures.of_phase(phase(), "memstore")
        self.assertEqual(found["iops"], 500)
        self.assertEqual(found["cpu_us_per_operation"], 2000)
        self.assertEqual(found["flushes_per_operation"], 0.5)
        self.assertEqual(found["foreign_cpu"], 0.5)

    def test_what_the_host_took_is_a_share_of_what_was_wanted(self) -> None:
        usage = phase()["usage"] | {"machine_stolen_seconds": 1.0}
        self.assertEqual(figures.of_phase(phase(usage=usage), "memstore")["stolen_cpu"], 0.2)
        self.assertEqual(figures.of_phase(phase(), "memstore")["stolen_cpu"], 0)

    def test_a_disturbed_run_is_repeated_and_the_calmest_counts(self) -> None:
        def tried(*stolen: float, tries: int = 3) -> tuple[int, list[float]]:
            usages = iter(phase()["usage"] | {"machine_stolen_seconds": s} for s in stolen)
            numbers = iter(range(len(stolen)))
            found = calm.calmest(lambda: {"number": next(numbers),
                                          "phases": [phase(usage=next(usages))]}, tries)
            return found["number"], found["stolen_shares"]

        self.assertEqual(tried(0.0), (0, [0]))
        self.assertEqual(tried(1.0, 0.1), (1, [0.2, round(0.1 / 4.1, 4)]))
        self.assertEqual(tried(4.0, 1.0, 4.0), (1, [0.5, 0.2, 0.5]))
        self.assertEqual(tried(4.0, tries=1), (0, [0.5]))

    def test_disturbed_runs_do_not_count_beside_calm_ones(self) -> None:
        runs = [run("kstore", 1, 100), run("kstore", 2, 10), run("memstore", 1, 20)]
        for each, share in zip(runs, (0.01, 0.3, 0.3)):
            each["result"]["stolen_shares"] = [0.9, share]
        self.assertEqual(calm.never_calm(runs), ["new-4K-qd16 on memstore"])
        summed = figures.summaries(runs)
        for variant, iops in (("kstore", 50), ("memstore", 10)):
            self.assertEqual(summed["new-4K-qd16", "new", variant]["iops"],
                             figures.Summary(iops, iops, iops, 1))

    def test_a_phase_in_which_nothing_was_done_took_forever(self) -> None:
        found = figures.of_phase(phase(operations=0, seconds=60.0), "tablestore")
        self.assertEqual((found["iops"], found["worst_second_iops"]), (0, 0))
        for name in ("mean_us", "p99_9_us", "cpu_us_per_operation"):
            self.assertEqual(found[name], math.inf)
        short = figures.of_phase(phase(operations=0, latency_us={"mean": 0, "max": 0}),
                                 "tablestore")
        self.assertEqual({*short}, {"iops", "mb_per_second", "cpu_us_per_operation", "mean_us",
                                    "max_us"})
        self.assertEqual(figures.of_phase(phase(operations=0, seconds=0), "tablestore"), {})

    def test_whoever_does_nothing_in_all_quarters_has_written_without_end(self) -> None:
        result = {"options": {"store": "tablestore"},
                  "phases": [phase(operations=0, payload_bytes=0)] * 4}
        self.assertEqual(figures.of_quarters(result),
                         {"iops": 0, "write_amplification_disk": math.inf})

    def test_phases_are_compared_run_by_run(self) -> None:
        """Of two runs of which one is as slow as the other is fast, both lost a tenth."""
        runs = [run("kstore", n, 0) for n in range(2)]
        for each, rate in zip(runs, (100, 1000)):
            each["result"]["phases"] = [phase(name="w 1", operations=rate),
                                        phase(name="w 4", operations=rate * 9 // 10)]
        summed = figures.summaries(runs)
        first, last = (summed["new-4K-qd16", f"w {i}", "kstore"]["iops"] for i in (1, 4))
        found = figures.by_round(last, first)
        assert found
        self.assertEqual((found.median, found.low, found.high), (0.9, 0.9, 0.9))
        del runs[0]["result"]["phases"][0]
        summed = figures.summaries(runs)
        first, last = (summed["new-4K-qd16", f"w {i}", "kstore"]["iops"] for i in (1, 4))
        self.assertEqual(figures.by_round(last, first), figures.Summary(0.9, 0.9, 0.9, 1))

    def test_variation_is_of_whole_seconds(self) -> None:
        steady = figures.steadiness(phase(interval_operations=[10] * 45))
        self.assertEqual(steady["variation"], 0)
        self.assertEqual(steady["worst_second_share"], 1)
        rough = figures.steadiness(phase(interval_operations=[10] * 20 + [5] * 10))
        self.assertEqual(rough["worst_second_iops"], 50)
        self.assertEqual(rough["worst_second_share"], 0.5)

    def test_too_short_a_run_has_no_variation(self) -> None:
        self.assertEqual(figures.steadiness(phase(interval_operations=[10] * 29)), {})

    def test_deferred_writes_count_once_in_the_log_and_once_as_data(self) -> None:
        parts = figures.written_by({"bluestore.write_big_bytes": 100,
                                    "bluestore.issued_deferred_write_bytes": 100,
                                    "bluestore.submitted_deferred_write_bytes": 90,
                                    "bluefs.bytes_written_wal": 120}, 0, "bluestore")
        self.assertEqual((parts["data"], parts["log"]), (90, 120))

    def test_traffic_adds_up_to_what_the_disk_wrote(self) -> None:
        found = figures.traffic(phase(counters={"tablestore.data_bytes": 4000,
                                                "tablestore.log_bytes": 3000}), "tablestore")
        self.assertEqual(found["traffic table flush"], 0.5)
        self.assertEqual(found["write_amplification"], 2.25)
        self.assertEqual(found["traffic file system"], 0.75)
        self.assertEqual(sum(v for k, v in found.items() if k.startswith("traffic")), 3)
        self.assertEqual(found["write_amplification_disk"], 4)

    def test_the_median_round_counts(self) -> None:
        summed = figures.summaries([run("memstore", i, n) for i, n in enumerate((10, 1000, 40))])
        iops = summed["new-4K-qd16", "new", "memstore"]["iops"]
        self.assertEqual((iops.median, iops.low, iops.high, iops.rounds), (20, 5, 500, 3))


    def test_what_is_compared_stands_together(self) -> None:
        summed = figures.summaries([
            {"cell": "m", "variant": variant, "round": 1, "result": {
                "options": {"store": variant},
                "phases": [phase(name="create"), phase(name="stat")]}}
            for variant in ("kstore", "memstore")])
        self.assertEqual([key[1:] for key in summed if key[1] != "run"], [
            ("create", "kstore"), ("create", "memstore"), ("stat", "kstore"),
            ("stat", "memstore")])


class Temperature(unittest.TestCase):
    def wrong(self, name: str, read: int, payload: int = 1 << 30, store: str = "bluestore") -> str:
        usage = phase()["usage"] | {"read_bytes": read}
        return wrong_temperature({"options": {"store": store}, "phases": [
            phase(name=name, payload_bytes=payload, usage=usage)]})

    def test_a_hot_read_that_came_from_the_disk_is_not_hot(self) -> None:
        self.assertEqual(self.wrong("read hot", 0), "")
        self.assertIn("'read hot' is not hot: 1,000,000", self.wrong("read hot", 1_000_000))
        self.assertIn("not hot", self.wrong("big range hot", 1_000_000))

    def test_a_cold_read_that_came_from_memory_is_not_cold(self) -> None:
        self.assertEqual(self.wrong("read cold", 1 << 30), "")
        self.assertIn("only 800,000 came", self.wrong("read cold", 800_000, 1_000_000))
        self.assertIn("not cold", self.wrong("small get cold", 0))

    def test_other_phases_have_no_temperature(self) -> None:
        self.assertEqual(self.wrong("overwrite", 1 << 30), "")
        self.assertEqual(self.wrong("read cold", 0, store="memstore"), "")


class Numbers(unittest.TestCase):
    def test_numbers_are_as_people_write_them(self) -> None:
        self.assertEqual([number(x) for x in (36034.7, 1234567, 101.4, 1.5549, 0.02312, 0, 9.999,
                                              -7e-15, 1e-5)],
                         ["36,000", "1,230,000", "101", "1.55", "0.0231", "0", "10.0", "0",
                          "0.0000100"])

    def test_the_interval_is_the_bootstraps(self) -> None:
        dice = random.Random(1)
        for values in ([3.0, 1, 2, 5, 9], [4.0, 4.5, 5, 6, 6.5, 7, 8, 30, 31]):
            drawn = sorted(statistics.median(dice.choices(values, k=len(values)))
                           for _ in range(20000))
            self.assertEqual(interval_of_median(values), (drawn[500], drawn[19500]))
        self.assertEqual(interval_of_median([7]), (7, 7))
        self.assertAlmostEqual(sum(chance for _, chance in chances_of_median([1, 2, 3, 4])), 1)

    def test_stores_are_compared_round_by_round(self) -> None:
        """A round in which all are slow changes none of it, in whichever order they are given."""
        rounds = [(0, n) for n in range(5)]
        theirs = figures.summarize([10, 20, 5, 40, 8], rounds)
        ours = figures.summarize([20, 44, 9, 80, 16], rounds)
        found = figures.by_round(ours, theirs)
        assert found
        self.assertEqual((found.median, found.low, found.high, found.rounds), (2, 1.8, 2.2, 5))
        mixed = figures.summarize(reversed(theirs.values), reversed(rounds))
        self.assertEqual(figures.by_round(ours, mixed), found)
        self.assertEqual(figures.by_round(ours, theirs, difference_of),
                         figures.Summary(10, 4, 40, 5))

    def test_only_rounds_that_both_have_are_compared(self) -> None:
        ours = figures.summarize([2, 900, 6], [(0, 0), (0, 1), (1, 0)])
        theirs = figures.summarize([1, 2, 1], [(0, 0), (1, 0), (2, 1)])
        self.assertEqual(figures.by_round(ours, theirs), figures.Summary(2.5, 2, 3, 2))
        self.assertIsNone(figures.by_round(ours, figures.summarize([1], [(2, 1)])))
        self.assertIsNone(figures.by_round(None, theirs))

    def test_the_same_round_of_two_sessions_is_two(self) -> None:
        sessions = [{"runs": [run(store, 1, n) for store in ("kstore", "memstore")]}
                    for n in (100, 300)]
        summed = figures.summaries(figures.all_runs_of(sessions))
        self.assertEqual(summed["new-4K-qd16", "new", "kstore"]["iops"],
                         figures.Summary(100, 50, 150, 2))

    def test_the_table_says_what_its_intervals_are(self) -> None:
        runs = [run("tablestore-thin", n, 100 + n) for n in range(3)]
        title = list(table.cells_table(figures.summaries(runs)))[0]
        self.assertTrue(title.endswith("+-  ratio [the range of 3 runs]"), title)
        self.assertTrue(list(table.cells_table(figures.summaries(runs[:1])))[0].endswith("  ratio"))

    def test_a_latency_without_end_has_no_number(self) -> None:
        lines = list(table.cells_table(figures.summaries([run("tablestore-thin", 1, 0)])))
        self.assertEqual(lines[2].split()[:4], ["tablestore-thin", "0", "0", "-"])
        self.assertNotIn("inf", lines[2])

    def test_few_runs_have_their_range(self) -> None:
        five, twenty = [1.0, 2, 3, 4, 5], [float(x) for x in range(1, 21)]
        self.assertEqual(interval_of_median(five), (1, 5))
        self.assertEqual(interval_of_percentile(five, 0.95), (1, 5))
        self.assertGreater(interval_of_median(twenty)[0], 1)

    def test_who_does_nothing_is_compared_too(self) -> None:
        def compared(ours: list[float], theirs: list[float]) -> tuple[float, float, float]:
            rounds = [(0, n) for n in range(len(ours))]
            found = figures.by_round(figures.summarize(ours, rounds),
                                     figures.summarize(theirs, rounds))
            assert found
            return found.median, found.low, found.high

        self.assertEqual(compared([2, 4, 3], [0, 1, 2]), (4, 1.5, math.inf))
        self.assertEqual(compared([0] * 6, [0] * 6), (0, 0, 0))
        self.assertEqual(compared([1] * 6, [0] * 6), (math.inf, math.inf, math.inf))
        self.assertEqual(compared([1, math.inf, 1], [math.inf] * 3), (0, 0, math.inf))
        self.assertEqual([difference_of(*each) for each in ((3, 1), (1, math.inf), (math.inf, 1),
                                                            (math.inf, math.inf))],
                         [2, *[math.inf] * 3])

    def test_a_percentile_is_one_of_the_values(self) -> None:
        twenty = [float(x) for x in range(20, 0, -1)]
        self.assertEqual(percentile(twenty, 0.95), 19)
        self.assertEqual(percentile([3.0, 1.0], 0.95), 3)
        dice = random.Random(2)
        drawn = sorted(percentile(dice.choices(twenty, k=20), 0.95) for _ in range(20000))
        self.assertEqual(interval_of_percentile(twenty, 0.95), (drawn[500], drawn[19500]))

    def test_the_table_names_the_better_setting(self) -> None:
        runs = [run(v, n, 100 + n, name="new") for v in FEW for n in range(5)]
        runs += [run("bluestore-hdd-v2", n, 200 + n, name="new") for n in range(5)]
        lines = list(table.cells_table(figures.summaries(runs)))
        for ours in ("tablestore-thin", "tablestore"):
            line = next(each for each in lines if each.startswith(f"  {ours} "))
            self.assertRegex(line, r"0\.\d\dx \[0\.\d\d [01]\.\d\d\] of bluestore-hdd-v2$")


class Goals(unittest.TestCase):
    def verdicts(self, runs: list[dict[str, Any]], cell: str, against: str,
                 figure: str = "iops") -> list[targets.Verdict]:
        return [v for v in targets.verdicts(figures.summaries(runs))
                if (v.cell, v.goal.against, v.goal.figure) == (cell, against, figure)]

    def verdict(self, runs: list[dict[str, Any]], cell: str = "new-4K-qd16",
                against: str = targets.BEST, figure: str = "iops") -> targets.Verdict:
        found = self.verdicts(runs, cell, against, figure)
        self.assertEqual(len(found), 1)
        return found[0]

    def test_the_best_bluestore_is_what_counts(self) -> None:
        runs = [run("tablestore-thin", 1, 1500), run("bluestore-ssd", 1, 900),
                run("bluestore-hdd", 1, 1000), run("kstore", 1, 5000)]
        found = self.verdict(runs)
        self.assertEqual((found.against, found.found.median), ("bluestore-hdd", 1.5))
        self.assertTrue(found.met)

    def test_a_loop_device_is_no_peer(self) -> None:
        runs = [run("tablestore-thin", 1, 1500), run("bluestore-hdd", 1, 1000),
                run("bluestore-ssd-loop", 1, 1400)]
        self.assertEqual(self.verdict(runs).against, "bluestore-hdd")
        self.assertTrue(set(LOOPS).isdisjoint(targets.PEERS))
        self.assertTrue(any(set(LOOPS) < set(cell.stores) for cell in chosen("usual", [], [])))

    def test_a_setting_of_another_session_is_no_peer(self) -> None:
        sessions = [{"runs": [run("tablestore-thin", 1, 150), run("bluestore-hdd", 1, 100)]},
                    {"runs": [run("bluestore-ssd", 1, 110)]}]
        found = self.verdict(figures.all_runs_of(sessions))
        self.assertEqual((found.against, found.found.median), ("bluestore-hdd", 1.5))
        self.assertEqual(found.unknown, tuple(s for s in SETTINGS if s != "bluestore-hdd"))
        alone = figures.summaries(figures.all_runs_of(sessions[1:]))
        best = targets.best_bluestore(alone, "new-4K-qd16", "new", "iops")
        assert best
        self.assertEqual(best[0], "bluestore-ssd")

    def test_the_last_quarter_is_held_against_the_first_of_the_same_run(self) -> None:
        cell = "sustained-rados-4K"
        runs = [run("tablestore", n, 0, cell) for n in range(3)]
        for each, rate in zip(runs, (100, 1000, 500)):
            each["result"]["phases"] = [phase(name="write 1", operations=rate),
                                        phase(name="write 4", operations=rate * 95 // 100)]
        found = self.verdict(runs, cell, targets.FIRST_QUARTER)
        self.assertEqual(found.found, figures.Summary(0.95, 0.95, 0.95, 3))

    def test_a_goal_that_is_missed_is_missed(self) -> None:
        runs = [run("tablestore-thin", 1, 1499), run("bluestore-hdd", 1, 1000)]
        self.assertFalse(self.verdict(runs).met)

    def test_the_default_is_held_against_what_is_provisioned(self) -> None:
        cell = "new-64K-qd16"
        runs = [run("tablestore-thin", 1, 94, cell), run("tablestore", 1, 100, cell)]
        found = self.verdict(runs, cell, "tablestore")
        self.assertEqual((found.store, found.found.median), ("tablestore-thin", 0.94))
        self.assertFalse(found.met)

    def test_processor_time_is_what_is_beyond_memstores(self) -> None:
        runs = [run("tablestore", 1, 20000, "rados-4K"), run("memstore", 1, 25000, "rados-4K")]
        found = self.verdict(runs, "rados-4K", "memstore", "cpu_us_per_operation")
        self.assertAlmostEqual(found.found.median, 100 - 80)
        self.assertTrue(found.met)

    def test_the_last_quarter_is_held_against_the_best_and_the_first(self) -> None:
        cell = "sustained-rados-4K"
        runs = [run("tablestore", 1, 0, cell), run("bluestore-ssd", 1, 0, cell),
                run("bluestore-hdd", 1, 0, cell)]
        for each, rates in zip(runs, ((800, 900, 900, 640), (900, 500, 400, 400),
                                      (300, 300, 300, 300))):
            each["result"]["phases"] = [phase(name=f"write {i}", operations=rate)
                                        for i, rate in enumerate(rates, 1)]
        best = self.verdict(runs, cell)
        self.assertEqual((best.phase, best.against, best.found.median, best.met),
                         ("write 4", "bluestore-ssd", 1.6, True))
        first = self.verdict(runs, cell, targets.FIRST_QUARTER)
        self.assertEqual((first.found.median, first.met), (0.8, False))

    def test_bytes_are_those_of_all_quarters(self) -> None:
        cell = "sustained-overwrite-4K-qd16"
        runs = [run(store, 1, 0, cell) for store in ("tablestore", "bluestore-ssd")]
        for each, written in zip(runs, ((1000, 7000), (8000, 8000))):
            each["result"]["phases"] = [
                phase(name=f"overwrite {i}", usage_settled={"disk_write_bytes": size})
                for i, size in enumerate(written, 1)]
        found = self.verdict(runs, cell, figure="write_amplification_disk")
        self.assertEqual((found.ours.median, found.found.median, found.met), (1, 0.5, True))

    def test_a_restart_is_judged_by_its_slow_ones(self) -> None:
        cell = "restart-1000K"
        runs = []
        for number_of, seconds in enumerate([0.1] * 18 + [0.49, 0.9]):
            runs.append(run("tablestore", number_of, 1, cell))
            runs[-1]["result"]["values"] = {"mount seconds": seconds}
        found = self.verdict(runs, cell, "", "mount seconds")
        self.assertEqual((found.found.median, found.found.high, found.met), (0.49, 0.9, True))

    def test_every_goal_has_a_cell_in_some_run(self) -> None:
        names = [cell.name for level in LEVELS for cell in LEVELS[level]()]
        for goal in targets.GOALS:
            self.assertTrue(any(goal.covers(name) for name in names), goal.name)


class Cells(unittest.TestCase):
    def test_all_stores_exist_and_names_are_unique(self) -> None:
        for level in LEVELS:
            cells = list(LEVELS[level]())
            self.assertEqual(len({c.name for c in cells}), len(cells), level)
            for cell in cells:
                for name in [*cell.stores, *cell.settings]:
                    self.assertIn(name, VARIANTS)

    def test_the_default_is_in_every_table_and_first(self) -> None:
        for level in LEVELS:
            for cell in chosen(level, [], []):
                if cell.name.startswith(("inline-", "table-")):
                    continue
                self.assertEqual(cell.stores[0], "tablestore-thin", cell.name)
                # Where nothing is provisioned, both are the same.
                self.assertEqual("tablestore" in cell.stores, cell.bytes_per_second > 0, cell.name)
                self.assertLess(set(SETTINGS), set(cell.stores), cell.name)

    def test_patterns_choose_by_beginning_or_match(self) -> None:
        self.assertEqual([c.name for c in chosen("quick", ["new-4K"], [])],
                         ["new-4K-qd1", "new-4K-qd16"])
        self.assertEqual([c.name for c in chosen("quick", ["new-4K-qd1"], [])], ["new-4K-qd1"])
        self.assertEqual({c.name for c in chosen("quick", ["*-qd1"], [])},
                         {"new-4K-qd1", "new-64K-qd1", "overwrite-4K-qd1"})


class Sustained(unittest.TestCase):
    def long_run(self, variant: str, rates: list[int], **counters: float) -> dict[str, Any]:
        long = run(variant, 1, 0, "sustained-overwrite-4K-qd16")
        long["result"]["phases"] = [
            phase(name=f"overwrite {i}", operations=rate * 2, counters=counters,
                  interval_operations=[rate // 10] * 40)
            for i, rate in enumerate(rates, 1)]
        long["result"]["values"] = {f"{kind} bytes overwrite {i}": 5e9 for i in range(1, 5)
                                    for kind in ("used", "directory")}
        return long

    def test_each_quarter_has_a_line_and_the_last_is_compared(self) -> None:
        runs = [self.long_run("tablestore-thin", [40000, 38000, 37000, 36000]),
                self.long_run("bluestore-hdd-v2", [30000, 30000, 30000, 24000])]
        lines = list(sustained.quarters_table(figures.summaries(runs)))
        self.assertEqual(lines[1].split(), ["tablestore-thin", "1", "40,000", "60.0", "40,000",
                                            "4.00", "5.00"])
        self.assertIn("tablestore-thin: the last quarter is 0.90 of the first,"
                      " 1.50x of bluestore-hdd-v2", lines[5])
        self.assertIn("bluestore-hdd-v2: the last quarter is 0.80 of the first", lines[10])

    def test_a_quarter_in_which_nothing_was_done_has_a_line(self) -> None:
        long = self.long_run("tablestore-thin", [40000, 38000, 37000, 0])
        long["result"]["phases"][-1] |= {"seconds": 4.0, "payload_bytes": 0}
        lines = list(sustained.quarters_table(figures.summaries([long])))
        self.assertEqual(lines[4].split(), ["tablestore-thin", "4", "0", "-", "0", "5.00"])
        self.assertEqual(lines[5], "  tablestore-thin: the last quarter is 0.00 of the first")

    def test_a_quarter_without_its_99_9_per_cent_has_a_line(self) -> None:
        long = self.long_run("tablestore-thin", [40000, 38000, 37000, 36000])
        for each in long["result"]["phases"]:
            each["latency_us"] = {"mean": 1, "max": 2}      # all that rados bench tells
        lines = list(sustained.quarters_table(figures.summaries([long])))
        self.assertEqual(lines[4].split(), ["tablestore-thin", "4", "36,000", "36,000", "4.00",
                                            "5.00"])

    def test_a_run_without_background_work_is_not_sustained(self) -> None:
        full = {"tablestore.checkpoints": 5, "statistics.table_flushed_bytes": 1e9,
                "statistics.table_compacted_bytes": 1e9}
        said = list(sustained.work_done([self.long_run("tablestore", [1] * 4, **full)]))
        self.assertEqual(len(said), 1)
        self.assertIn("20.0 checkpoints, 4.00 GB flushed", said[0])
        for missing in full:
            few = full | {missing: 0}
            said = list(sustained.work_done([self.long_run("tablestore", [1] * 4, **few)]))
            self.assertIn("NOT SUSTAINED", said[1])
        said = list(sustained.work_done([self.long_run("bluestore-ssd", [1] * 4)]))
        self.assertIn("NOT SUSTAINED", said[1])
