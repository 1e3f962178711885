#!/usr/bin/env python3
"""Tests of the packages, on fresh hosts: the last line is the count.

    package_test.py --debs DIR [--again DIR] [--older DIR] [--repository DIR] [--quick]

DIR has what packages.py made; --again the same, made once more; --older what it made of an older
commit; --repository a signed repository of them.
"""
import argparse
import inspect
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dispatch_cases  # noqa: E402
import packages  # noqa: E402
from fresh_host import Failed, FreshHost, in_child  # noqa: E402
from label import label_of, set_unknown_feature  # noqa: E402

CHECKOUT = packages.CHECKOUT
STATE = Path("/state")
OURS = "/usr/lib/ceph-tablestore"
DIVERTED = ("ceph-osd", "ceph-objectstore-tool")
# What their files are is not to change by our coming and going.
CEPH_PACKAGES = ("ceph-osd", "ceph-base", "ceph-common", "ceph-volume")


@dataclass(frozen=True)
class Given:
    """What the tests are about."""

    debs: list[Path]
    again: list[Path]
    older: list[Path]
    repository: Path | None
    work: Path

    @property
    def installable(self) -> list[Path]:
        return [deb for deb in self.debs if "-dbgsym_" not in deb.name]

    def host(self, name: str, *shown: Path) -> FreshHost:
        return FreshHost(self.work / name, shown)


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Failed(what)


def expect_same(found: object, expected: object, what: str) -> None:
    expect(found == expected, f"{what}: {found!r}, expected {expected!r}")


# -- the files ------------------------------------------------------------


def lintian_has_nothing_to_say(given: Given) -> None:
    done = subprocess.run(["lintian", "--allow-root", "--tag-display-limit", "0",
                           "--fail-on", "error,warning", *map(str, given.debs)],
                          capture_output=True, text=True, check=False)
    expect(done.returncode == 0 and not done.stdout.strip(), done.stdout + done.stderr)


def two_builds_make_the_same_bytes(given: Given) -> None:
    expect_same([deb.name for deb in given.again], [deb.name for deb in given.debs], "packages")
    for one, other in zip(given.debs, given.again):
        expect(one.read_bytes() == other.read_bytes(), f"{one.name} differs")


