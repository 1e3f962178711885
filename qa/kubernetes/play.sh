#!/usr/bin/env bash
# In a machine: play.sh ORDINAL [IMAGE]: the pod of that number, in place of the one that there is.
set -euo pipefail
pod=/run/tablestore-osd-$1.yaml
python3 /tablestore/qa/kubernetes/pods.py /srv/manifests.yaml "$1" "localhost/${2:-one}" \
  "/srv/volume$1" 127.0.0.1 "$(ceph fsid)" "$(ceph-conf --lookup mon_host)" \
  /var/lib/ceph/bootstrap-osd/ceph.keyring >"$pod"
podman kube play --replace --quiet "$pod" >/dev/null
