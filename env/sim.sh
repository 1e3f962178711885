# ./run sim and the suites sim and mutants: the engine on a simulated disk.

build_sim() {
  need setup_rocksdb
  local log=$LOGS/sim-build.log
  if ! in_env bash /tablestore/env/build_unit.sh plain tablestore_sim tablestore_sim_test \
    >"$log" 2>&1; then
    show_compile_error "$log"
    die "the simulator does not build (full log: $log)"
  fi
}

run_sim() { build_sim; trap - INT TERM; exec_in_env /unit/plain/tablestore_sim "$@"; }

# The simulator's own tests, then fixed seeds and all histories of up to two
# transactions: about twelve minutes of one core. With arguments: the tests only.
suite_sim() {
  build_sim
  run_gtest sim /unit/plain/tablestore_sim_test "$@"
  [ $# = 0 ] || return 0
  sim_part random --seeds 1600
  sim_part damage --seeds 800 --seed 100000 --faults errors,full,damage
  sim_part exhaustive --exhaustive --transactions 2
}

# One run of the simulator is one test.
sim_part() { # NAME ARGS...
  local name=$1 log=$LOGS/test-sim-$1.log status=0
  shift
  say "[sim-$name] (log: $log)"
  in_env /unit/plain/tablestore_sim "$@" </dev/null >"$log" 2>&1 || status=$?
  grep -vE '/s$' "$log" | tail -n 8 >&2 || true
  add_counts "sim-$name" "$status" $((status == 0)) $((status != 0)) 0
}

# Every way in which env/mutants.py breaks the engine must be found.
suite_mutants() {
  build_sim
  local log=$LOGS/test-mutants.log status=0
  say "[mutants] (log: $log)"
  in_env python3 /tablestore/env/mutants.py "$@" </dev/null 2>&1 | tee "$log" || status=$?
  add_counts mutants "$status" $(grep -E '^[0-9]+ passed, ' "$log" | tail -n 1 | tr -dc '0-9 ')
}