def programs_stand_alone_and_are_hardened(given: Given) -> None:
    with tempfile.TemporaryDirectory(dir=given.work) as temporary:
        for deb in given.installable:
            subprocess.run(["dpkg-deb", "-x", str(deb), temporary], check=True)
        found = [path for path in Path(temporary).rglob("*")
                 if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
        expect(len(found) >= 2, f"only {len(found)} programs in the packages")
        for path in found:
            dynamic = subprocess.run(["readelf", "-d", str(path)], check=True,
                                     capture_output=True, text=True).stdout
            expect(not re.search(r"R(UN)?PATH", dynamic), f"{path.name} has a run path")
            expect("libceph-common" not in dynamic, f"{path.name} wants a libceph-common")
            checked = subprocess.run(["hardening-check", "--nocfprotection", "--nobranchprotection",
                                      str(path)], capture_output=True, text=True, check=False)
            expect(checked.returncode == 0, checked.stdout + checked.stderr)


def the_build_has_the_flags_that_debian_wants(_given: Given) -> None:
    wanted: set[str] = set()
    for kind in ("CPPFLAGS", "CXXFLAGS"):
        flags = subprocess.run(["dpkg-buildflags", "--get", kind], check=True, text=True,
                               capture_output=True).stdout.split()
        wanted |= {flag for flag in flags if flag.startswith(("-f", "-D"))
                   and not flag.startswith("-ffile-prefix-map")}
    expect(wanted != set(), "dpkg-buildflags says nothing")
    commands = subprocess.run(
        ["ninja", "-C", "/ceph/build", "-t", "commands", "bin/ceph-osd"], check=True, text=True,
        capture_output=True).stdout.splitlines()
    ours = next(line for line in commands if line.endswith("os/tablestore/TableStore.cc"))
    expect_same(wanted - set(ours.split()), set(), "flags that are missing")


# -- coming and going -----------------------------------------------------


def installs_beside_the_packaged_programs_and_purges_without_a_trace(given: Given) -> None:
    with given.host("install") as host:
        before = state_of(host)
        host.install(given.installable)
        for program in DIVERTED:
            expect_same(host.run("dpkg-divert", "--listpackage", f"/usr/bin/{program}").strip(),
                        "ceph-osd-tablestore", f"who diverts {program}")
            expect(host.path(f"{OURS}/packaged/{program}").is_file(), f"{program} did not move")
        expect_same(host.run("dpkg", "-V", "ceph-osd-tablestore", *CEPH_PACKAGES), "",
                    "changed files while it is installed")
        lines = host.run("ceph-osd", "--version").splitlines()
        expect_same(len(lines), 2, "lines of ceph-osd --version")
        expect("tablestore" not in lines[0] and
               lines[1].endswith(f" - tablestore {packages.release()})"), "\n".join(lines))
        expect_same(lines[0].split()[:5], lines[1].split()[:5], "the two versions of Ceph")
        host.purge()
        expect_same(state_of(host), before, "after a purge")


def state_of(host: FreshHost) -> dict[str, str]:
    state = {f"/usr/bin/{program}": host.run("sha256sum", f"/usr/bin/{program}")
             for program in DIVERTED}
    state["verify"] = host.run("dpkg", "-V", *CEPH_PACKAGES)
    state["diversions"] = host.run("dpkg-divert", "--list", "*ceph*")
    state["left"] = host.try_run("find", "/usr", "/etc", "/var/lib", "/lib", "-xdev", "-ipath",
                                 "*tablestore*").stdout
    return state


def removal_and_a_second_installation_work_too(given: Given) -> None:
    with given.host("remove") as host:
        host.install(given.installable)
        host.install(given.installable)
        host.run("dpkg", "--force-unsafe-io", "--remove", "ceph-osd-tablestore",
                 *(["ceph-volume-tablestore"] if len(given.installable) > 1 else []))
        expect_same(host.run("dpkg", "-V", *CEPH_PACKAGES), "", "changed files after a removal")
        host.install(given.installable)
        host.purge()
        expect_same(host.run("dpkg", "-V", *CEPH_PACKAGES), "", "changed files after a purge")


def the_dispatcher_goes_by_directory_command_line_and_configuration(given: Given) -> None:
    with given.host("dispatch") as host:
        host.install(given.installable)
        wrong = dispatch_cases.run_all(host)
        expect(not wrong, "\n".join(wrong))


# -- stores ---------------------------------------------------------------


def both_kinds_of_osd_are_made_and_examined_by_their_own_programs(given: Given) -> None:
    with given.host("stores") as host:
        host.install(given.installable)
        host.run("mkdir", "-p", "/var/run/ceph", "/data/table", "/data/blue")
        identity = "11111111-2222-3333-4444-555555555555"
        for number, directory, options in (
                ("7", "/data/table", ["--osd-objectstore", "tablestore",
                                      "--tablestore-capacity", "2G"]),
                ("8", "/data/blue", ["--bluestore-block-size", "1G"])):
            host.run("ceph-osd", "-i", number, "--mkfs", "--no-mon-config", "--osd-data", directory,
                     "--osd-uuid", identity, "--fsid", identity, *options)
            made = host.path(f"{directory}/type").read_text(encoding="utf-8").strip()
            expect_same(made, "tablestore" if number == "7" else "bluestore", directory)
            listed = host.run("ceph-objectstore-tool", "--data-path", directory, "--op", "list",
                              "--no-mon-config", "--pgid", "meta")
            expect("osd_superblock" in listed, f"{directory}: {listed}")
        label = label_of(host.path("/data/table/label"))
        expect_same((label.made_by, label.opened_by), (packages.release(), packages.release()),
                    "releases in the label")
        an_older_program_refuses_in_one_line(host, "/data/table")


def an_older_program_refuses_in_one_line(host: FreshHost, directory: str) -> None:
    """A store of release 9.3 with a feature that nobody has today."""
    set_unknown_feature(host.path(f"{directory}/label"), bit=40, opened_by=(9, 3))
    done = host.try_run("ceph-objectstore-tool", "--data-path", directory, "--op", "list",
                        "--no-mon-config", "--err-to-stderr")
    expect(done.returncode != 0, "opened a store with an unknown feature")
    said = [line for line in done.stdout.splitlines() if "incompat" in line]
    expect(len(said) == 1 and "incompat bits 0x10000000000" in said[0]
           and "use TableStore 9.3, or a newer one" in said[0], done.stdout)


def an_upgrade_restarts_nothing_and_keeps_the_data(given: Given) -> None:
    older = given.older or [repacked_as_older(deb, given.work) for deb in given.installable]
    with given.host("upgrade", STATE, CHECKOUT) as host:
        for name, debs in (("old", older), ("new", given.installable)):
            host.path(f"/tmp/{name}").mkdir()
            for deb in debs:
                if "-dbgsym_" not in deb.name:
                    shutil.copy(deb, host.path(f"/tmp/{name}"))
        in_child(host, "python3", str(CHECKOUT / "packaging/tests/upgrade_program.py"),
                 "/tmp/old", "/tmp/new", packages.release(), timeout=600)


def repacked_as_older(deb: Path, work: Path) -> Path:
    """The same files under a lower version: for what dpkg does in an upgrade."""
    with tempfile.TemporaryDirectory(dir=work) as temporary:
        tree = Path(temporary) / "tree"
        subprocess.run(["dpkg-deb", "-R", str(deb), str(tree)], check=True)
        control = tree / "DEBIAN/control"
        text = control.read_text(encoding="utf-8")
        control.write_text(re.sub(r"^(Version: )", r"\g<1>0~", text, flags=re.M)
                           .replace("ceph-osd-tablestore (= ", "ceph-osd-tablestore (= 0~"),
                           encoding="utf-8")
        out = work / "older" / deb.name
        out.parent.mkdir(exist_ok=True)
        subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "-b", str(tree), str(out)],
                       check=True, stdout=subprocess.DEVNULL)
    return out


