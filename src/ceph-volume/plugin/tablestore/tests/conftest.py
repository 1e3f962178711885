"""A monitor with cephx, blank directories and devices, and the plugin in a process of its own.

All of it is real; it needs root, and a mount namespace of its own (./run test ceph-volume), since
it has /etc/ceph and /var/lib/ceph for itself."""
from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PLUGIN = Path(__file__).resolve().parent.parent
ROOM = Path(os.environ["TABLESTORE_TEST_DIR"])
DEVICE_BYTES = 2 << 30
CAPACITY = "1G"
sys.path.insert(0, str(PLUGIN))


@dataclass(frozen=True)
class Said:
    code: int
    text: str
    output: str

    def refused(self, words: str) -> None:
        """In one line that says so."""
        assert self.code == 1, self.text
        lines = [line for line in self.text.splitlines() if line.startswith("--> ")]
        assert words in lines[-1], self.text
        assert "Traceback" not in self.text


def shell(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def plugin(*words: object, before: Callable[[], None] = lambda: None) -> Said:
    """ceph-volume tablestore WORDS. `before` is called in its process."""
    errors, output = ROOM / "errors", ROOM / "output"
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = in_child([str(word) for word in words], before, errors, output)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return Said(status, errors.read_text(), output.read_text())


def in_child(words: list[str], before: Callable[[], None], errors: Path, output: Path) -> int:
    os.setpgid(0, 0)
    sys.stderr, sys.stdout = open(errors, "w"), open(output, "w")
    from ceph_volume import conf, configuration
    from ceph_volume_tablestore import TableStore
    conf.cluster, conf.path = "ceph", "/etc/ceph/ceph.conf"
    conf.ceph = configuration.load(conf.path)
    before()
    try:
        TableStore(words).main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.stdout.flush()
    return 0


class StopAt:
    """Ends the plugin before or after the n-th program that it starts, not counting those that
    undo something."""

    def __init__(self, number: int, how: str):
        self._left = number
        self._how = how

    def __call__(self) -> None:
        from ceph_volume import process
        for name in ("call", "run"):
            setattr(process, name, self._counting(getattr(process, name)))

    def _counting(self, function: Callable[..., object]) -> Callable[..., object]:
        def counted(*words: object, **options: object) -> object:
            self._left -= 1
            if self._left == 0 and self._how == "kill":
                os._exit(137)
            answer = function(*words, **options)
            if self._left == 0 and self._how == "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
            return answer
        return counted


def free_port() -> int:
    """Two runs at once have a monitor each. Below the range from which clients get theirs."""
    for port in random.sample(range(20000, 30000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port between 20000 and 30000 on 127.0.0.1")


class Cluster:
    """A monitor, and what it knows."""

    def __init__(self) -> None:
        self._room = ROOM / "mon"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        address = f"[v2:127.0.0.1:{free_port()}]"
        for each in ("/etc/ceph", "/var/lib/ceph/osd", "/var/lib/ceph/bootstrap-osd", self._room):
            Path(each).mkdir(parents=True, exist_ok=True)
        fsid = str(uuid.uuid4())
        Path("/etc/ceph/ceph.conf").write_text(
            f"[global]\nfsid = {fsid}\nmon host = {address}\n"
            "mon warn on insecure global id reclaim allowed = false\n"
            f"mon data = {self._room}/data\nlog file = {self._room}/$name.log\n"
            "pid file =\nadmin socket =\n")
        keys = self._room / "keys"
        admin, bootstrap = ("/etc/ceph/ceph.client.admin.keyring",
                            "/var/lib/ceph/bootstrap-osd/ceph.keyring")
        for path, name, cap in ((keys, "mon.", "allow *"), (admin, "client.admin", "allow *"),
                                (bootstrap, "client.bootstrap-osd", "profile bootstrap-osd")):
            shell("ceph-authtool", "--create-keyring", path, "--gen-key", "-n", name,
                  "--cap", "mon", cap)
        for each in (admin, bootstrap):
            shell("ceph-authtool", keys, "--import-keyring", each)
        shell("monmaptool", "--create", "--clobber", "--addv", "a", address, "--fsid", fsid,
              self._room / "map")
        shell("ceph-mon", "--mkfs", "-i", "a", "--monmap", self._room / "map", "--keyring", keys)
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "ceph-mon", "-f", "-i", "a"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while subprocess.run(["ceph", "--connect-timeout", "5", "-s"],
                             capture_output=True).returncode != 0:
            assert time.monotonic() < until, "the monitor does not answer"
            time.sleep(0.2)

    def stop(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def osds(self) -> dict[int, str]:
        """Number and UUID of all that are not destroyed."""
        dump = json.loads(shell("ceph", "osd", "dump", "-f", "json"))
        return {osd["osd"]: osd["uuid"] for osd in dump["osds"]
                if "destroyed" not in osd["state"]}

    def forget_all(self) -> None:
        """By what the manager, which is not here, would do."""
        for number in json.loads(shell("ceph", "osd", "ls", "-f", "json")):
            shell("ceph", "osd", "purge-actual", number, "--yes-i-really-mean-it")


@pytest.fixture(scope="session")
def the_cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(the_cluster: Cluster) -> Iterator[Cluster]:
    yield the_cluster
    the_cluster.forget_all()
    for path in Path("/var/lib/ceph/osd").iterdir():
        if path.is_symlink():
            path.unlink()
        else:
            subprocess.run(["umount", path], capture_output=True)
            shutil.rmtree(path)


@pytest.fixture
def directory(cluster: Cluster) -> Iterator[Path]:
    path = ROOM / "osd"
    path.mkdir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@contextmanager
def loop_device(image: Path) -> Iterator[Path]:
    try:
        loop = shell("losetup", "--find", "--show", image).strip()
    except AssertionError as error:
        pytest.skip(f"no loop devices: {error}")
    yield Path(loop)
    subprocess.run(["umount", "--all-targets", loop], capture_output=True)
    shell("losetup", "--detach", loop)
    image.unlink()


@contextmanager
def others_hidden(own: set[Path]) -> Iterator[None]:
    """Loop devices of somebody else on this machine: the plugin looks at all that there are."""
    others = [path for path in Path("/dev").glob("loop[0-9]*") if path not in own]
    for path in others:
        shell("mount", "--bind", "/dev/null", path)
    yield
    for path in others:
        shell("umount", path)


def blank_image(name: str) -> Path:
    image = ROOM / name
    with open(image, "w") as file:
        file.truncate(DEVICE_BYTES)
    return image


@pytest.fixture
def device(cluster: Cluster) -> Iterator[Path]:
    with loop_device(blank_image("image")) as path, others_hidden({path}):
        yield path


@pytest.fixture
def two_devices(cluster: Cluster) -> Iterator[tuple[Path, Path]]:
    """In the order in which they are looked at."""
    with loop_device(blank_image("image")) as one, loop_device(blank_image("image2")) as two:
        with others_hidden({one, two}):
            yield one, two


@pytest.fixture(autouse=True)
def only_own_devices(request: pytest.FixtureRequest) -> Iterator[None]:
    if {"device", "two_devices", "place"} & set(request.fixturenames):
        yield
    else:
        with others_hidden(set()):
            yield


@pytest.fixture(params=["directory", "device"])
def place(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """What follows --data."""
    path = str(request.getfixturevalue(request.param))
    if request.param == "device":
        yield [path]
    else:
        with others_hidden(set()):
            yield [path, "--capacity", CAPACITY]
