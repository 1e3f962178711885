"""Where a cluster's files are, and its ceph.conf."""
from __future__ import annotations

import json
import os
import random
import shutil
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from .errors import ClusterError

STATE = Path(os.environ.get("TABLESTORE_STATE", "/state"))
LOGS = Path("/logs")
STORES = ("tablestore", "bluestore", "kstore", "memstore")

# A unix socket's path has 107 bytes; "/run/osd.123.asok" comes after ours.
LONGEST_DIRECTORY = 85

GIB = 1 << 30
STORE_BYTES = 20 * GIB      # sparse: space is used as it is written
MEMSTORE_BYTES = 4 * GIB

MGR_MODULES = Path("/usr/share/ceph/mgr")


@dataclass(frozen=True)
class Settings:
    """What was asked for; kept in the cluster's directory as cluster.json."""

    store: str
    osds: int
    fsid: str
    mon_port: int
    osd_options: dict[str, str] = field(default_factory=dict)   # over all others
    # Of each OSD's own; "": its directory is one of the cluster's.
    file_system: str = ""
    file_system_bytes: int = STORE_BYTES
    cephx: bool = False     # keys, and signed messages, as clusters in use have them

    @staticmethod
    def new(store: str, osds: int, osd_options: dict[str, str] | None = None,
            file_system: str = "", file_system_bytes: int = STORE_BYTES,
            cephx: bool = False) -> Settings:
        if store not in STORES:
            raise ClusterError(f"no store is called '{store}'",
                               hint=f"the stores are {', '.join(STORES)}")
        if osds < 1:
            raise ClusterError("a cluster needs at least one OSD")
        return Settings(store, osds, str(uuid.uuid4()), free_port(), osd_options or {},
                        file_system, file_system_bytes, cephx)

    @property
    def replicas(self) -> int:
        return min(3, self.osds)


