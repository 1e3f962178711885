"""What a test gets: a cluster, pools of its own, and the rados command."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import rados

from cephcluster.cluster import Cluster
from cephcluster.config import STORE_BYTES, STORES
from cephcluster.daemons import Daemon
from cephcluster.errors import ClusterError
from cephcluster.tool import run_tool


@dataclass(frozen=True)
class Kind:
    """Of a cluster. Tests that want the same share one."""

    osds: int = 1
    name: str = ""                  # tells those apart that have as many OSDs
    file_system: str = ""           # each OSD's own; "": what --fs says
    file_system_bytes: int = STORE_BYTES
    osd_options: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        return f"{self.osds}{'_' if self.name else ''}{self.name}"


@dataclass(frozen=True)
class Test:
    name: str
    kind: Kind
    run: Callable[["Bed"], str | None]   # what it returns is printed after "ok"
    stores: tuple[str, ...]


TESTS: list[Test] = []


def test(*, osds: int = 1, kind: Kind | None = None, stores: tuple[str, ...] = STORES
         ) -> Callable[[Callable[["Bed"], str | None]], Callable[["Bed"], str | None]]:
    """Registers a test for a cluster of `osds` OSDs, or of a `kind`, on one of `stores`."""

    def register(function: Callable[["Bed"], str | None]) -> Callable[["Bed"], str | None]:
        TESTS.append(Test(function.__name__, kind or Kind(osds), function, stores))
        return function

    return register


def check(condition: object, message: str) -> None:
    if not condition:
        raise ClusterError(message)


def check_equal(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise ClusterError(f"{what}: found {shown(found)}, expected {shown(expected)}")


def check_bytes(found: bytes, expected: bytes, what: str) -> None:
    """As check_equal, but says where the first wrong byte is."""
    if found == expected:
        return
    if len(found) != len(expected):
        raise ClusterError(f"{what}: {len(found)} bytes, expected {len(expected)}")
    at = next(i for i, (one, other) in enumerate(zip(found, expected)) if one != other)
    raise ClusterError(f"{what}: byte {at} of {len(found)} is {found[at]:#04x},"
                       f" expected {expected[at]:#04x}")


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."


class Bed:
    """One cluster for the tests that want its kind, one after another."""

    _numbers = itertools.count(1)

    def __init__(self, cluster: Cluster):
        self.cluster = cluster

    @property
    def osd(self) -> Daemon:
        return self.cluster.osds[0]

    @property
    def store(self) -> str:
        return self.cluster.settings.store

    def heal(self) -> None:
        """A test that failed may have left an OSD dead: the next one gets a
        whole cluster."""
        dead = [osd for osd in self.cluster.osds if not osd.pid()]
        for osd in dead:
            self.cluster.restart_killed(osd)
        if dead:
            self.cluster.recovered()

    def state(self) -> list[str]:
        """What may explain a failure: what waits in the OSDs."""
        lines: list[str] = []
        for osd in self.cluster.osds:
            try:
                waiting = osd.ask("dump_ops_in_flight", wait_seconds=5)
            except ClusterError as error:
                lines.append(str(error))
                continue
            lines.append(f"{osd.name}: {waiting['num_ops']} operations in flight")
            lines += [f"  for {op['age']:.0f} s: {op['description']}"
                      f" ({op['type_data']['flag_point']})" for op in waiting["ops"][:3]]
        return lines

    @contextmanager
    def pool(self, *, groups: int = 8, size: int | None = None) -> Iterator[str]:
        name = f"pool{next(self._numbers)}"
        self.cluster.create_pool(name, groups=groups, size=size)
        try:
            yield name
        finally:
            self.cluster.delete_pool(name)

    @contextmanager
    def io(self, *, groups: int = 8) -> Iterator[rados.Ioctx]:
        """An I/O context on a pool of its own."""
        with self.pool(groups=groups) as pool:
            io = self.cluster.client.open_pool(pool)
            try:
                yield io
            finally:
                io.close()

    def restart_osd(self) -> None:
        """kill -9 and start again: what is read next comes from the disk."""
        self.osd.kill()
        self.cluster.restart_killed(self.osd)
        self.cluster.recovered()

    def file(self, name: str) -> Path:
        folder = self.cluster.layout.root / "files"
        folder.mkdir(exist_ok=True)
        return folder / name

    def rados(self, pool: str, *arguments: object) -> str:
        return run_tool("rados", "-c", self.cluster.layout.conf, "-p", pool, *arguments,
                        watch=self.cluster.check_daemons)
