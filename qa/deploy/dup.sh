#!/usr/bin/env bash
# In a machine: dup.sh N DIR: the stopped OSD N, of BlueStore, becomes one of TableStore in the empty
# directory DIR; nothing is sent over the network. BlueStore's device keeps what it had until
# somebody zaps it. As in doc/rados/operations/tablestore.rst.
set -euo pipefail
id=$1 directory=$2 old=/var/lib/ceph/osd/ceph-$1
uuid=$(cat "$old/fsid")
ceph-objectstore-tool --no-mon-config --type tablestore --op mkfs --data-path "$directory" --fsid "$uuid"
ceph-objectstore-tool --no-mon-config --op dup --data-path "$old" --target-data-path "$directory" |
  tr '\r' '\n' | tail -n 3
umount "$old"
rmdir "$old"
ln -s "$directory" "$old"
ceph-volume tablestore activate "$id" "$uuid"
