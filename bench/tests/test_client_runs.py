"""A cluster under each kind of client, for a moment."""
from __future__ import annotations

import os
import signal
import threading
import time
import unittest
from dataclasses import replace
from typing import Any
from unittest import mock

import rados
import storebench.rados
from cephcluster.client import Client
from cephcluster.cluster import Cluster
from cephcluster.ephemeral import EphemeralCluster
from cephcluster.errors import ClusterError
from cephcluster.keys import ADMIN
from cephcluster.tool import run_tool
from storebench.cells import LEVELS, Cell
from storebench.runner import RunError
from storebench.variants import GIB
from with_runner import WithRunner

SECONDS = 1.0


class ClientRuns(WithRunner):
    def run_cell(self, name: str, store: str, **arguments: Any) -> dict:
        cell = next(each for each in LEVELS["clients"]() if each.name == name)
        cell = replace(cell, store_bytes=GIB,
                       arguments=cell.arguments | {"osds": 2 if cell.osds == 2 else 1}
                       | arguments)
        phases = {each["name"]: each for each in self.runner.run(cell, store, SECONDS)["phases"]}
        for phase in phases.values():
            with self.subTest(name, phase=phase["name"]):
                self.assertGreater(phase["operations"], 0)
                self.assertGreater(phase["latency_us"]["mean"], 0)
                if phase["payload_bytes"] and phase["name"] != "get":
                    osds = phase["usage"]["user_seconds"] + phase["usage"]["system_seconds"]
                    self.assertGreater(osds, 0)
        # Of all phases together: the kernel counts in ticks of ten milliseconds, and a short phase
        # without data may take none.
        taken = {name: sum(phase["usage"][name] for phase in phases.values())
                 for name in ("user_seconds", "client_user_seconds", "service_user_seconds")}
        with self.subTest(name, taken=taken):
            self.assertGreater(taken["user_seconds"], 0)
            self.assertGreater(taken["client_user_seconds"], 0)
            self.assertEqual(taken["service_user_seconds"] > 0,
                             name.startswith(("clients-cephfs", "clients-s3")))
        return phases

    def test_rados_bench_of_several_processes_on_several_osds(self) -> None:
        """Each OSD has what was written, in a file of its own."""
        phase = self.run_cell("clients-rados-4K-2osd-t16", "bluestore-ssd")["write"]
        self.assertGreater(phase["usage"]["write_bytes"], 2 * phase["payload_bytes"])
        self.assertEqual(len(list(self.folder.glob("block.*"))), 2)

    def test_an_osd_that_dies_ends_the_run_and_is_named(self) -> None:
        """Nobody waits for operations that nobody answers."""
        def killed_soon(cluster: Cluster, *arguments: Any) -> dict[str, Any]:
            threading.Timer(0.5, os.kill, (cluster.osds[0].pid(), signal.SIGKILL)).start()
            return write(cluster, *arguments)

        write = storebench.rados.rados_write
        cell = Cell("rados-4K", "rados", (), {"size": 4096, "depth": 16}, store_bytes=GIB)
        began = time.monotonic()
        with mock.patch.object(storebench.rados, "rados_write", killed_soon), \
                self.assertRaisesRegex(ClusterError, r"osd\.0 is not running"):
            self.runner.run(cell, "tablestore-thin", 300)
        self.assertLess(time.monotonic() - began, 120)

    def test_a_loop_device_is_of_one_osd(self) -> None:
        with self.assertRaisesRegex(RunError, "loop device is of one OSD"):
            self.run_cell("clients-rados-4K-2osd-t16", "bluestore-ssd-loop")

    def test_rbd_bench_overwrites(self) -> None:
        phases = self.run_cell("clients-rbd-4K-3osd-t16", "tablestore-thin")
        self.assertEqual(list(phases), ["overwrite"])
        # Interrupted: all that it was told to write would take days.
        self.assertLess(phases["overwrite"]["seconds"], 15 * SECONDS)

    def test_files_are_made_looked_at_and_removed(self) -> None:
        phases = self.run_cell("clients-cephfs-4K-3osd-t8", "tablestore-thin")
        made = phases["create"]["operations"]
        self.assertLess(phases["readdir"]["operations"], made)
        # All that were made, and those of the warm-up, unless the time is over before.
        for name in ("stat", "rename", "unlink"):
            with self.subTest(name):
                if phases[name]["seconds"] < SECONDS:
                    self.assertGreater(phases[name]["operations"], made)

    def test_objects_are_put_read_and_deleted(self) -> None:
        phases = self.run_cell("clients-s3-4K-3osd-t16", "tablestore", depth=2)
        self.assertEqual(list(phases), ["put", "get", "delete"])
        # Both ends send at once: nothing waits for a delayed acknowledgement of 40 ms. With 16 it
        # might wait as long for a processor.
        self.assertLess(phases["get"]["latency_us"]["p50"], 40000)

    def test_a_monitor_that_stood_still_is_asked_again(self) -> None:
        with EphemeralCluster("bench", "memstore", 1) as cluster:
            client = Client(cluster.layout.conf)
            cluster.mon.signal(signal.SIGSTOP)
            self.assertFalse(client.connect())
            cluster.mon.signal(signal.SIGCONT)
            client.wait_connected()
            self.assertTrue(client.mon("status")["quorum"])
            client.close()

    def test_with_cephx_the_monitor_refuses_a_wrong_key(self) -> None:
        with EphemeralCluster("bench", "memstore", 1, cephx=True) as cluster:
            layout = cluster.layout
            wrong = layout.root / "wrong"
            wrong.mkdir()
            key = wrong / layout.key(ADMIN).name
            run_tool("ceph-authtool", "--create-keyring", key, "--gen-key", "-n", ADMIN)
            conf = layout.root / "wrong_key.conf"
            conf.write_text(layout.conf.read_text().replace("/keys/", "/wrong/"))
            self.assertIn(f"{wrong}/", conf.read_text())
            with self.assertRaises(rados.PermissionDeniedError):
                rados.Rados(conffile=str(conf)).connect(timeout=30)
            Client(layout.conf).wait_connected()


if __name__ == "__main__":
    unittest.main()
