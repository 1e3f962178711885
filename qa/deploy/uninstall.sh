#!/usr/bin/env bash
# In a machine: takes back what install.sh did. What was packaged must then be as it was.
set -euo pipefail
if compgen -G '/srv/packages/*.deb' >/dev/null; then
  apt-get purge -y -q ceph-osd-tablestore ceph-volume-tablestore
else
  for program in ceph-osd ceph-objectstore-tool; do
    rm "/usr/bin/$program"
    dpkg-divert --local --quiet --rename --remove "/usr/bin/$program"
  done
  rm -r /usr/lib/ceph-tablestore /usr/lib/python3/dist-packages/ceph_volume_tablestore*
fi
changed=$(dpkg -V ceph-osd ceph-base ceph-volume | grep -v '^missing\|^........ c ' || true)
[ -z "$changed" ] || { printf '%s\n' "$changed"; exit 1; }
