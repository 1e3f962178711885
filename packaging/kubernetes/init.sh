#!/bin/sh
# The init container: makes the OSD in the volume, if it is not there yet. The number and the key that
# the monitors give it are kept in the volume, as is what a try that was cut off needs to go on.
set -eu

mkdir -p /etc/ceph /var/lib/ceph/bootstrap-osd
printf '[global]\nfsid = %s\nmon host = %s\n' "$CEPH_FSID" "$MON_HOST" >/etc/ceph/ceph.conf
cp /bootstrap/keyring /var/lib/ceph/bootstrap-osd/ceph.keyring

exec ceph-volume tablestore prepare --data /data --capacity "$CAPACITY" \
  ${DEVICE_CLASS:+--crush-device-class "$DEVICE_CLASS"}
