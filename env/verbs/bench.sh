# ./run bench --page and --report: pictures and tables of results. No store is needed for that.

run_bench_pictures() { # page|report ARGS...: paths in this checkout, or relative to it
  local program=$1
  shift
  need setup_rootfs
  need setup_matplotlib
  trap - INT TERM HUP
  exec_in_env python3 "/tablestore/bench/$program" "${@/#"$CHECKOUT/"/}"
}

# ./run bench, and the suite bench: what ./run bench measures with is tested itself. The
# program with every workload on every store, and the arithmetic.

# What `./run bench --clients` has in front of its OSDs: installed when it is first called for.
CLIENT_PACKAGES="ceph-mds radosgw"

# First from the lists of the set-up, so that all of Ceph stays of one version. The metadata
# server's package wants a directory that a host has from its start.
install_client_daemons() {
  in_env sh -ec "mkdir -p /run/ceph; $apt_recover
    $APT install $CLIENT_PACKAGES || { $APT update; $APT install $CLIENT_PACKAGES; }; apt-get clean"
}

setup_client_daemons() {
  [ -x "$ROOTFS/usr/bin/radosgw" ] || rm -f "$STAMPS/client-daemons"
  step client-daemons "$(hash_of "$(stamp build-deps)" "$CLIENT_PACKAGES")" \
    "CephFS' and S3's daemons, about 15 seconds" install_client_daemons
}

run_bench() {
  local word
  need setup_ceph
  for word; do
    case $word in --clients | --full) need setup_client_daemons ;; esac
  done
  bind_dir_of --out "$@"
  trap - INT TERM HUP
  exec_in_env python3 /tablestore/bench/main.py --commit "$(checkout_state)" "${INSIDE_ARGS[@]}"
}

need_bench() { need setup_ceph; need setup_matplotlib; need setup_client_daemons; }
suite_bench() {
  need_bench
  local log=$LOGS/test-bench.log status=0
  say "[bench] (log: $log)"
  in_env python3 /tablestore/bench/tests/run.py "$@" </dev/null >"$log" 2>&1 || status=$?
  grep -E '^(FAIL|ERROR): ' "$log" >&2 || true
  add_counts bench "$status" $(tail -n 1 "$log" | tr -dc '0-9 ')
}
