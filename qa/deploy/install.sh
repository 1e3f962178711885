#!/usr/bin/env bash
# In a machine: our programs and the plugin, as packages if there are any in /srv/packages, else by
# copies in the places where the packages have them.
set -euo pipefail

if compgen -G '/srv/packages/*.deb' >/dev/null; then
  exec apt-get install -y -q --no-install-recommends /srv/packages/*.deb
fi

room=/usr/lib/ceph-tablestore
mkdir -p "$room"
install -m 755 /ceph/build/bin/ceph-osd /ceph/build/bin/ceph-objectstore-tool "$room"
# The tool needs the libceph-common that it was built with.
cp --dereference /ceph/build/lib/libceph-common.so.2 "$room"

divert() { # PROGRAM
  dpkg-divert --local --quiet --rename --divert "/usr/bin/$1.packaged" --add "/usr/bin/$1"
}
divert ceph-osd
ln -sf "$room/ceph-osd" /usr/bin/ceph-osd
divert ceph-objectstore-tool
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s/ceph-objectstore-tool "$@"\n' "$room" "$room" \
  >/usr/bin/ceph-objectstore-tool
chmod 755 /usr/bin/ceph-objectstore-tool

plugin=/tablestore/src/ceph-volume/plugin/tablestore
python=/usr/lib/python3/dist-packages
cp -r "$plugin/ceph_volume_tablestore" "$python"
info=$python/ceph_volume_tablestore-0.1.0.dist-info
mkdir -p "$info"
printf 'Metadata-Version: 2.1\nName: ceph-volume-tablestore\nVersion: 0.1.0\n' >"$info/METADATA"
printf '[ceph_volume_handlers]\ntablestore = ceph_volume_tablestore:TableStore\n' \
  >"$info/entry_points.txt"
