# Ceph's build: its own CMake on its own source with ours laid over it.

# RelWithDebInfo without -g and without NDEBUG: Ceph's asserts stay on, and
# the objects stay small. Prefix /usr, so that the packaged erasure-code
# plugins and object classes are found.
CMAKE_OPTIONS="
  -G Ninja
  -DCMAKE_BUILD_TYPE=RelWithDebInfo
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2
  -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR=/usr/lib/x86_64-linux-gnu
  -DWITH_PYTHON3=3.14 -DWITH_CCACHE=ON -DWITH_TESTS=ON
  -DWITH_SYSTEM_BOOST=ON -DWITH_SYSTEM_LIBURING=ON -DWITH_SYSTEM_ZSTD=ON
  -DWITH_SYSTEM_GTEST=ON -DWITH_XFS=ON
  -DWITH_MGR=OFF -DWITH_RADOSGW=OFF -DWITH_RBD=OFF -DWITH_KRBD=OFF
  -DWITH_CEPHFS=OFF -DWITH_LIBCEPHFS=OFF -DWITH_LIBCEPHSQLITE=OFF
  -DWITH_FUSE=OFF -DWITH_LTTNG=OFF -DWITH_BABELTRACE=OFF -DWITH_JAEGER=OFF
  -DWITH_MANPAGE=OFF -DWITH_SYSTEMD=OFF -DWITH_SELINUX=OFF
  -DWITH_OPENLDAP=OFF -DWITH_RDMA=OFF -DWITH_SPDK=OFF -DWITH_QATLIB=OFF
  -DWITH_QATZIP=OFF -DWITH_UADK=OFF -DWITH_BLUESTORE_PMEM=OFF
  -DWITH_GRAFANA=OFF -DWITH_RADOSGW_SELECT_PARQUET=OFF -DWITH_PLUGINS=OFF
  -DWITH_MGR_DASHBOARD_FRONTEND=OFF
  -DCMAKE_PROJECT_ceph_INCLUDE=/ceph/build/unity.cmake"
# What dpkg-buildflags asks for beside what Ceph's build has by itself (PIE, stack protector);
# `./run test package` compares.
HARDENING="-D_FORTIFY_SOURCE=2 -fstack-clash-protection -fcf-protection"
CMAKE_OPTIONS+="
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,-z,relro,-z,now -DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,relro,-z,now"
# -w: a compiler newer than this Ceph warns by the thousand.
CMAKE_CXX="-DFMT_DEPRECATED_OSTREAM -fpermissive -w $HARDENING"

CEPH_TARGETS="ceph-osd ceph_test_objectstore ceph-objectstore-tool"
# Ours, as soon as a patch adds them.
OUR_TARGETS="ceph_test_tablestore ceph_tablestore_bench ceph_tablestore_sim ceph-tablestore-tool
  ceph-kvstore-tool"
JOBS=${TABLESTORE_JOBS:-$(($(nproc) + 1))}

lay_overlay() {
  in_env python3 /tablestore/env/overlay.py /ceph /pristine /tablestore
}

# A copy that is as old as its contents: CMake runs again when it is newer than what it made.
configure_ceph() {
  cmp -s "$CHECKOUT/env/unity.cmake" "$BUILD/unity.cmake" ||
    cp "$CHECKOUT/env/unity.cmake" "$BUILD/unity.cmake"
  in_env cmake -S /ceph -B /ceph/build $CMAKE_OPTIONS \
    "-DCMAKE_C_FLAGS=$HARDENING" "-DCMAKE_CXX_FLAGS=$CMAKE_CXX"
}

# RocksDB first: the engine's own tests need no more than that.
# It is a project of its own, which Ceph's build does not look into once it is
# built: where this step runs again, something in it has changed.
build_rocksdb() {
  rm -f "$BUILD/src/rocksdb_ext-prefix/src/rocksdb_ext-stamp/rocksdb_ext-build"
  in_env stdbuf -oL ninja -C /ceph/build -j "$JOBS" rocksdb_ext
}

build_ceph() {
  local targets=$CEPH_TARGETS target
  for target in $OUR_TARGETS; do
    if grep -rqsw "$target" "$CHECKOUT/patches/20.2/"*.patch; then targets+=" $target"; fi
  done
  in_env stdbuf -oL ninja -C /ceph/build -j "$JOBS" ${TABLESTORE_NINJA_FLAGS:-} $targets
  # A dependency log that a crash cut off stays broken for good (ninja keeps the
  # bad record) and rebuilds all each time: rather start a new one.
  if grep -q 'premature end of file; recovering' "$LOGS/build.log"; then rm -f "$BUILD/.ninja_deps"; fi
  link_programs $targets
}

# A directory with just what was built, to be first in the PATH.
link_programs() {
  local target
  mkdir -p "$BUILD/ours"
  for target; do ln -sfn "../bin/$target" "$BUILD/ours/$target"; done
}

patches() { ls "$CHECKOUT"/patches/20.2/*.patch; }

stamp() { cat "$STAMPS/$1" 2>/dev/null || true; }

overlay_key() {
  hash_of "$(stamp source)" "$(patches | xargs cat | sha256sum)" \
    "$(hash_files "$CHECKOUT/src" "$CHECKOUT/env/overlay.py")"
}

configure_key() {
  hash_of "$(stamp source)" "$CMAKE_OPTIONS" "$HARDENING" "$CMAKE_CXX" "$(hash_files "$CHECKOUT/env/unity.cmake")"
}

# What RocksDB depends on, so that the engine's tests need not wait for a build
# of all of Ceph that is under way.
rocksdb_key() {
  hash_of "$(configure_key)" "$(patches | xargs grep -lE '^\+\+\+ b/(cmake/modules/BuildRocksDB|src/rocksdb/)' | xargs cat)"
}

setup_source() {
  setup_rootfs
  step overlay "$(overlay_key)" "our patches and sources over Ceph's" lay_overlay
  step configure "$(configure_key)" "Ceph's CMake, about 10 seconds" configure_ceph
}

setup_rocksdb() {
  setup_rootfs
  [ "$(stamp rocksdb)" != "$(rocksdb_key)" ] || return 0
  setup_source
  step rocksdb "$(rocksdb_key)" "the bundled RocksDB, about 5 minutes the first time" build_rocksdb
}

setup_ceph() {
  setup_rocksdb
  setup_source
  step build "$(hash_of "$(overlay_key)" "$(configure_key)" "$CEPH_TARGETS $OUR_TARGETS")" \
    "the OSD and its tools, about 40 minutes the first time" build_ceph
}
