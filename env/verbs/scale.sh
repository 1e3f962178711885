# ./run bench --scale: the engine with ten thousand containers, which hold nothing.

run_scale() {
  need setup_rocksdb
  local log=$LOGS/scale-build.log
  if ! in_env bash /tablestore/env/build_unit.sh plain tablestore_scale >"$log" 2>&1; then
    show_compile_error "$log"
    die "the program does not build (full log: $log)"
  fi
  trap - INT TERM
  exec_in_env /unit/plain/tablestore_scale "$@"
}
