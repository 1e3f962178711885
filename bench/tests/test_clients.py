"""Clusters under several clients: the arithmetic, and what a client process does."""
from __future__ import annotations

import time
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

from cephcluster.errors import ClusterError
from clientworker import phase as phase_module
from clientworker.phase import run_phase
from clientworker.signature import Signer
from storebench import figures, table
from storebench.cells import LEVELS
from storebench.clients.together import of_rados_bench, of_rbd_bench, of_workers
from storebench.page import page
from samples import SESSION, phase, run

RBD_SAID = """bench  type write io_size 4096 io_threads 16 bytes 1000000 pattern random
  SEC       OPS   OPS/SEC   BYTES/SEC
    1      1200   1215.82   4.7 MiB/s
    2      2300    1150.5   4.5 MiB/s
    3      3500   1168.25   4.6 MiB/s
elapsed: 3   ops: 4000   ops/sec: 1.0e+03   bytes/sec: 4.6 MiB/s
"""


def rados_said(writes: int, seconds: float, mean: float, longest: float,
               finished: list[int]) -> dict[str, Any]:
    return {"total_writes_made": str(writes), "total_time_run": str(seconds),
            "average_latency": str(mean), "max_latency": str(longest),
            "datas": [{"finished": str(each)} for each in finished]}


def worker_said(latencies: list[float], seconds: float, intervals: list[int]) -> dict[str, Any]:
    return {"operations": len(latencies), "seconds": seconds, "latencies_us": latencies,
            "intervals": intervals, "user_seconds": 1.0, "system_seconds": 0.5}


class Together(unittest.TestCase):
    def test_several_rados_bench_add_up(self) -> None:
        done = of_rados_bench([rados_said(300, 3.0, 0.01, 0.5, [0, 90, 200, 300]),
                               rados_said(100, 3.5, 0.03, 0.2, [0, 30, 70, 95, 100])], 2.0, 1.0)
        self.assertEqual((done.operations, done.seconds), (400, 3.5))
        self.assertAlmostEqual(done.latency_us["mean"], 15000)
        self.assertEqual(done.latency_us["max"], 500000)
        self.assertEqual((done.interval_ms, done.interval_operations), (1000, [120, 150, 125]))
        self.assertEqual((done.client_user_seconds, done.client_system_seconds), (2.0, 1.0))

    def test_rbd_benchs_mean_is_what_each_in_flight_had_of_the_time(self) -> None:
        done = of_rbd_bench(RBD_SAID, 16, 1.0, 0.5)
        self.assertEqual((done.operations, done.seconds), (4000, 4.0))
        self.assertEqual(done.latency_us, {"mean": 16000})
        self.assertEqual(done.interval_operations, [1100, 1200])

    def test_a_second_in_which_rbd_bench_did_nothing_counts(self) -> None:
        said = RBD_SAID.replace("    3      3500", "    5      3500")
        self.assertEqual(of_rbd_bench(said, 16, 1.0, 0.5).interval_operations, [1100, 0, 0, 1200])

    def test_rbd_bench_without_a_result_is_an_error(self) -> None:
        with self.assertRaisesRegex(ClusterError, "no result"):
            of_rbd_bench(RBD_SAID.partition("elapsed")[0], 16, 1.0, 0.5)

    def test_percentiles_are_of_all_workers_operations(self) -> None:
        done = of_workers([worker_said([10.0] * 980, 1.0, [98] * 10),
                           worker_said([50.0] * 20, 0.5, [4] * 5)])
        self.assertEqual((done.operations, done.seconds), (1000, 1.0))
        self.assertEqual(done.latency_us, {"mean": 10.8, "p50": 10, "p99": 50, "p99_9": 50,
                                           "max": 50})
        self.assertEqual(done.client_user_seconds, 2.0)

    def test_intervals_end_with_the_first_who_has_nothing_to_do(self) -> None:
        done = of_workers([worker_said([1.0] * 10, 1.0, [1] * 10),
                           worker_said([1.0] * 5, 0.5, [1] * 5)])
        self.assertEqual(done.interval_operations, [2] * 5)

    def test_a_phase_in_which_nobody_had_anything_to_do_is_empty(self) -> None:
        done = of_workers([worker_said([], 0.1, [])])
        self.assertEqual((done.operations, done.latency_us["max"]), (0, 0))


