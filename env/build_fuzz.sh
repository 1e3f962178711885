#!/bin/bash
# Inside the environment: builds the fuzz targets with clang, in a tree of their
# own. $1: "coverage" for the ones that also say what they reach.
set -euo pipefail
. "${BASH_SOURCE[0]%/*}/build_tree.sh"
variant=fuzz${1:+-$1}
exec 8>"/unit/$variant.lock"   # one build at a time in a build tree
flock 8
own_build_tree "/unit/$variant"
[ -e "/unit/$variant/build.ninja" ] || cmake -G Ninja -S /tablestore -B "/unit/$variant" \
  -DCEPH_SOURCE=/ceph -DCEPH_BUILD=/ceph/build -DSANITIZE=address -DFUZZ=ON \
  ${1:+-DCOVERAGE=ON} -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
ninja -C "/unit/$variant" tablestore_fuzz tablestore_store_fuzz
