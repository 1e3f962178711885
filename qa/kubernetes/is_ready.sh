#!/usr/bin/env bash
# In a machine: is_ready.sh ORDINAL: what the readiness probe says, which podman does not run.
set -euo pipefail
probe=$(python3 -c '
import shlex, yaml
the_set, = (each for each in yaml.safe_load_all(open("/srv/manifests.yaml"))
            if each["kind"] == "StatefulSet")
container, = the_set["spec"]["template"]["spec"]["containers"]
print(shlex.join(container["readinessProbe"]["exec"]["command"]))')
eval "podman exec tablestore-osd-$1-osd $probe"
