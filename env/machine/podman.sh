#!/usr/bin/env bash
# podman where the kernel's controllers are not in cgroup v2: what needs one is left out of the
# command line. Everything else is as it was asked for.
arguments=()
for each; do
  case $each in
    --pids-limit=* | --cgroups=split) ;;
    *) arguments+=("$each") ;;
  esac
done
case ${arguments[0]-} in run | create) arguments=("${arguments[0]}" --cgroups=disabled "${arguments[@]:1}") ;; esac
exec /usr/bin/podman "${arguments[@]}"
