"""ceph_tablestore_bench itself: every workload on every store, tiny."""
from __future__ import annotations

import shutil
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

from storebench.cells import LEVELS, Cell
from storebench.figures import of_run
from storebench.runner import Runner, RunError
from storebench.variants import GIB, MIB, VARIANTS, fixed_caches, run_checked
from with_runner import WithRunner

STORES = ("tablestore", "bluestore-ssd", "kstore", "memstore")
NOT_KSTORE = tuple(store for store in STORES if store != "kstore")   # cells.others() says why
ON_DISK = tuple(store for store in STORES if store != "memstore")
EVERY_WAY = (*STORES, "tablestore-thin", "bluestore-ssd-sparse")
SMALL = {"depth": 4, "warmup": 0.1, "rest": 0.3, "log-entries": 200, "pgs": 8}
WORKLOADS = (
    Cell("new", "new", EVERY_WAY, {"size": "16K"}),
    Cell("aged", "new", STORES, {"size": "4K", "aged-bytes": "1M"}),
    Cell("overwrite", "overwrite", NOT_KSTORE, {"objects": 16, "object-size": "256K"}),
    Cell("unaligned", "overwrite", NOT_KSTORE,
         {"objects": 16, "object-size": "256K", "size": 1000, "unaligned": True}),
    Cell("append", "append", NOT_KSTORE, {"object-size": "64K"}),
    Cell("mix", "mix", NOT_KSTORE, {"objects": 16, "object-size": "256K"}),
    Cell("read-hot", "read", STORES, {"objects": 16, "object-size": "256K"}),
    Cell("read-cold", "read", ON_DISK, {"objects": 64, "object-size": "256K", "cold": True}),
    Cell("read-miss", "read", ON_DISK,
         {"objects": 64, "object-size": "256K", "cold": True, "other-bytes": "8M"}),
    Cell("metadata", "metadata", STORES, {"objects": 500}),
    Cell("omap", "omap", STORES, {"objects": 20000}),
    Cell("removals", "removals", NOT_KSTORE, {"objects": 1000}),
    Cell("aging", "aging", STORES, {"rounds": 2, "max-bytes": "8M"}),
    Cell("clone", "clone", NOT_KSTORE, {"objects": 8, "object-size": "256K"}),
    Cell("full", "full", ("tablestore",), {"size": "64K", "fill-percent": 50}),
)

LONG = 3    # seconds: also on a disk that stands still for some of them, something ends


