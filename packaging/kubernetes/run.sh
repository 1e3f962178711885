#!/bin/sh
# The OSD, in the foreground. Where the monitors are and what the address is may change from start to
# start, so it is said here, and not in the volume.
set -eu

exec ceph-osd -f -i "$(cat /data/whoami)" --osd-data /data --keyring /data/keyring \
  --fsid "$CEPH_FSID" --mon-host "$MON_HOST" --public-addr "$POD_IP" \
  --crush-location "root=default host=$CRUSH_HOST" --tablestore-capacity "$CAPACITY" \
  --admin-socket /run/ceph/osd.asok --default-log-to-file=false \
  --default-log-to-stderr=true --default-err-to-stderr=true --default-log-stderr-prefix='debug '
