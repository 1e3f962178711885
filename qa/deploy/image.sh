#!/usr/bin/env bash
# In a machine: image.sh NAME: a container image of Ceph's packages (/srv/image.tar) with our
# programs and the plugin in the places where the packages have put them on this host.
set -euo pipefail
podman image exists localhost/ceph-base || podman import -q /srv/image.tar localhost/ceph-base
container=$(podman create localhost/ceph-base true)
for path in /usr/lib/ceph-tablestore /usr/bin/ceph-osd /usr/bin/ceph-objectstore-tool \
  /usr/lib/python3/dist-packages/ceph_volume_tablestore*; do
  podman cp "$path" "$container:$path"
done
podman commit -q --change 'LABEL ceph=True' --change "LABEL tablestore.image=$1" \
  --change 'ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin' "$container" "localhost/$1"
podman rm "$container" >/dev/null