# -- the repository -------------------------------------------------------


def apt_installs_from_the_signed_repository_and_no_other(given: Given) -> None:
    expect(given.repository is not None, "no repository was made")
    assert given.repository is not None
    with given.host("repository", given.repository) as host:
        place = str(given.repository)
        host.run("mkdir", "-p", "/etc/apt/keyrings")
        host.run("cp", f"{place}/tablestore.asc", "/etc/apt/keyrings/")
        text = (given.repository / "tablestore.sources").read_text(encoding="utf-8")
        # What is already installed comes from elsewhere, which is not asked here.
        host.run("sh", "-c", "rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*")
        source = re.sub(r"^URIs: .*$", f"URIs: copy:{place}", text, flags=re.M)
        host.write("/etc/apt/sources.list.d/tablestore.sources", source)
        host.run("apt-get", "-q", "update", "--error-on=any")
        host.run("apt-get", "-y", "-q", "install", "ceph-osd-tablestore")
        expect(packages.release() in host.run("ceph-osd", "--version"), "it does not run")
        host.write("/etc/apt/sources.list.d/tablestore.sources",
                   "".join(line + "\n" for line in source.splitlines()
                           if not line.startswith("Signed-By")))
        host.run("sh", "-c", "rm -rf /var/lib/apt/lists/*")
        expect(host.try_run("apt-get", "-q", "update", "--error-on=any").returncode != 0,
               "apt took a repository whose key it does not have")


QUICK: tuple[Callable[[Given], None], ...] = (
    lintian_has_nothing_to_say,
    programs_stand_alone_and_are_hardened,
    the_build_has_the_flags_that_debian_wants,
    installs_beside_the_packaged_programs_and_purges_without_a_trace,
    the_dispatcher_goes_by_directory_command_line_and_configuration,
    both_kinds_of_osd_are_made_and_examined_by_their_own_programs,
)
SLOW: tuple[Callable[[Given], None], ...] = (
    two_builds_make_the_same_bytes,
    removal_and_a_second_installation_work_too,
    apt_installs_from_the_signed_repository_and_no_other,
    an_upgrade_restarts_nothing_and_keeps_the_data,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=inspect.getdoc(sys.modules[__name__]))
    for name in ("debs", "again", "older", "repository"):
        parser.add_argument(f"--{name}", type=Path, required=name == "debs")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[], metavar="PART_OF_A_NAME")
    options = parser.parse_args()

    def debs(directory: Path | None) -> list[Path]:
        return sorted(directory.glob("*.deb")) if directory else []

    tests = QUICK if options.quick else QUICK + SLOW
    if options.only:
        tests = tuple(test for test in QUICK + SLOW
                      if any(part in test.__name__ for part in options.only))
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="package-test.", dir=STATE) as work:
        given = Given(debs(options.debs), debs(options.again), debs(options.older),
                      options.repository, Path(work))
        for test in tests:
            began = time.monotonic()
            try:
                test(given)
                passed += 1
                print(f"ok   {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
            except (Failed, subprocess.SubprocessError, OSError) as error:
                failed += 1
                print(f"FAIL {test.__name__}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
