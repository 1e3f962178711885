"""create and prepare: an OSD in an empty directory or on a blank device.

The order is such that each step can be repeated: a marker with the OSD's UUID and key comes first,
what makes the OSD a finished one comes last. ^C undoes all of it; after kill -9 or a power cut the
same command goes on where it was."""
from __future__ import annotations

import argparse
import uuid
from dataclasses import dataclass
from pathlib import Path

from ceph_volume import conf, terminal
from ceph_volume.util import encryption, prepare as ceph_prepare, system

from . import cluster
from .osd_dir import MARKER, Marker, Osd, Settings, data_path, empty, give_to_ceph
from .place import Device, Directory, check_cluster, check_free, place_of
from .shell import Refusal, attempt, run
from .undo import Undo, undone_unless_finished


@dataclass(frozen=True)
class Wanted:
    data: str
    capacity: int | None = None
    provision: int = 0
    osd_id: int | None = None
    device_class: str | None = None
    dmcrypt: bool = False
    cephadm: bool = False

    @staticmethod
    def of(args: argparse.Namespace) -> "Wanted":
        return Wanted(args.data, args.capacity, args.provision or 0, args.osd_id,
                      args.crush_device_class, args.dmcrypt, args.cephadm)


def prepare(wanted: Wanted) -> Osd:
    """The OSD, made or found; it does not run yet."""
    check_program()
    place = place_of(wanted.data, wanted.dmcrypt)
    if wanted.cephadm:
        check_cephadm(place, wanted)
    finished = finished_at(place)
    if finished:
        check_cluster(finished)
        terminal.info(f"{wanted.data} has osd.{finished.osd_id} already: nothing to prepare")
        return finished
    place.check(wanted.capacity)
    if wanted.osd_id is not None:
        check_id(place, wanted.osd_id)
    number = place.begun.osd_id if place.begun and place.begun.osd_id is not None else wanted.osd_id
    if number is not None:
        check_place(place, number)
    with undone_unless_finished() as undo:
        return make(place, wanted, undo)


def check_program() -> None:
    code, _, _ = attempt("ceph-osd", "--no-mon-config", "--osd-objectstore", "tablestore",
                         "--show-config-value", "tablestore_capacity")
    if code != 0:
        raise Refusal("the ceph-osd of this host has no TableStore: install ceph-osd-tablestore")


def check_cephadm(place: Directory | Device, wanted: Wanted) -> None:
    """Its unit mounts nothing, and gives the OSD no options of ours."""
    if isinstance(place, Device):
        raise Refusal("--cephadm needs a directory: make a file system on the device, and mount it"
                      " at each boot")
    if wanted.capacity:
        raise Refusal("--cephadm takes no capacity: say --capacity 0 here, and 'ceph config set"
                      " osd.N tablestore_capacity SIZE --force' before 'cephadm deploy'")


def check_id(place: Directory | Device, osd_id: int) -> None:
    if place.begun is None or place.begun.osd_id != osd_id:
        cluster.check_id(osd_id, place.begun.osd_fsid if place.begun else "")


def check_place(place: Directory | Device, osd_id: int) -> None:
    """Before the number is taken: what was refused after that, and undone, would lose its place in
    the CRUSH map."""
    path = data_path(osd_id)
    if isinstance(place, Device):
        is_its = place.mounted_at() == path
    else:
        is_its = path == place.path or path.is_symlink() and path.resolve() == place.path
    if not is_its:
        check_free(path)


def finished_at(place: Directory | Device) -> Osd | None:
    if isinstance(place, Directory):
        return Osd.load(place.path)
    if not place.uuid():
        return None
    at = place.mounted_at()
    if at is None and place.is_encrypted():
        raise Refusal(f"{place.path} is an encrypted OSD already: 'ceph-volume tablestore activate"
                      f" --all' starts it, 'ceph-volume tablestore zap {place.path}' destroys it")
    from .listing import look   # which uses places too
    return Osd.load(at) if at else look(place)


def make(place: Directory | Device, wanted: Wanted, undo: Undo) -> Osd:
    secrets = {"cephx_secret": ceph_prepare.create_key()}
    if wanted.dmcrypt:
        secrets |= {"dmcrypt_key": encryption.create_dmcrypt_key(),
                    "cephx_lockbox_secret": ceph_prepare.create_key()}
    if wanted.device_class:
        secrets["crush_device_class"] = wanted.device_class
    marker = place.begin(Marker(str(uuid.uuid4()), secrets["cephx_secret"]), secrets, undo)
    secrets["cephx_secret"] = marker.secret
    number = wanted.osd_id if marker.osd_id is None else marker.osd_id
    osd_id = undo.step(lambda: cluster.new_osd(marker.osd_fsid, secrets, number),
                       "take osd.{} out of the cluster", cluster.purge_new)
    marker.osd_id = osd_id
    marker.save(place.root)
    place.attach(osd_id, undo)
    settings = Settings(wanted.capacity or 0, wanted.provision)
    make_store(osd_id, marker, settings)
    settings.save(data_path(osd_id))
    if wanted.cephadm:
        (data_path(osd_id) / "keyring").unlink()
    (data_path(osd_id) / MARKER).unlink()
    give_to_ceph(data_path(osd_id).resolve())
    osd = Osd.load(data_path(osd_id))
    if osd is None:
        raise Refusal(f"ceph-osd --mkfs said that it was done, but {data_path(osd_id)} has no OSD"
                      " of TableStore")
    terminal.success(f"osd.{osd_id} is prepared in {wanted.data}")
    return osd


def make_store(osd_id: int, marker: Marker, settings: Settings) -> None:
    """As if it had never been tried: mkfs does not go on where it was killed."""
    data = data_path(osd_id).resolve()
    empty(data, keep=(MARKER,))
    ceph_prepare.write_keyring(osd_id, marker.secret)
    system.mkdir_p("/run/ceph")   # where the OSD's socket is; a container may not have it
    system.chown(str(data), recursive=False)
    run("ceph-osd", "--cluster", conf.cluster, "--mkfs", "-i", osd_id, "--osd-data",
        Path(f"{data_path(osd_id)}"), "--osd-uuid", marker.osd_fsid, "--osd-objectstore",
        "tablestore", "--setuser", "ceph", "--setgroup", "ceph", *settings.options())
