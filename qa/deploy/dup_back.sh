#!/usr/bin/env bash
# In a machine: dup_back.sh N DEVICE: the stopped OSD N of TableStore becomes one of BlueStore on the
# blank device.
set -euo pipefail
id=$1 device=$2 old=/var/lib/ceph/osd/ceph-$1 new=/var/lib/ceph/osd/new-$1
uuid=$(cat "$old/fsid")
mkdir "$new"
ln -s "$device" "$new/block"
echo bluestore >"$new/type"
ceph-objectstore-tool --no-mon-config --type bluestore --op mkfs --data-path "$new" --fsid "$uuid"
ceph-objectstore-tool --no-mon-config --op dup --data-path "$old" --target-data-path "$new" |
  tr '\r' '\n' | tail -n 3
ceph-bluestore-tool set-label-key --dev "$device" -k osd_key \
  -v "$(ceph-authtool -p -n "osd.$id" "$old/keyring")"
rm -r "$new" "$old"
ceph-volume raw activate --device "$device"
systemctl start "ceph-osd@$id"
