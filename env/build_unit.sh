#!/bin/bash
# Inside the environment: builds the engine and its tests, or the targets after
# $1. $1 is the variant: plain, address or thread; each has a build tree of its
# own under /unit.
set -euo pipefail
. "${BASH_SOURCE[0]%/*}/build_tree.sh"
variant=$1
shift
exec 8>"/unit/$variant.lock"   # one build at a time in a build tree
flock 8
own_build_tree "/unit/$variant"
sanitize=$variant
[ "$variant" != plain ] || sanitize=
[ -e "/unit/$variant/build.ninja" ] || cmake -G Ninja -S /tablestore -B "/unit/$variant" \
  -DCEPH_SOURCE=/ceph -DCEPH_BUILD=/ceph/build -DSANITIZE="$sanitize" \
  -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
ninja -C "/unit/$variant" "${@:-tablestore_engine_test}"
