#!/usr/bin/env bash
# In a machine: cephadm_osd.sh IMAGE DIR: an OSD in DIR, the mount point of its file system, that
# cephadm manages; again with another image it is an upgrade. As in
# doc/rados/operations/tablestore.rst; but DIR may also be where cephadm looks for the OSD.
set -euo pipefail
image=$1 directory=$2
fsid=$(ceph fsid)
if [ ! -e "$directory/ready" ]; then
  cephadm --image "$image" shell --config /etc/ceph/ceph.conf \
    --keyring /var/lib/ceph/bootstrap-osd/ceph.keyring -v "$directory:$directory" \
    -v /var/lib/ceph/bootstrap-osd:/var/lib/ceph/bootstrap-osd -- \
    ceph-volume tablestore prepare --cephadm --data "$directory"
fi
id=$(cat "$directory/whoami") uuid=$(cat "$directory/fsid")
place=/var/lib/ceph/$fsid/osd.$id
mkdir -p "/var/lib/ceph/$fsid"
[ "$directory" = "$place" ] || ln -sfn "$directory" "$place"
jq -n --arg config "$(ceph config generate-minimal-conf)" --arg keyring "$(ceph auth get "osd.$id")" \
  '{config: ($config + "\n"), keyring: ($keyring + "\n")}' >/run/osd.json
cephadm --image "$image" deploy --fsid "$fsid" --name "osd.$id" --osd-fsid "$uuid" \
  --config-json /run/osd.json
rm /run/osd.json