class Worker(unittest.TestCase):
    def test_a_phase_ends_with_its_operations(self) -> None:
        done: list[int] = []
        said = run_phase(iter([lambda: done.append(1)] * 3), lambda: done.append(2),
                         time.monotonic(), 60)
        self.assertEqual((said["operations"], sum(said["intervals"]), done), (3, 3, [1, 1, 1, 2]))

    def test_a_phase_ends_with_its_time_and_what_was_left_to_be_done(self) -> None:
        said = self.run_against_a_clock(begin=0.125, seconds=0.5, step=0.0625, finish=0.25)
        self.assertEqual(said["seconds"], 0.75)
        self.assertEqual(said["latencies_us"], [62500] * 8)
        self.assertEqual(said["intervals"], [1, 2, 1, 2, 1, 1])

    def test_a_worker_that_comes_late_does_one_operation(self) -> None:
        said = self.run_against_a_clock(begin=-2, seconds=0.5, step=0.0625, finish=0)
        self.assertEqual((said["operations"], said["seconds"]), (1, 2.0625))

    def run_against_a_clock(self, begin: float, seconds: float, step: float,
                            finish: float) -> dict[str, Any]:
        now = 64.0

        def sleep(duration: float) -> None:
            nonlocal now
            now += duration

        def forever() -> Any:
            while True:
                yield lambda: sleep(step)

        clock = SimpleNamespace(monotonic=lambda: now, sleep=sleep)
        with mock.patch.object(phase_module, "time", clock):
            return run_phase(forever(), lambda: sleep(finish), now + begin, seconds)

    def test_requests_are_signed_as_s3s_documentation_does_it(self) -> None:
        """Its example of a bucket's lifecycle."""
        signer = Signer("examplebucket.s3.amazonaws.com", "AKIAIOSFODNN7EXAMPLE",
                        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
        headers = signer.headers("GET", "/", b"", "lifecycle=",
                                 time.struct_time((2013, 5, 24, 0, 0, 0, 4, 144, 0)))
        self.assertTrue(headers["Authorization"].endswith(
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"))


class Clusters(unittest.TestCase):
    def measured(self) -> dict[str, Any]:
        usage = phase()["usage"] | {
            "client_user_seconds": 0.3, "client_system_seconds": 0.2, "service_user_seconds": 0.5,
            "service_system_seconds": 0.0, "wall_seconds": 2.5}
        return {"usage": usage, "payload_bytes": 0}

    def test_what_an_operation_takes_of_whom(self) -> None:
        found = figures.of_phase(phase(**self.measured()), "tablestore")
        self.assertEqual(found["cpu_us_per_operation"], 2000)
        self.assertEqual(found["client_cpu_us_per_operation"], 500)
        self.assertEqual(found["service_cpu_us_per_operation"], 500)
        self.assertEqual(found["disk_bytes_per_operation"], 16)
        self.assertEqual(found["busy_processors"], 1.6)

    def test_clients_and_services_are_no_strangers(self) -> None:
        found = figures.of_phase(phase(**self.measured()), "tablestore")
        self.assertEqual(found["foreign_cpu"], 0.25)

    def test_the_table_has_a_line_for_each_store_and_none_for_others_cells(self) -> None:
        runs = [run("tablestore-thin", 1, 1000, "new-4K-qd16"),
                run("tablestore-thin", 1, 1000, "clients-s3-4K-3osd-t16", **self.measured()),
                run("bluestore-hdd", 1, 1000, "clients-s3-4K-3osd-t16", **self.measured())]
        lines = list(table.clusters_table(figures.summaries(runs)))
        self.assertEqual(len(lines), 4)
        self.assertEqual(lines[2].split(), ["tablestore-thin", "500", "2,000", "500", "500",
                                            "16.0", "0.500", "1.60"])
        self.assertIn("Clusters under", page([SESSION], runs, figures.summaries(runs)))
        for nothing in (list(table.clusters_table(figures.summaries(runs[:1]))),
                        "Clusters under" in page([SESSION], runs[:1],
                                                 figures.summaries(runs[:1]))):
            self.assertFalse(nothing)

    def test_the_full_run_has_them_for_a_minute(self) -> None:
        names = {cell.name for cell in LEVELS["clients"]()}
        found = {cell.name: cell.seconds for cell in LEVELS["full"]()
                 if cell.name.startswith("clients-")}
        self.assertEqual(found, dict.fromkeys(names, 60))
        self.assertEqual({name.split("-")[1] for name in names}, {"rados", "rbd", "cephfs", "s3"})


if __name__ == "__main__":
    unittest.main()