class Program(WithRunner):
    def run_cell(self, cell: Cell, store: str, seconds: float = 0.3, **more: float) -> dict:
        small = replace(cell, arguments=SMALL | cell.arguments | more, store_bytes=GIB)
        return self.runner.run(small, store, seconds)

    def test_every_workload_ends_with_results_on_every_store(self) -> None:
        for cell in WORKLOADS:
            for store in cell.stores:
                with self.subTest(workload=cell.name, store=store):
                    phases = self.run_cell(cell, store, rest=0)["phases"]
                    self.assertTrue(phases)
                    for phase in phases:
                        # Of those that began: on a busy disk none may end in time.
                        self.assertGreater(phase["latency_us"]["count"], 0, phase["name"])

    def test_a_cell_of_the_wrong_temperature_fails(self) -> None:
        """Hot reads of more than the caches keep."""
        cell = Cell("read-hot", "read", (), {"size": "64K", "objects": 512, "object-size": "256K"},
                    settings={store: fixed_caches(VARIANTS[store].store, 16 << 20)
                              for store in ("tablestore", "bluestore-ssd")})
        for store in cell.settings:
            with self.subTest(store=store), self.assertRaisesRegex(RunError, "is not hot"):
                self.run_cell(cell, store)

    def test_no_block_is_written_twice(self) -> None:
        objects = 6000      # more than fit in a pool of 16 MiB
        cell = Cell("new", "new", (), {"size": "4K", "objects": objects})
        written: set[bytes] = set()

        class Kept(Runner):
            def _finish(self, words: list[str]) -> dict:
                result = super()._finish(words)
                with open(self._folder / "store/block", "rb") as file:
                    written.update(iter(lambda: file.read(4096), b""))
                return result

        kept = Kept(self.folder / "kept", lambda line: None)
        kept.run(replace(cell, arguments=SMALL | cell.arguments, store_bytes=GIB),
                 "bluestore-ssd-sparse", 0.3)
        self.assertGreater(len(written), objects)

    def test_a_long_run_is_measured_by_quarters(self) -> None:
        for cell in LEVELS["sustained"]():
            if cell.workload == "rados":
                continue        # minutes; its parts are in test_figures.py
            small = replace(cell, arguments=cell.arguments | SMALL | {"objects": 16},
                            store_bytes=GIB)
            for store in ("tablestore-thin", "bluestore-hdd-v2"):
                with self.subTest(cell=cell.name, store=store):
                    result = self.runner.run(small, store, 4)
                    phases = result["phases"]
                    self.assertEqual([phase["name"][-2:] for phase in phases],
                                     [" 1", " 2", " 3", " 4"])
                    for phase in phases:
                        # The first operation or the last may be late.
                        self.assertGreater(phase["seconds"], 0.5)
                        self.assertLess(phase["seconds"], 3)
                        self.assertGreater(phase["usage"]["disk_write_bytes"], 0)
                        self.assertGreater(result["values"][f"used bytes {phase['name']}"], 0)

    def test_a_disk_that_is_too_small_for_bluestores_file_is_named_and_stays_free(self) -> None:
        with tempfile.TemporaryDirectory() as small:
            run_checked("mount", "-t", "tmpfs", "-o", "size=32m", "none", small)
            try:
                runner = Runner(Path(small) / "own", lambda line: None)
                cell = Cell("new", "new", (), {"size": "4K"}, store_bytes=GIB)
                for _ in range(2):
                    with self.assertRaisesRegex(RunError, f"file of 1 GiB below {small}/own: "
                                                          "No space left .*give the disk more"):
                        runner.run(cell, "bluestore-ssd", 0.3)
                    self.assertEqual(shutil.disk_usage(small).used, 0)
            finally:
                run_checked("umount", small)

    def test_a_loop_device_is_beside_that_of_the_file_system(self) -> None:
        """Not on it, and what it reads and writes is counted."""
        beside = self.folder / "beside"
        runner = Runner(self.folder / "own", lambda line: None, beside)
        cell = Cell("new", "new", (), SMALL | {"size": "64K", "max-bytes": "256M"},
                    store_bytes=GIB)
        try:
            result = runner.run(cell, "bluestore-ssd-loop", LONG)
            self.assertEqual(len(list(beside.glob("block.*"))), 1)
            self.assertEqual(list((self.folder / "own").glob("block.*")), [])
        finally:
            runner.close()
        self.assertFalse(beside.exists())
        self.assertRegex(result["disk"], "^loop")
        phase, = result["phases"]
        self.assertGreater(phase["payload_bytes"], 0)
        self.assertGreaterEqual(phase["usage_settled"]["disk_write_bytes"], phase["payload_bytes"])

    def test_a_killed_store_restarts(self) -> None:
        cell = Cell("restart", "die", (), {"objects": 100, "size": "4K", "seconds": LONG})
        for store in ("tablestore", "bluestore-ssd"):
            with self.subTest(store=store):
                result = self.run_cell(cell, store)
                self.assertGreater(result["usage"]["machine_busy_seconds"], 0)
                whole = of_run(result)["run"]
                self.assertGreater(whole["mount seconds"], 0)
                self.assertEqual(whole["load seconds"], LONG)
                self.assertGreater(whole["first commit seconds"], 0)

    def test_a_store_that_dies_before_it_has_load_is_no_restart(self) -> None:
        """It says a second after it began that it has load."""
        cell = Cell("restart", "die", (), {"objects": 100, "size": "4K", "seconds": 0.3})
        with self.assertRaisesRegex(RunError, "killed under load"):
            self.run_cell(cell, "tablestore")

    def test_bluestores_files_are_written_before_anything_is_measured(self) -> None:
        cell = Cell("new", "new", ("tablestore", "bluestore-ssd"), {"size": "4K", "osds": 2},
                    store_bytes=32 << 20)
        with tempfile.TemporaryDirectory(dir=self.folder) as own:
            runner = Runner(Path(own) / "own", lambda line: None)
            runner.write_blocks([cell])
            self.assertEqual(sorted(each.name for each in (Path(own) / "own").iterdir()),
                             ["block.32M.0", "block.32M.1"])

    def test_the_floor_flushes_once_for_each_write(self) -> None:
        result = self.run_cell(Cell("floor", "new", (), {"size": "4K", "depth": 1}), "floor")
        phases = {phase["name"]: phase for phase in result["phases"]}
        for name, writes in (("write and flush", 1), ("two writes and flush", 2)):
            with self.subTest(name):
                usage, payload = phases[name]["usage"], phases[name]["payload_bytes"]
                self.assertGreaterEqual(usage["flushes"], phases[name]["operations"])
                self.assertGreaterEqual(usage["disk_flushes"], phases[name]["operations"] * 0.9)
                self.assertGreaterEqual(usage["write_bytes"], payload * writes * 0.9)

    def test_the_floor_at_first_touch_pays_for_what_the_file_system_learns(self) -> None:
        for depth in (1, 16):
            with self.subTest(depth=depth):
                cell = Cell("floor", "new", (), {"size": "64K", "depth": depth})
                phase, = self.run_cell(cell, "floor-thin", LONG)["phases"]
                usage, payload = phase["usage"], phase["payload_bytes"]
                self.assertGreater(payload, 0)
                self.assertGreaterEqual(usage["write_bytes"], payload * 0.9)
                # With each flush the file system notes what has data now: bytes of its own.
                self.assertGreater(usage["disk_write_bytes"],
                                   payload + 4096 * phase["operations"] / depth * 0.9)

    def test_the_floor_of_reads_reads_each_place_once_from_the_disk(self) -> None:
        cell = Cell("floor", "read", (), {"size": "64K", "depth": 4, "cold": True, "objects": 16,
                                          "object-size": "4M"})
        phase, = self.run_cell(cell, "floor-read")["phases"]
        self.assertLessEqual(phase["operations"], 16 * 64 // 4 * 3)
        # Pages of the program itself may be read, too.
        self.assertGreaterEqual(phase["usage"]["read_bytes"], phase["payload_bytes"])
        self.assertLess(phase["usage"]["read_bytes"], phase["payload_bytes"] + 2 * MIB)
        self.assertEqual(phase["latency_us"]["count"], phase["operations"])
        self.assertGreater(phase["seconds"], 0)

    def test_a_flush_takes_as_long_as_was_said(self) -> None:
        cell = Cell("slow", "new", (), {"size": "4K", "depth": 1, "flush-us": 5000})
        for store in ("tablestore", "bluestore-ssd", "kstore"):
            with self.subTest(store=store):
                self.assertGreater(self.run_cell(cell, store)["phases"][0]["latency_us"]["p50"],
                                   5000)

    def test_a_free_flush_does_not_reach_the_disk(self) -> None:
        cell = Cell("free", "new", (), {"size": "4K", "depth": 1, "flush-us": 0})
        for store in ("tablestore", "bluestore-ssd", "kstore"):
            with self.subTest(store=store):
                phase = self.run_cell(cell, store, LONG)["phases"][0]
                # The disk's own count has what others flush meanwhile. That no store has another
                # way to flush than the one that is replaced is seen by how long it takes, above.
                usage = phase["usage"]
                self.assertGreater(phase["operations"], 0)
                self.assertGreaterEqual(usage["imitated_flushes"], phase["operations"] * 0.9)
                self.assertEqual(usage["flushes"], 0)

    def test_a_wrong_option_is_an_error_that_names_it(self) -> None:
        cell = Cell("new", "new", (), {}, settings={"memstore": {"no_such_option": "1"}})
        with self.assertRaisesRegex(RunError, "no_such_option"):
            self.run_cell(cell, "memstore")


if __name__ == "__main__":
    unittest.main()
