"""The command line."""
from __future__ import annotations

import argparse
import fcntl
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ceph_volume import decorators, terminal

from . import activate, listing, zap
from .prepare import Wanted, prepare
from .shell import Refusal
from .undo import Interrupted

LOCK = "/run/ceph-volume-tablestore.lock"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


def size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)i?B?", text, re.IGNORECASE)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size, such as 100G")
    return int(float(match[1]) * UNITS[match[2].upper()])


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """At boot several start at once, and each looks at all disks."""
    with open(LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class TableStore:
    """What ceph-volume makes of its entry point."""

    name = "tablestore"
    help = "OSDs of TableStore, in a directory or on a device"
    help_menu = help

    def __init__(self, argv: list[str]):
        self._argv = argv

    @decorators.needs_root
    def main(self) -> None:
        args = parser().parse_args(self._argv)
        try:
            with one_at_a_time():
                args.run(args)
        except (Refusal, Interrupted) as refusal:
            terminal.error(str(refusal))
            raise SystemExit(1) from None


def run_create(args: argparse.Namespace) -> None:
    osd = prepare(Wanted.of(args))
    activate.activate(listing.find(osd.osd_id, osd.osd_fsid), not args.no_systemd)


def run_prepare(args: argparse.Namespace) -> None:
    prepare(Wanted.of(args))


def run_activate(args: argparse.Namespace) -> None:
    if args.all:
        activate.activate_all(not args.no_systemd)
    elif args.osd_id is None and args.osd_fsid is None:
        raise Refusal("which OSD? its number and UUID, or --all")
    else:
        found = listing.find(args.osd_id, args.osd_fsid)
        activate.activate(found, not args.no_systemd, args.capacity)


def run_deactivate(args: argparse.Namespace) -> None:
    activate.deactivate(args.osd_id, args.osd_fsid)


def run_list(args: argparse.Namespace) -> None:
    print(listing.as_json() if args.format == "json" else listing.as_text())
    sys.stdout.flush()


def run_zap(args: argparse.Namespace) -> None:
    if (args.data is None) == (args.osd_id is None and args.osd_fsid is None):
        raise Refusal("what? a directory or a device, or --osd-id N, or --osd-fsid UUID")
    zap.zap(args.data, args.osd_id, args.osd_fsid, args.destroy)


def run_trigger(args: argparse.Namespace) -> None:
    activate.trigger(args.osd)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="ceph-volume tablestore", description=TableStore.help)
    verbs = top.add_subparsers(required=True, metavar="VERB")

    def verb(name: str, run: object, text: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    for name, run, text in (("create", run_create, "make an OSD and start it"),
                            ("prepare", run_prepare, "make an OSD, and do not start it")):
        making = verb(name, run, text)
        making.add_argument("--data", required=True, metavar="DIR|DEVICE",
                            help="an empty directory on XFS or ext4, or a blank device")
        making.add_argument("--capacity", type=size, metavar="SIZE",
                            help="the most that the OSD may use (default: all, if the file system"
                            " is its own)")
        making.add_argument("--provision", type=size, metavar="SIZE",
                            help="space to write now, for steady speed from the first day on")
        making.add_argument("--osd-id", type=int, metavar="N",
                            help="the number of a destroyed OSD, or a free one")
        making.add_argument("--crush-device-class", metavar="CLASS")
        making.add_argument("--dmcrypt", action="store_true", help="encrypt the device")
        making.add_argument("--no-systemd", action="store_true",
                            help="leave the start to somebody else")
        making.add_argument("--cephadm", action="store_true", help="leave no keyring: 'cephadm"
                            " deploy' brings it, and fails where there is another")

    again = verb("activate", run_activate, "start an OSD that was prepared, now and at each boot")
    again.add_argument("osd_id", nargs="?", type=int, metavar="N")
    again.add_argument("osd_fsid", nargs="?", metavar="UUID")
    again.add_argument("--all", action="store_true", help="all on this host")
    again.add_argument("--capacity", type=size, metavar="SIZE",
                       help="from its next start on, the most that the OSD may use; 0 is all")
    again.add_argument("--no-systemd", action="store_true",
                       help="mount it, and leave the start to somebody else")

    ending = verb("deactivate", run_deactivate, "stop an OSD, and do not start it at the next boot")
    ending.add_argument("osd_id", type=int, metavar="N")
    ending.add_argument("osd_fsid", nargs="?", metavar="UUID")

    showing = verb("list", run_list, "the OSDs of TableStore on this host")
    showing.add_argument("--format", choices=("plain", "json"), default="plain")

    zapping = verb("zap", run_zap, "destroy an OSD's data")
    zapping.add_argument("data", nargs="?", metavar="DIR|DEVICE")
    zapping.add_argument("--osd-id", type=int, metavar="N")
    zapping.add_argument("--osd-fsid", metavar="UUID")
    zapping.add_argument("--destroy", action="store_true",
                         help="remove the directory too, or discard the device's blocks")

    verb("trigger", run_trigger, "what ceph-volume@.service calls at boot").add_argument("osd")
    return top
