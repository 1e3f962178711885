#!/usr/bin/env python3
"""Makes the Debian packages of what is built. Runs inside the environment.

    packages.py --out DIR --epoch SECONDS [--commit HASH] [--snapshot S] [--programs DIR]

Two runs for one commit and one build make the same bytes.
"""
import argparse
import email.utils
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGING = CHECKOUT / "packaging"
RELEASE = CHECKOUT / "src/os/tablestore/engine/format/release.h"
PLUGIN = CHECKOUT / "src/ceph-volume/plugin/tablestore"
PLUGIN_MODULE = "ceph_volume_tablestore"
BUILT = Path("/ceph/build/bin")
PROGRAMS = ("ceph-osd", "ceph-objectstore-tool")
# Packed where they are built. A name that Debian has too gets no link in /usr/bin.
MORE_PROGRAMS = ("ceph-tablestore-tool", "ceph-kvstore-tool")
DEBIANS = ("ceph-kvstore-tool",)
MAN_PAGES = ("ceph-tablestore-tool",)
MAINTAINER = "TableStore developers <packages@tablestore.invalid>"
OSD_PACKAGE = "ceph-osd-tablestore"
VOLUME_PACKAGE = "ceph-volume-tablestore"


def release() -> str:
    text = RELEASE.read_text(encoding="utf-8")
    parts = dict(re.findall(r"#define TABLESTORE_RELEASE_(MAJOR|MINOR) (\d+)", text))
    return f"{parts['MAJOR']}.{parts['MINOR']}"


def ceph_version() -> str:
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "ceph-osd"], check=True,
                          capture_output=True, text=True).stdout


def package_version(snapshot: str) -> str:
    """Of TableStore, and behind it of the Ceph that it was built with: the same TableStore for
    another Ceph is another package. `snapshot` is empty for a release, else `~...` or `+...`:
    before it, or after."""
    return f"{release()}{snapshot}+{re.sub('[^0-9.]+', '.', ceph_version())}-1"


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def stage(tree: Path, version: str, epoch: int, commit: str, built: Path) -> None:
    """A source tree as debhelper wants it, with the programs in it."""
    shutil.copytree(PACKAGING / "debian", tree / "debian")
    shutil.copy(CHECKOUT / "CHANGELOG.md", tree)
    stage_control(tree)
    write(tree / "debian/changelog",
          f"ceph-tablestore ({version}) unstable; urgency=medium\n\n"
          f"  * {f'Commit {commit}' if commit else f'Release {release()}'};"
          " see CHANGELOG.md.\n\n"
          f" -- {MAINTAINER}  {email.utils.formatdate(epoch)}\n")
    stage_programs(tree, built)
    if PLUGIN.is_dir():
        stage_plugin(tree)


def stage_control(tree: Path) -> None:
    control = tree / "debian/control"
    more = tree / f"debian/control.{VOLUME_PACKAGE}"
    text = control.read_text(encoding="utf-8").replace("@MAINTAINER@", MAINTAINER)
    if PLUGIN.is_dir():
        text += more.read_text(encoding="utf-8")
    else:
        text = text.replace(f"Recommends: {VOLUME_PACKAGE}\n", "")
    more.unlink()
    control.write_text(text, encoding="utf-8")


def stage_programs(tree: Path, built: Path) -> None:
    found = [*PROGRAMS, *(name for name in MORE_PROGRAMS if (built / name).exists())]
    install = ["programs/* usr/lib/ceph-tablestore/"]
    links = [f"usr/lib/ceph-tablestore/dispatch usr/bin/{name}" for name in PROGRAMS]
    links += [f"usr/lib/ceph-tablestore/{name} usr/bin/{name}"
              for name in found[len(PROGRAMS):] if name not in DEBIANS]
    for name in found:
        (tree / "programs").mkdir(exist_ok=True)
        shutil.copy(built / name, tree / "programs")
    shutil.copy(PACKAGING / "dispatch", tree / "programs")
    write(tree / f"debian/{OSD_PACKAGE}.install", "\n".join(install) + "\n")
    write(tree / f"debian/{OSD_PACKAGE}.links", "\n".join(links) + "\n")
    pages = [name for name in MAN_PAGES if make_man_page(tree, name)]
    write(tree / f"debian/{OSD_PACKAGE}.manpages", "".join(f"man/{name}.8\n" for name in pages))


def make_man_page(tree: Path, name: str) -> bool:
    source = CHECKOUT / f"doc/man/8/{name}.rst"
    if not source.exists():
        return False
    # " NAME -- what it is", as the titles of Ceph's own pages.
    title = re.search(rf"^ *{name} +--? +(.+)$", source.read_text(encoding="utf-8"), re.M)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        page = (name, name, title[1] if title else "", "", 8)
        write(work / "conf.py", f"project = 'TableStore'\nversion = release = '{release()}'\n"
              f"man_pages = [{page!r}]\nroot_doc = '{name}'\n")
        shutil.copy(source, work)
        subprocess.run(["sphinx-build", "-q", "-b", "man", str(work), str(tree / "man")],
                       check=True)
    return True


def stage_plugin(tree: Path) -> None:
    """As pip would have installed it: the module, and a dist-info with its entry point."""
    shutil.copytree(PLUGIN / PLUGIN_MODULE, tree / "plugin" / PLUGIN_MODULE,
                    ignore=shutil.ignore_patterns("__pycache__", "tests", "*.pyc"))
    info = tree / f"plugin/{PLUGIN_MODULE}-{release()}.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {PLUGIN_MODULE.replace('_', '-')}\n"
          f"Version: {release()}\nSummary: ceph-volume's subcommand for TableStore\n")
    write(info / "entry_points.txt",
          f"[ceph_volume_handlers]\ntablestore = {PLUGIN_MODULE}:TableStore\n")
    write(info / "INSTALLER", "debian\n")
    write(tree / f"debian/{VOLUME_PACKAGE}.install", "plugin/* usr/lib/python3/dist-packages/\n")


def make(out: Path, version: str, epoch: int, commit: str, built: Path) -> list[Path]:
    """The packages, in `out`, which has no others afterwards."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        tree = Path(temporary) / "ceph-tablestore"
        os.umask(0o022)
        tree.mkdir()
        stage(tree, version, epoch, commit, built)
        subprocess.run(["debian/rules", "binary"], cwd=tree, check=True, stdin=subprocess.DEVNULL,
                       env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch), "TZ": "UTC"})
        for old in out.glob("*.deb"):
            old.unlink()
        for made in sorted(Path(temporary).glob("*deb")):
            shutil.move(made, out / made.name.replace(".ddeb", ".deb"))
    return sorted(out.glob("*.deb"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epoch", type=int, required=True, help="the commit's time")
    parser.add_argument("--commit", default="")
    parser.add_argument("--snapshot", default="", help="what a build that is no release appends")
    parser.add_argument("--programs", type=Path, default=BUILT)
    options = parser.parse_args()
    made = make(options.out.resolve(), package_version(options.snapshot), options.epoch,
                options.commit, options.programs)
    for path in made:
        print(f"{path.name} ({path.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
