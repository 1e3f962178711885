"""Where a benchmark measures: what is said of it, and a file system of its own."""
from __future__ import annotations

import os
import shutil
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from cephcluster.errors import ClusterError, Interrupted
from storebench.machine import journal_of, place, place_text
from storebench.own_fs import OwnFileSystem
from storebench.variants import MIB, LoopDevice, run_checked, write_zeros
from with_runner import WithRunner

DISK = {"name": "vda", "queue/write_cache": "write back", "queue/fua": "0"}


def on(**file_system: str) -> dict[str, Any]:
    return {"file_system": file_system, "disk": DISK}


class Place(unittest.TestCase):
    def test_it_says_whether_an_ext4_has_a_journal(self) -> None:
        for said, text in (
                (on(type="ext4", journal="none"), "ext4 without a journal on vda (write back cache,"
                                                  " no FUA)"),
                (on(type="ext4", journal="ordered"), "ext4 with its journal on vda (write back"
                                                     " cache, no FUA)"),
                (on(type="ext4"), "ext4 (whether with a journal, was not noted) on vda (write back"
                                  " cache, no FUA)"),
                (on(type="xfs"), "xfs on vda (write back cache, no FUA)")):
            with self.subTest(text):
                self.assertEqual(place_text(said), text)

    def test_it_says_what_a_disk_of_its_own_is_on(self) -> None:
        self.assertEqual(place_text(on(type="xfs") | {"below": on(type="ext4", journal="none")}),
                         "xfs on a loop device with direct I/O, on a written file of ext4 without"
                         " a journal on vda (write back cache, no FUA)")

    def test_the_journal_is_read_from_the_kernels_options(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            options = Path(folder) / "options"
            self.assertEqual(journal_of(options), "unknown")
            for text, journal in (("rw\nbarrier\n", "none"), ("rw\ndata=ordered\n", "ordered")):
                options.write_text(text)
                self.assertEqual(journal_of(options), journal)


class OwnFileSystems(WithRunner):
    def test_they_are_what_they_are_called_and_leave_nothing(self) -> None:
        directory = self.folder / "own"
        directory.mkdir(exist_ok=True)
        (directory / "there").touch()
        for kind, size in (("ext4", 64 * MIB), ("xfs", 512 * MIB)):
            with self.subTest(kind):
                with OwnFileSystem(kind, size, directory) as own:
                    self.assertEqual(os.listdir(own.below), ["there"])
                    self.see_that_a_device_below_is_not_on_it(own, directory)
                    facts = place(directory)
                    self.assertEqual(facts["file_system"]["type"], kind)
                    self.assertEqual(facts["file_system"].get("journal"),
                                     "ordered" if kind == "ext4" else None)
                    device = facts["disk"]["name"]
                    self.assertEqual(Path(f"/sys/block/{device}/loop/dio").read_text(), "1\n")
                    self.assertEqual(facts["disk"]["queue/rotational"], "0")
                    self.assertNotIn("discard", facts["file_system"]["options"])
                    self.assertFalse((directory / "there").exists())
                self.assertFalse(os.path.ismount(directory))
                self.assertEqual(os.listdir(directory), ["there"])
                self.assertFalse(own.below.exists())
                self.assertNotIn("bench.disk", self.file_of_loop(device))

    @staticmethod
    def file_of_loop(device: str) -> str:
        """Empty where it has none. The number may be somebody else's by now."""
        try:
            return Path(f"/sys/block/{device}/loop/backing_file").read_text()
        except OSError:
            return ""

    def see_that_a_device_below_is_not_on_it(self, own: OwnFileSystem, directory: Path) -> None:
        """Also where a file there has the same name: losetup asks the kernel where a path leads."""
        for folder in (directory, own.below):
            write_zeros(folder / "block", 4 * MIB)
        with LoopDevice(own.below / "block") as device:
            on = run_checked("losetup", "--noheadings", "--output", "BACK-MAJ:MIN", device).strip()
        below = os.stat(own.below).st_dev
        self.assertEqual(on, f"{os.major(below)}:{os.minor(below)}")
        self.assertNotEqual(below, os.stat(directory).st_dev)
        (own.below / "block").unlink()

    def test_one_that_is_interrupted_while_it_is_written_leaves_nothing(self) -> None:
        def interrupted(file: Path, _size: int) -> None:
            file.write_bytes(b"some of it")
            raise Interrupted(2)

        directory = Path(tempfile.mkdtemp(dir=self.folder))
        with mock.patch("storebench.own_fs.write_zeros", interrupted):
            with self.assertRaises(Interrupted):
                OwnFileSystem("ext4", 64 * MIB, directory).__enter__()
        self.assertEqual(os.listdir(directory), [])

    def test_a_disk_that_does_not_fit_is_named_and_its_space_given_back(self) -> None:
        with tempfile.TemporaryDirectory() as small:
            run_checked("mount", "-t", "tmpfs", "-o", "size=32m", "none", small)
            try:
                with self.assertRaisesRegex(ClusterError, f"a disk of 1 GiB in {small}: No space"
                                                          " left on device; --fs-size"):
                    with OwnFileSystem("ext4", 1024 * MIB, Path(small)):
                        pass
                self.assertEqual(shutil.disk_usage(small).used, 0)
            finally:
                run_checked("umount", small)
