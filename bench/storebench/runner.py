"""Runs one workload on one fresh store and returns what it printed."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from . import rados
from .cells import Cell
from .clients import run as clients
from .clients.load import Load
from .consumption import machine_usage, since
from .temperature import wrong_temperature
from .variants import (MIB, OSD_THREADS, VARIANTS, BlockFiles, LoopDevice, Variant,
                       settings_of)

PROGRAM = "ceph_tablestore_bench"
RUN_SECONDS = 1800      # beside what is measured
# So many seconds of load are before a kill -9: any time within ten seconds, for what there is to
# do at the restart is not the same at all times.
DIES_AFTER = (2.0, 12.0)
KEPT_COUNTERS = ("tablestore.", "statistics.", "bluestore.", "bluefs.", "kstore.", "rocksdb.")

Progress = Callable[[str], None]


class RunError(Exception):
    pass


class Runner:
    """Owns a directory on the disk that is measured, which must be nobody
    else's: what a killed run left in it is removed. One run at a time. `below` is another
    one, for files of loop devices: on the file system that the first one's own device is on."""

    def __init__(self, folder: Path, progress: Progress, below: Path | None = None):
        self._folders = [each for each in (folder, below) if each]
        self._folder = folder
        self._progress = progress
        for each in self._folders:
            shutil.rmtree(each, ignore_errors=True)
            each.mkdir(parents=True)
        self._blocks = BlockFiles(folder)
        self._loop_blocks = BlockFiles(below) if below else self._blocks
        self._last_progress = ""

    def write_blocks(self, cells: list[Cell]) -> None:
        """All that these need, before anything is measured: no store's turn is right behind so many
        bytes."""
        for cell in cells:
            for name in cell.stores:
                self._write_blocks(cell, VARIANTS[name])

    def run(self, cell: Cell, name: str, seconds: float, moment: float = 0) -> dict[str, Any]:
        """`moment`, from 0 to 1: when a store dies whose restart is measured."""
        variant = VARIANTS[name]
        self._write_blocks(cell, variant)
        self._quiet_disk()
        folder = self._folder / "store"
        folder.mkdir()
        try:
            with self._block_of(variant, cell) as block:
                settings = settings_of(variant, cell.store_bytes, block,
                                       cell.provision_bytes(seconds),
                                       cell.settings.get(name, {}))
                if cell.workload in clients.KINDS:
                    return self._clients(cell, variant, settings | OSD_THREADS,
                                         cell.seconds or seconds)
                if cell.workload == "rados":
                    parts = int(str(cell.arguments.get("parts", 1)))
                    return rados.measure(variant.store, settings | OSD_THREADS,
                                         int(cell.arguments["size"]),
                                         int(cell.arguments["depth"]), cell.seconds or seconds,
                                         cell.store_bytes * (2 if parts == 1 else 3) // 8, parts,
                                         self._progress)
                if cell.workload == "die":
                    first, last = DIES_AFTER
                    words = self._words(cell, variant, settings, first + moment * (last - first))
                    return self._die_and_restart(words)
                words = self._words(cell, variant, settings, seconds)
                return right_temperature(self._finish(words))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _blocks_of(self, variant: Variant) -> BlockFiles:
        return self._loop_blocks if variant.on == "loop" else self._blocks

    def _write_blocks(self, cell: Cell, variant: Variant) -> None:
        if not variant.has_written_block:
            return
        self._progress("writing BlueStore's file")
        blocks = self._blocks_of(variant)
        try:
            for osd in range(cell.osds):
                blocks.of(cell.store_bytes, osd)
        except OSError as error:
            raise RunError(f"cannot write BlueStore's file of {cell.store_bytes >> 30} GiB below"
                           f" {blocks.folder}: {error.strerror}; give the disk more space"
                           ) from None

    def close(self) -> None:
        for each in self._folders:
            shutil.rmtree(each, ignore_errors=True)

    def _block_of(self, variant: Variant, cell: Cell) -> AbstractContextManager[str]:
        if not variant.has_written_block:
            return nullcontext("")
        file = self._blocks_of(variant).of(cell.store_bytes)
        if variant.on == "loop":
            if cell.osds > 1:
                raise RunError(f"{variant.name}: a loop device is of one OSD, {cell.name} has"
                               f" {cell.osds}")
            return LoopDevice(file)
        # In ceph.conf $id is an OSD's number.
        return nullcontext(str(file if cell.osds == 1 else file.with_suffix(".$id")))

    def _clients(self, cell: Cell, variant: Variant, settings: dict[str, str],
                 seconds: float) -> dict[str, Any]:
        load = Load(cell.osds, int(str(cell.arguments["depth"])), seconds,
                    int(str(cell.arguments["size"])), cell.store_bytes)
        return clients.measure(cell.workload, variant.store, settings, load, self._progress)

    def _words(self, cell: Cell, variant: Variant, settings: dict[str, str],
               seconds: float) -> list[str]:
        words = [PROGRAM, "--store", variant.store, "--dir", str(self._folder / "store"),
                 "--out", str(self._folder / "result.json"), *cell.words()]
        if "seconds" not in cell.arguments:
            words += ["--seconds", str(cell.seconds or seconds)]
        for option, value in settings.items():
            words += ["--set", f"{option}={value}"]
        return words

    def _finish(self, words: list[str]) -> dict[str, Any]:
        status, said = self._start(words)
        if status != 0:
            raise RunError(f"'{' '.join(words)}' ended with status {status}:\n" +
                           "\n".join(said[-12:]))
        result = json.loads((self._folder / "result.json").read_text())
        for phase in result["phases"]:
            phase["counters"] = {
                path: round(value, 6) for path, value in phase["counters"].items()
                if value and path.startswith(KEPT_COUNTERS)}
        return result

    def _die_and_restart(self, words: list[str]) -> dict[str, Any]:
        """The first process kills itself under load; the second mounts what it left, with
        nothing of it in memory."""
        status, said = self._start(words)
        if status != -9 or not self._last_progress.startswith("load "):
            raise RunError(f"'{' '.join(words)}' should have been killed under load, its status is"
                           f" {status}, its last progress '{self._last_progress}':\n" +
                           "\n".join(said[-12:]))
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        at = words.index("--workload") + 1
        before = machine_usage(self._folder / "store")
        result = self._finish([*words[:at], "restart", *words[at + 1:]])
        result["usage"] = since(before, machine_usage(self._folder / "store"))
        result["values"]["load seconds"] = measured_seconds(words)
        return result

    def _start(self, words: list[str]) -> tuple[int, list[str]]:
        """The process's status and what it said, its progress passed on."""
        said: list[str] = []
        self._last_progress = ""
        command = ["setpriv", "--pdeathsig", "KILL", *words]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, errors="replace") as process:
            limit = RUN_SECONDS + measured_seconds(words)
            too_long = threading.Timer(limit, self._give_up, [process, said, limit])
            too_long.start()
            try:
                assert process.stderr
                for line in process.stderr:
                    line = line.rstrip()
                    if line.startswith("progress "):
                        self._last_progress = line.removeprefix("progress ")
                        self._progress(self._last_progress)
                    else:
                        said.append(line)
                status = process.wait()
            except BaseException:
                process.kill()
                raise
            finally:
                too_long.cancel()
        return status, said

    @staticmethod
    def _give_up(process: subprocess.Popen[str], said: list[str], limit: float) -> None:
        said.append(f"(killed: it took more than {limit:.0f} s)")
        process.kill()

    def _quiet_disk(self) -> None:
        """What the last run deleted is discarded by the file system's next
        commit, which would fall into the next run."""
        os.sync()
        for _ in range(20):
            before = written_bytes(self._folder)
            time.sleep(0.1)
            if written_bytes(self._folder) - before < MIB:
                return


def measured_seconds(words: list[str]) -> float:
    return float(words[words.index("--seconds") + 1])


def right_temperature(result: dict[str, Any]) -> dict[str, Any]:
    wrong = wrong_temperature(result)
    if wrong:
        raise RunError(wrong)
    return result


def written_bytes(folder: Path) -> int:
    """By the whole machine, on the disk of a directory."""
    device = os.stat(folder).st_dev
    stat = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    try:
        return int(stat.read_text().split()[6]) * 512
    except (OSError, IndexError):
        return 0
