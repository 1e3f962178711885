#!/usr/bin/env bash
# In a machine: wait.sh SECONDS WHAT COMMAND: until the command says so; at the end, what there is.
set -uo pipefail
seconds=$1 what=$2
shift 2
until=$((SECONDS + seconds))
until "$@" >/dev/null 2>&1; do
  if [ "$SECONDS" -gt "$until" ]; then
    echo "gave up after $seconds s waiting for $what"
    ceph --connect-timeout 10 -s
    ceph --connect-timeout 10 osd tree
    exit 1
  fi
  sleep 0.5
done
