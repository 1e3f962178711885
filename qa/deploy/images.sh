#!/usr/bin/env bash
# In a machine: images.sh ARCHIVE: localhost/one is the image, localhost/two the same with another
# id, as a newer one would have.
set -euo pipefail
loaded=$(podman load -q -i "$1" | sed -n 's/^Loaded image: //p')
podman tag "$loaded" localhost/one
container=$(podman create "$loaded" true)
podman commit -q --change 'LABEL tablestore.image=two' "$container" localhost/two >/dev/null
podman rm "$container" >/dev/null
podman images --format '{{.Repository}}:{{.Tag}} {{.Id}}'
