"""An ext4 with a feature that loses what was flushed: the OSD says so, until it is switched off."""
from __future__ import annotations

import shutil

from cephcluster.errors import ClusterError
from cephcluster.tool import run_tool
from cephcluster.wait import wait_until

from .bed import Bed, Kind, check, test
from .decay import check_contents, fill, health_codes

ON_EXT4 = Kind(name="ext4", file_system="ext4", file_system_bytes=2 << 30)
ALERT = "TABLESTORE_FAST_COMMIT"
HEALTH_SECONDS = 60


@test(kind=ON_EXT4, stores=("tablestore",))
def fast_commit_of_ext4_is_told_until_it_is_switched_off(bed: Bed) -> str:
    """By the steps that the page of the alert has."""
    if bed.cluster.settings.file_system != "ext4":
        return "on another file system there is none"
    with bed.io() as io:
        contents = fill(io)
        check(ALERT not in health_codes(bed), f"{ALERT} of an ext4 without it")
        change(bed, "fast_commit")
        wait_for_alert(bed, True)
        check_contents(io, contents)
        no_other_store_is_made(bed)
        change(bed, "^fast_commit")
        wait_for_alert(bed, False)
        check_contents(io, contents)
    return ALERT


def change(bed: Bed, features: str) -> None:
    bed.osd.kill()
    bed.cluster.file_system(bed.osd).change_features(features)
    bed.cluster.restart_killed(bed.osd)
    bed.cluster.recovered()


def no_other_store_is_made(bed: Bed) -> None:
    """On the file system of the OSD."""
    directory = bed.cluster.layout.data(bed.osd.name) / "another"
    directory.mkdir()
    try:
        run_tool(*bed.osd.command("--mkfs", "--osd-data", str(directory),
                                  "--tablestore_log_size=64M", "--tablestore_capacity=1G"))
    except ClusterError as error:
        said = " ".join([str(error), *error.details])
        check("tune2fs -O ^fast_commit" in said, f"mkfs was refused in other words: {said}")
    else:
        raise ClusterError("mkfs made a store on an ext4 with fast_commit")
    finally:
        shutil.rmtree(directory)


def wait_for_alert(bed: Bed, there: bool) -> None:
    wait_until(f"{ALERT} to {'come' if there else 'go'}",
               lambda: (ALERT in health_codes(bed)) == there, HEALTH_SECONDS,
               explain=lambda: sorted(health_codes(bed)))
