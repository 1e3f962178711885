"""A host that nothing was done to yet: the root file system with a layer over it, in a chroot.

What a test changes in it goes with it. Everything runs inside the environment, whose mounts are
this program's own.
"""
from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

ENVIRONMENT = {"HOME": "/root", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "dumb",
               "DEBIAN_FRONTEND": "noninteractive", "PYTHONDONTWRITEBYTECODE": "1",
               "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


class Failed(Exception):
    """A command on the host did not do what was expected; says what it said."""


class FreshHost:
    """Owns a directory with the layer and the mounts. `shown` are directories of the environment
    that are to be seen in it, at the same paths."""

    def __init__(self, work: Path, shown: Sequence[Path] = ()):
        self.work = work
        self.root = work / "root"
        self.shown = shown

    def __enter__(self) -> FreshHost:
        for name in ("root", "layer", "overlay"):
            (self.work / name).mkdir(parents=True)
        mount("-t", "overlay", "-o",
              f"lowerdir=/,upperdir={self.work}/layer,workdir={self.work}/overlay",
              "overlay", str(self.root))
        mount("-t", "proc", "proc", f"{self.root}/proc")
        mount("-t", "tmpfs", "tmpfs", f"{self.root}/run")
        mount("-t", "tmpfs", "tmpfs", f"{self.root}/tmp")
        for place in (Path("/sys"), Path("/dev"), *self.shown):
            self.path(str(place)).mkdir(parents=True, exist_ok=True)
            mount("--rbind", str(place), str(self.path(str(place))))
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None,
                 _trace: TracebackType | None) -> None:
        subprocess.run(["umount", "--recursive", "--lazy", str(self.root)], check=True)
        if str(self.root) in Path("/proc/self/mountinfo").read_text(encoding="utf-8"):
            raise Failed(f"{self.root} is still mounted, and stays as it is")
        shutil.rmtree(self.work)

    def path(self, inside: str) -> Path:
        return self.root / inside.lstrip("/")

    def write(self, inside: str, text: str, mode: int = 0o644) -> None:
        path = self.path(inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)

    def try_run(self, *words: str, timeout: float = 300,
                **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["chroot", str(self.root), *words], text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False,
                              env=ENVIRONMENT | environment)

    def run(self, *words: str, timeout: float = 300, **environment: str) -> str:
        done = self.try_run(*words, timeout=timeout, **environment)
        if done.returncode != 0:
            said = done.stdout[-3000:]
            raise Failed(f"'{' '.join(words)}' ended with {done.returncode}:\n{said}")
        return done.stdout

    def install(self, debs: Sequence[Path]) -> None:
        """By dpkg: what they depend on is there already."""
        inside = []
        for deb in debs:
            shutil.copy(deb, self.path("/tmp"))
            inside.append(f"/tmp/{deb.name}")
        self.run("dpkg", "--force-unsafe-io", "-i", *inside)

    def purge(self) -> None:
        packages = [name for name in self.run("dpkg-query", "-W", "-f", "${Package}\\n").split()
                    if "tablestore" in name]
        self.run("dpkg", "--force-unsafe-io", "--purge", *packages)


def mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"mount {' '.join(words)}: {done.stderr.strip()}")


def in_child(host: FreshHost, *words: str, timeout: float) -> None:
    """A program of this checkout on the host, its output shown as it comes."""
    done = subprocess.run(["chroot", str(host.root), *words], stdin=subprocess.DEVNULL, check=False,
                          timeout=timeout, env={**ENVIRONMENT, **kept_variables()})
    if done.returncode != 0:
        raise Failed(f"'{' '.join(words)}' ended with {done.returncode}")


def kept_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("TABLESTORE_")}
