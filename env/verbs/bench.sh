# ./run bench --page and --report: pictures and tables of results. No store is needed for that.

run_bench_pictures() { # page|report ARGS...: paths in this checkout, or relative to it
  local program=$1
  shift
  need setup_rootfs
  need setup_matplotlib
  trap - INT TERM HUP
  exec_in_env python3 "/tablestore/bench/$program" "${@/#"$CHECKOUT/"/}"
}

# ./run test bench: what ./run bench measures with is tested itself. The
# program with every workload on every store, and the arithmetic.

suite_bench() {
  need setup_ceph
  need setup_matplotlib
  local log=$LOGS/test-bench.log status=0
  say "[bench] (log: $log)"
  in_env python3 /tablestore/bench/tests/run.py "$@" </dev/null >"$log" 2>&1 || status=$?
  grep -E '^(FAIL|ERROR): ' "$log" >&2 || true
  add_counts bench "$status" $(tail -n 1 "$log" | tr -dc '0-9 ')
}
