#!/usr/bin/env bash
# In a machine: cephadm_osd.sh IMAGE DIR: a TableStore OSD in DIR, managed by cephadm. What an
# operator types; again with another image it is an upgrade.
set -euo pipefail
image=$1 directory=$2
fsid=$(ceph fsid)
if [ ! -e "$directory/ready" ]; then
  cephadm --image "$image" shell --config /etc/ceph/ceph.conf \
    --keyring /etc/ceph/ceph.client.admin.keyring -v "$directory:$directory" \
    -v /var/lib/ceph/bootstrap-osd:/var/lib/ceph/bootstrap-osd -- \
    ceph-volume tablestore prepare --cephadm --data "$directory"
fi
id=$(cat "$directory/whoami") uuid=$(cat "$directory/fsid")
mkdir -p "/var/lib/ceph/$fsid"
ln -sfn "$directory" "/var/lib/ceph/$fsid/osd.$id"
jq -n --arg config "$(ceph config generate-minimal-conf)" --arg keyring "$(ceph auth get "osd.$id")" \
  '{config: ($config + "\n"), keyring: ($keyring + "\n")}' >/run/osd.json
cephadm --image "$image" deploy --fsid "$fsid" --name "osd.$id" --osd-fsid "$uuid" \
  --config-json /run/osd.json
rm /run/osd.json
