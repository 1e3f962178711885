# ./run test: unit, store, osd. Each suite writes its own log and says how many
# tests passed, failed and were skipped; the last line adds them up.

passed=0 failed=0 skipped=0

run_tests() {
  local suite=all
  case ${1-} in unit | store | osd | sim | mutants | all) suite=$1; shift ;; esac
  case $suite in
    unit) suite_unit "$@" ;;
    store) suite_store "$@" ;;
    osd) suite_osd "$@" ;;
    sim) suite_sim "$@" ;;
    mutants) suite_mutants "$@" ;;
    all)
      [ $# = 0 ] || usage_error "'test all' takes no arguments: $*"
      suite_unit; suite_store; suite_osd ;;
  esac
  say ""
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

# The engine's own tests, built alone against the same RocksDB.
suite_unit() {
  local variant=plain
  if [ "${1-}" = --sanitize ]; then
    variant=${2-}
    case $variant in address | thread) ;; *) usage_error "--sanitize takes address or thread" ;; esac
    shift 2
  fi
  need setup_rocksdb
  [ "$variant" != plain ] || [ $# != 0 ] || suite_lint
  local log=$LOGS/unit-build.log began=$SECONDS
  if ! in_env bash /tablestore/env/build_unit.sh "$variant" >"$log" 2>&1; then
    show_compile_error "$log"
    die "the engine's tests do not build (full log: $log)"
  fi
  say "[unit] built in $(elapsed $((SECONDS - began))) (log: $log)"
  # gcc's thread sanitizer cannot cope with the kernel's widest address
  # randomisation; RocksDB is not instrumented, see env/tsan.supp.
  run_gtest "unit-$variant" setarch -R env \
    ASAN_OPTIONS=detect_container_overflow=0:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    TSAN_OPTIONS=suppressions=/tablestore/env/tsan.supp:second_deadlock_stack=1 \
    "/unit/$variant/tablestore_engine_test" "$@"
}

# The rules of style that a program can check; each is a test.
suite_lint() {
  local log=$LOGS/test-lint.log status=0
  in_env python3 /tablestore/env/lint.py </dev/null >"$log" 2>&1 || status=$?
  [ "$status" = 0 ] || cat "$log" >&2
  add_counts lint "$status" $(tail -n 1 "$log" | tr -dc '0-9 ')
}

# Ceph's contract tests with the parameter tablestore, and our own.
suite_store() {
  need setup_ceph
  local arguments=("$@")
  [ $# -gt 0 ] || arguments=('--gtest_filter=*/3*')
  run_gtest store ceph_test_objectstore "${arguments[@]}"
  if [ -e "$BUILD/bin/ceph_test_tablestore" ]; then
    run_gtest store-own ceph_test_tablestore "$@"
  fi
}

# Real clusters; env/osd_test.py ends with a line of counts in our format.
suite_osd() {
  need setup_ceph
  local log=$LOGS/test-osd.log status=0 counts
  say "[osd] (log: $log)"
  in_env python3 /tablestore/env/osd_test.py "$@" </dev/null 2>&1 | tee "$log" || status=$?
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1)
  add_counts osd "$status" $(tr -dc '0-9 ' <<<"$counts")
}

# run_gtest NAME CMD...: in an empty directory on the cache's disk
run_gtest() {
  local name=$1 log=$LOGS/test-$1.log status=0
  shift
  say "[$name] (log: $log)"
  scratch=$STATE/test-$name.$$
  mkdir -p "$scratch"
  in_env bash -ec 'cd "$1"; export TABLESTORE_TEST_DIR=$1; shift; exec "$@"' run "/state/${scratch##*/}" "$@" \
    </dev/null >"$log" 2>&1 || status=$?
  remove_scratch
  show_gtest "$log"
  add_counts "$name" "$status" "$(gtest_count PASSED "$log")" "$(gtest_count FAILED "$log")" \
    "$(gtest_count SKIPPED "$log")"
}

# gtest ends with "[  PASSED  ] 59 tests." and the like.
gtest_count() { # WORD LOG
  sed -nE "s/^\[ +$1 +\] ([0-9]+) tests?[.,].*/\1/p" "$2" | tail -n 1
}

show_gtest() { # LOG: the outcome of every test that failed, and the closing lines
  grep -aE '^\[  (FAILED|SKIPPED|PASSED) |^\[==========\]|^(ERROR|WARNING|SUMMARY): ' "$1" | sort -u | tail -n 40 >&2 || true
}

# A suite that ended badly without a failed test has crashed or never ran: that
# counts as one failure more.
add_counts() { # NAME STATUS PASSED FAILED SKIPPED
  local ok=${3:-0} bad=${4:-0} left=${5:-0}
  if { [ "$2" != 0 ] && [ "$bad" = 0 ]; } || [ "$ok" = 0 ]; then
    bad=$((bad + 1))
    say "[$1] ended with status $2 without a result:"
    tail -n 15 "$LOGS/test-$1.log" >&2
  fi
  say "[$1] $ok passed, $bad failed, $left skipped"
  passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + left))
}
