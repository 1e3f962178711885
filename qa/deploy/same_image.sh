#!/usr/bin/env bash
# In a machine: same_image.sh ONE OTHER: the same packages, labels, user and programs.
set -euo pipefail
facts() { # IMAGE
  podman inspect --format '{{json .Labels}} user={{.User}}' "$1" |
    sed -E 's/"(GIT_COMMIT|io\.buildah\.version|tablestore\.image)":"[^"]*",?//g; s/,\}/}/'
  podman run --rm "$1" sh -c 'dpkg-query -W; sha256sum /usr/bin/ceph-osd /usr/lib/ceph-tablestore/ceph-*
    stat -c "%n %U %G %a" /var/run/ceph/.'
}
diff <(facts "$1") <(facts "$2") >&2
facts "$1" | grep -c . | sed 's/$/ facts are the same/'
