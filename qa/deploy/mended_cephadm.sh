#!/usr/bin/env bash
# In a machine: mended_cephadm.sh DIR: DIR/cephadm is that of this host with the patches for it in
# patches/upstream.
set -euo pipefail
mkdir -p "$1/program"
python3 -m zipfile -e /usr/sbin/cephadm "$1/program"
for each in /tablestore/patches/upstream/*-cephadm-*.patch; do
  patch -s "$1/program/__main__.py" "$each"
done
printf '#!/bin/sh\nexec python3 %s "$@"\n' "$1/program" >"$1/cephadm"
chmod 755 "$1/cephadm"
