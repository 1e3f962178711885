"""All daemons of one cluster: first start, restart, stop, and what to wait for."""
from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .client import MON_SECONDS, Client
from .config import Layout, Settings, ceph_conf
from .daemons import Daemon
from .errors import ClusterError
from .file_system import FileSystem
from .keys import first_keys, give_key
from .wait import wait_until

MGR_SECONDS = 90
OSD_SECONDS = 120     # the first boot runs the OSD's own benchmark
CLEAN_SECONDS = 180

Progress = Callable[[str], None]


class Cluster:
    """Owns the directory and the processes of one cluster. One thread."""

    def __init__(self, root: Path, settings: Settings, *, ephemeral: bool = False,
                 progress: Progress = lambda line: None):
        self.layout = Layout(root)
        self.settings = settings
        self.progress = progress
        self.mon = Daemon(self.layout, "mon", "a", ephemeral=ephemeral)
        self.mgr = Daemon(self.layout, "mgr", "x", ephemeral=ephemeral)
        self.osds = [Daemon(self.layout, "osd", str(number), ephemeral=ephemeral)
                     for number in range(settings.osds)]
        self.ephemeral = ephemeral
        self.services: list[Daemon] = []    # others, between clients and OSDs: see services.py
        self._client: Client | None = None

    @property
    def daemons(self) -> list[Daemon]:
        return [self.mon, self.mgr, *self.osds, *self.services]

    def running(self) -> list[Daemon]:
        return [daemon for daemon in self.daemons if daemon.pid()]

    @property
    def client(self) -> Client:
        if self._client is None:
            client = Client(self.layout.conf)
            client.wait_connected(self.mon.check_alive, self.mon.last_lines)
            self._client = client
        return self._client

    # -- start and stop ---------------------------------------------------

    def start(self) -> None:
        """Creates the cluster, or starts an existing one again; comes back
        when every OSD is up."""
        self.layout.make_directories()
        self.layout.save(self.settings)
        self.layout.conf.write_text(ceph_conf(self.layout, self.settings))
        if not self.layout.data("mon.a").exists():
            self.progress("making the mon's store")
            self._make_mon()
        self.progress("starting mon and mgr")
        self.mon.start()
        wait_until("the mon's quorum", lambda: self.client.mon("status")["quorum"], MON_SECONDS,
                   explain=self.mon.last_lines)
        if not self.layout.data("mgr.x").exists():
            self._make_mgr()
        self.mgr.start()
        booted_before = self.boots()
        for osd in self.osds:
            if self.layout.image(osd.name).exists():
                self.file_system(osd).mount()
            if not (self.layout.data(osd.name) / "ready").exists():
                self.progress(f"making {osd.name} ({self.settings.store})")
                self._make_osd(osd)
            self.progress(f"starting {osd.name}")
            osd.start()
        self.wait_up(booted_before)
        self.wait_mgr()

    def _make_mon(self) -> None:
        """In a directory of another name first: an interrupted mkfs leaves
        nothing that looks like a mon."""
        final = self.layout.data("mon.a")
        part = final.with_name("mon.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        monmap = self.layout.root / "monmap"
        made = subprocess.run(
            ["monmaptool", "--create", "--clobber", "--fsid", self.settings.fsid, "--addv", "a",
             f"[v2:127.0.0.1:{self.settings.mon_port}]", str(monmap)],
            capture_output=True, text=True)
        if made.returncode != 0:
            raise ClusterError("monmaptool failed", details=made.stderr.splitlines())
        keys = ["--keyring", str(first_keys(self.layout))] if self.settings.cephx else []
        self.mon.run_once("--mkfs", "--monmap", str(monmap), "--mon-data", str(part), *keys)
        part.rename(final)

    def _make_mgr(self) -> None:
        """Without modules (see mgr_disabled_modules); that some of them are
        missing is not news."""
        self.client.mon("health mute", code="MGR_MODULE_ERROR", sticky=True)
        give_key(self, "mgr.x", mon="allow profile mgr", osd="allow *", mds="allow *")
        self.layout.data("mgr.x").mkdir()

    def _make_osd(self, osd: Daemon) -> None:
        identity = str(uuid.uuid4())
        known = {str(each["osd"]): each["uuid"] for each in self.client.mon("osd dump")["osds"]}
        if osd.ident in known:  # a start that was cut short between here and "ready"
            identity = known[osd.ident]
        else:
            self.client.mon("osd new", uuid=identity, id=int(osd.ident))
        give_key(self, osd.name, mon="allow profile osd", mgr="allow profile osd", osd="allow *")
        data = self.layout.data(osd.name)
        self.file_system(osd).remove()
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        if self.settings.file_system:
            self.file_system(osd).make(self.settings.file_system, self.settings.file_system_bytes)
        osd.run_once("--mkfs", "--osd-uuid", identity)
        self._check_store(osd)

    def file_system(self, osd: Daemon) -> FileSystem:
        return FileSystem(self.layout.image(osd.name), self.layout.data(osd.name))

    def _check_store(self, osd: Daemon) -> None:
        """A ceph-osd that does not know a store's name takes its default."""
        wanted = self.settings.store
        made = (self.layout.data(osd.name) / "type").read_text().strip()
        if made != wanted:
            shutil.rmtree(self.layout.data(osd.name))
            raise ClusterError(f"{osd.command()[0]} does not know {wanted}: it made a {made}",
                               hint="build the OSD of this project first: ./run setup")

    def stop(self) -> None:
        """OSDs first, so that the mon hears of it. Never raises for a daemon
        that is already gone."""
        if self._client is not None:
            self._client.close()
            self._client = None
        for group in (self.services, self.osds, [self.mgr], [self.mon]):
            for daemon in group:
                daemon.signal(15)
            for daemon in group:
                daemon.stop()
        self.services.clear()

    def remove(self) -> None:
        for service in self.services:       # a gateway takes twenty seconds to end
            try:
                service.kill()
            except ClusterError as error:
                print(f"{service.name} is left behind: {error}", flush=True)
        self.stop()
        for osd in self.osds:
            self.file_system(osd).remove()
        shutil.rmtree(self.layout.root, ignore_errors=True)

    # -- conditions -------------------------------------------------------

    def check_daemons(self) -> None:
        for daemon in self.daemons:
            daemon.check_alive()

    def boots(self) -> dict[str, int]:
        """OSD -> the map epoch of its last boot."""
        dump = self.client.mon("osd dump")
        return {str(each["osd"]): each["up_from"] for each in dump["osds"]}

    def wait_up(self, booted_before: dict[str, int], only: Daemon | None = None) -> None:
        """Until the OSDs (or one) have booted anew and are up and in."""
        wanted = {osd.ident for osd in ([only] if only else self.osds)}

        def all_up() -> bool:
            for ident in wanted:
                self.osds[int(ident)].check_alive()
            up = {str(each["osd"]) for each in self.client.mon("osd dump")["osds"]
                  if each["up"] and each["in"]
                  and each["up_from"] > booted_before.get(str(each["osd"]), 0)}
            return wanted <= up

        wait_until(f"OSD {', '.join(sorted(wanted))} to come up", all_up, OSD_SECONDS,
                   explain=lambda: self.osds[int(min(wanted))].last_lines())

    def wait_mgr(self) -> None:
        def available() -> bool:
            self.mgr.check_alive()
            return bool(self.client.mon("mgr stat")["available"])

        wait_until("the mgr to be available", available, MGR_SECONDS,
                   explain=self.mgr.last_lines)

    def placement_groups(self) -> list[dict[str, Any]]:
        answer = self.client.mgr("pg dump", dumpcontents=["pgs"])
        return answer["pg_stats"] if isinstance(answer, dict) else answer

    def wait_clean(self, *, since_epoch: int = 0, timeout: float = CLEAN_SECONDS) -> None:
        """Until every placement group of every pool is active+clean with all
        its replicas, as reported in or after map epoch `since_epoch`."""
        unclean: list[str] = []

        def all_clean() -> bool:
            self.check_daemons()
            pools = {pool["pool"]: pool for pool in self.client.mon("osd dump")["pools"]}
            groups = self.placement_groups()
            unclean[:] = [
                f"{group['pgid']} is {group['state']}, on OSDs {group['acting']},"
                f" reported in epoch {group['reported_epoch']}"
                for group in groups if not self._is_clean(group, pools, since_epoch)]
            expected = sum(pool["pg_num"] for pool in pools.values())
            return not unclean and len(groups) == expected

        wait_until("all placement groups to be active+clean", all_clean, timeout,
                   explain=lambda: unclean[:8])

    @staticmethod
    def _is_clean(group: dict[str, Any], pools: dict[int, Any], since_epoch: int) -> bool:
        pool = pools.get(int(group["pgid"].split(".")[0]))
        states = set(group["state"].split("+"))
        return (pool is not None and {"active", "clean"} <= states
                and not states & {"degraded", "inconsistent", "undersized", "peered"}
                and len(group["acting"]) == pool["size"]
                and int(group["reported_epoch"]) >= since_epoch)

    # -- things that tests and demo do ------------------------------------

    def create_pool(self, name: str, *, groups: int = 32, size: int | None = None,
                    application: str = "rados") -> None:
        size = size or self.settings.replicas
        self.client.mon("osd pool create", pool=name, pg_num=groups, pgp_num=groups,
                        size=size, yes_i_really_mean_it=True)
        self.client.mon("osd pool application enable", pool=name, app=application)
        self.wait_clean()

    def delete_pool(self, name: str) -> None:
        self.client.mon("osd pool delete", pool=name, pool2=name,
                        yes_i_really_really_mean_it=True)

    def restart_killed(self, osd: Daemon) -> None:
        """Starts an OSD that was killed; comes back when it is up again. Where it is alone there is
        no other OSD to report it, and one whose fullness has changed waits for a monitor that heeds
        it only when the killed one counts as down (OSD::_preboot, OSDMonitor::preprocess_full)."""
        before = self.boots()
        if len(self.osds) == 1:
            self.client.mon("osd down", ids=[osd.ident])
        osd.start()
        self.wait_up(before, osd)

    def recovered(self) -> None:
        """After a restart: until all is clean, by reports newer than the boots."""
        self.wait_clean(since_epoch=max(self.boots().values()))
