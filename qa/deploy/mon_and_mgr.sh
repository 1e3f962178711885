#!/usr/bin/env bash
# In a machine: a cluster of one monitor and one manager by the packaged units, with cephx, as the
# manual deployment of Ceph's documentation has it.
set -euo pipefail
fsid=$(cat /proc/sys/kernel/random/uuid)
name=$(hostname)
keys=$(mktemp -d)
cat >/etc/ceph/ceph.conf <<END
[global]
fsid = $fsid
mon initial members = $name
mon host = 127.0.0.1
public network = 127.0.0.0/8
osd pool default size = 3
osd pool default min size = 2
osd crush chooseleaf type = 0
mon allow pool delete = true
osd pool default pg autoscale mode = off
osd max scrubs = 8
END
key() { ceph-authtool --create-keyring "$1" --gen-key -n "$2" "${@:3}" >/dev/null; }
key "$keys/mon" mon. --cap mon 'allow *'
key /etc/ceph/ceph.client.admin.keyring client.admin --cap mon 'allow *' --cap osd 'allow *' \
  --cap mds 'allow *' --cap mgr 'allow *'
key /var/lib/ceph/bootstrap-osd/ceph.keyring client.bootstrap-osd --cap mon 'profile bootstrap-osd'
for each in /etc/ceph/ceph.client.admin.keyring /var/lib/ceph/bootstrap-osd/ceph.keyring; do
  ceph-authtool "$keys/mon" --import-keyring "$each" >/dev/null
done
monmaptool --create --addv "$name" '[v2:127.0.0.1:3300,v1:127.0.0.1:6789]' --fsid "$fsid" \
  "$keys/map" >/dev/null
chmod 755 "$keys"
chown -R ceph:ceph "$keys" /var/lib/ceph/bootstrap-osd
install -d -o ceph -g ceph "/var/lib/ceph/mon/ceph-$name" "/var/lib/ceph/mgr/ceph-$name"
runuser -u ceph -- ceph-mon --mkfs -i "$name" --monmap "$keys/map" --keyring "$keys/mon"
rm -r "$keys"
systemctl enable --quiet --now "ceph-mon@$name"
ceph --connect-timeout 60 auth get-or-create "mgr.$name" mon 'allow profile mgr' osd 'allow *' \
  mds 'allow *' -o "/var/lib/ceph/mgr/ceph-$name/keyring"
chown ceph:ceph "/var/lib/ceph/mgr/ceph-$name/keyring"
systemctl enable --quiet --now "ceph-mgr@$name"
ceph config set mon auth_allow_insecure_global_id_reclaim false
ceph mon enable-msgr2