@dataclass(frozen=True)
class Layout:
    """Paths below one cluster's directory."""

    root: Path

    def __post_init__(self) -> None:
        if len(str(self.root)) > LONGEST_DIRECTORY:
            raise ClusterError(
                f"the directory's path has {len(str(self.root))} characters, at most"
                f" {LONGEST_DIRECTORY} are possible: {self.root}",
                hint="Unix sockets live below it; choose a shorter --dir")

    @property
    def conf(self) -> Path:
        return self.root / "ceph.conf"

    @property
    def settings_file(self) -> Path:
        return self.root / "cluster.json"

    def data(self, daemon: str) -> Path:
        return self.root / daemon

    def image(self, daemon: str) -> Path:
        """What its file system lies in, where it has one of its own."""
        return self.root / f"{daemon}.image"

    def log(self, daemon: str) -> Path:
        return self.root / "log" / f"{daemon}.log"

    def output(self, daemon: str) -> Path:
        return self.root / "log" / f"{daemon}.out"

    def key(self, name: str) -> Path:
        """The keyring of a daemon or client; only with cephx."""
        return self.root / "keys" / name

    def pid(self, daemon: str) -> Path:
        return self.root / "run" / f"{daemon}.pid"

    def socket(self, daemon: str) -> Path:
        return self.root / "run" / f"{daemon}.asok"

    def on_host(self, path: Path) -> str:
        """The path that a person outside the environment can open."""
        real = path.resolve()
        for inside, variable in ((STATE, "TABLESTORE_HOST_STATE"), (LOGS, "TABLESTORE_HOST_LOGS")):
            host = os.environ.get(variable)
            if host and real.is_relative_to(inside):
                return str(Path(host) / real.relative_to(inside))
        return str(path)

    def make_directories(self, lasting_logs: str = "") -> None:
        """With `lasting_logs` the logs go into a directory of that name among
        the logs of ./run, in place of what was there, and outlive the cluster."""
        self.root.mkdir(parents=True, exist_ok=True)
        if lasting_logs and LOGS.is_dir():
            logs = LOGS / lasting_logs
            shutil.rmtree(logs, ignore_errors=True)
            logs.mkdir()
            (self.root / "log").symlink_to(logs)
        for name in ("log", "log/crash", "run", "keys"):
            (self.root / name).mkdir(exist_ok=True)

    def load(self) -> Settings | None:
        try:
            return Settings(**json.loads(self.settings_file.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise ClusterError(f"{self.settings_file} is damaged: {error}",
                               hint="remove the directory and start a new cluster") from error

    def save(self, settings: Settings) -> None:
        part = self.settings_file.with_suffix(".part")
        part.write_text(json.dumps(vars(settings), indent=2) + "\n")
        part.rename(self.settings_file)


def free_port() -> int:
    """A port for the mon, below the range from which the kernel takes
    clients' ports, so that it is still free when the mon restarts."""
    for _ in range(100):
        port = random.randint(20000, 30000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise ClusterError("no free port between 20000 and 30000 on 127.0.0.1")


def all_mgr_modules() -> str:
    if not MGR_MODULES.is_dir():
        return ""
    return ",".join(sorted(path.name for path in MGR_MODULES.iterdir() if path.is_dir()))


def ceph_conf(layout: Layout, settings: Settings) -> str:
    """The whole ceph.conf. Client and mon see [global] only: the packaged
    ones do not know every store's name."""
    root = layout.root
    everywhere = {
        "fsid": settings.fsid,
        "mon_host": f"v2:127.0.0.1:{settings.mon_port}",
        "public_addr": "127.0.0.1",
        "cluster_addr": "127.0.0.1",
        "ms_bind_msgr1": "false",
        **authentication(layout, settings),
        "run_dir": f"{root}/run",
        "crash_dir": f"{root}/log/crash",
        "mon_cluster_log_file": f"{root}/log/cluster.log",
        "osd_pool_default_size": str(settings.replicas),
        "osd_pool_default_min_size": "1",
        "osd_pool_default_pg_num": "32",
        "osd_pool_default_pg_autoscale_mode": "off",
        "osd_crush_chooseleaf_type": "0",
    }
    daemons = {
        "admin_socket": f"{root}/run/$name.asok",
        "log_file": f"{root}/log/$name.log",
    }
    mon = {
        "mon_data": f"{root}/mon.$id",
        "mon_allow_pool_delete": "true",
        "mon_allow_pool_size_one": "true",
        "mon_warn_on_pool_no_redundancy": "false",
        "mon_warn_on_insecure_global_id_reclaim": "false",
        "mon_warn_on_insecure_global_id_reclaim_allowed": "false",
        "mon_max_pg_per_osd": "1000",
        "mon_data_avail_warn": "5",
        "mon_data_avail_crit": "2",
        # All OSDs sit on one host: one of them may report another one dead.
        "mon_osd_reporter_subtree_level": "osd",
        "mon_osd_min_down_reporters": "1",
    }
    mgr = {
        "mgr_data": f"{root}/mgr.$id",
        # They would make a pool of their own, and work while something is measured.
        "mgr_disabled_modules": all_mgr_modules(),
        "mgr_initial_modules": "",
        # Fresh numbers each second: every wait here looks at them.
        "mgr_tick_period": "1",
        "mgr_stats_period": "1",
    }
    osd = {
        "osd_data": f"{root}/osd.$id",
        "osd_objectstore": settings.store,
        "osd_class_load_list": "*",
        "osd_class_default_list": "*",
        # Virtual disks say that they rotate and are far faster than that: without
        # this the result of the OSD's own benchmark is refused, and measured
        # again at every boot.
        "osd_mclock_iops_capacity_threshold_hdd": "1000000",
        "osd_mclock_iops_capacity_threshold_ssd": "1000000",
        "osd_memory_target": str(2 * GIB),
        "mgr_stats_period": "1",
        # A scrub that was asked for starts with the next tick.
        "osd_scrub_backoff_ratio": "0",
        "osd_scrub_load_threshold": "100",
        **store_options(settings.store),
        **settings.osd_options,
    }
    mds = {"mds_data": f"{root}/mds.$id"}
    sections = {"global": everywhere, "mon": daemons | mon, "mgr": daemons | mgr,
                "osd": daemons | osd, "mds": daemons | mds}
    return "\n".join(
        f"[{name}]\n" + "".join(f"\t{key} = {value}\n" for key, value in options.items())
        for name, options in sections.items())


def authentication(layout: Layout, settings: Settings) -> dict[str, str]:
    """A playground on the loopback interface has nothing to protect: by default no keys to carry.
    The mon finds its own key in its data."""
    kind = "cephx" if settings.cephx else "none"
    required = {f"auth_{which}_required": kind for which in ("cluster", "service", "client")}
    return required | ({"keyring": str(layout.key("$name"))} if settings.cephx else {})


def store_bytes(store: str) -> int:
    """What one OSD of a cluster here may hold."""
    return MEMSTORE_BYTES if store == "memstore" else STORE_BYTES


def store_options(store: str) -> dict[str, str]:
    size = str(store_bytes(store))
    if store == "tablestore":
        return {"tablestore_capacity": size}
    if store == "bluestore":
        return {"bluestore_block_size": size}
    if store == "memstore":
        return {"memstore_device_bytes": size}
    return {"enable_experimental_unrecoverable_data_corrupting_features": "*"}
