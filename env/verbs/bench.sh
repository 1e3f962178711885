# ./run test bench: what ./run bench measures with is tested itself. The
# program with every workload on every store, and the arithmetic.

suite_bench() {
  need setup_ceph
  local log=$LOGS/test-bench.log status=0
  say "[bench] (log: $log)"
  in_env python3 /tablestore/bench/tests/run.py "$@" </dev/null >"$log" 2>&1 || status=$?
  grep -E '^(FAIL|ERROR): ' "$log" >&2 || true
  add_counts bench "$status" $(tail -n 1 "$log" | tr -dc '0-9 ')
}
