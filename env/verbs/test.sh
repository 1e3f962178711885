# ./run test: unit, store, osd. Each suite writes its own log and says how many
# tests passed, failed and were skipped; the last line adds them up.

passed=0 failed=0 skipped=0

run_tests() {
  local suite=all
  case ${1-} in unit | store | osd | sim | kernel | fuzz | mutants | bench | all) suite=$1; shift ;; esac
  case $suite in
    unit) suite_unit "$@" ;;
    store) suite_store "$@" ;;
    osd) suite_osd "$@" ;;
    sim) suite_sim "$@" ;;
    kernel) suite_kernel "$@" ;;
    fuzz) suite_fuzz "$@" ;;
    mutants) suite_mutants "$@" ;;
    bench) suite_bench "$@" ;;
    all)
      [ $# = 0 ] || usage_error "'test all' takes no arguments: $*"
      suite_unit
      in_background sim suite_sim
      in_background kernel suite_kernel
      suite_store; suite_kernel --store; suite_osd; suite_bench
      collect_background ;;
  esac
  say ""
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

# in_background NAME SUITE [ARGS]: the suite runs beside the others, at low priority, and is silent
# until collect_background, which waits for all of these, shows what each said and adds its counts.
# What such a suite needs to be set up should be so already: steps are done one at a time.
background_names=()
in_background() {
  local name=$1
  shift
  say "[$name] in the background (log: $LOGS/background-$name.log)"
  set -m   # a process group of its own, so that all of it can be ended
  (
    trap 'remove_scratch; exit 130' INT TERM HUP
    renice -n 10 -p "$BASHPID" >/dev/null
    passed=0 failed=0 skipped=0
    "$@"
    printf '%d %d %d\n' "$passed" "$failed" "$skipped" >&3
  ) </dev/null 3>"$LOGS/background-$name.counts" >"$LOGS/background-$name.log" 2>&1 &
  background_pids+=($!)
  set +m
  background_names+=("$name")
}

collect_background() {
  local i name counts
  for i in "${!background_pids[@]}"; do
    name=${background_names[i]}
    say "[$name] waiting for it"
    wait "${background_pids[i]}" || true
    cat "$LOGS/background-$name.log" >&2
    read -ra counts <"$LOGS/background-$name.counts" || counts=(0 1 0)
    passed=$((passed + counts[0])) failed=$((failed + counts[1])) skipped=$((skipped + counts[2]))
  done
  background_pids=() background_names=()
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
  # randomisation; RocksDB is not instrumented, see qa/tsan.supp.
  run_gtest "unit-$variant" setarch -R env \
    ASAN_OPTIONS=detect_container_overflow=0:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    TSAN_OPTIONS=suppressions=/tablestore/qa/tsan.supp:second_deadlock_stack=1 \
    "/unit/$variant/tablestore_engine_test" "$@"
}

# The rules that a program can check, each of which is a test, and whether it notices.
suite_lint() { lint_part lint; lint_part test_lint; }
lint_part() { # PROGRAM
  local name=$1 log=$LOGS/test-$1.log status=0
  in_env python3 "/tablestore/src/test/tablestore/lint/$name.py" </dev/null >"$log" 2>&1 ||
    status=$?
  [ "$status" = 0 ] || cat "$log" >&2
  add_counts "$name" "$status" $(tail -n 1 "$log" | tr -dc '0-9 ')
}

# Ceph's contract tests with the parameter tablestore, and our own; and functions of the store that
# nothing calls.
suite_store() {
  need setup_ceph
  local arguments=("$@") may_be_empty=$#   # what a filter names may be in one program only
  [ $# -gt 0 ] || { lint_part unused; arguments=('--gtest_filter=*/3*'); }
  run_gtest store ceph_test_objectstore "${arguments[@]}"
  if [ -e "$BUILD/bin/ceph_test_tablestore" ]; then
    run_gtest store-own ceph_test_tablestore "$@"
  fi
}

# Real clusters; qa/osd/osd_test.py ends with a line of counts in our format.
suite_osd() {
  need setup_ceph
  local log=$LOGS/test-osd.log status=0 counts
  say "[osd] (log: $log)"
  in_env python3 /tablestore/qa/osd/osd_test.py "$@" </dev/null 2>&1 | tee "$log" || status=$?
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
# counts as one failure more. With may_be_empty it may have had nothing to do.
add_counts() { # NAME STATUS PASSED FAILED SKIPPED
  local ok=${3:-0} bad=${4:-0} left=${5:-0}
  if [ "${may_be_empty:-0}" != 0 ] && [ "$2 $ok $bad" = "0 0 0" ]; then
    say "[$1] 0 passed, 0 failed, $left skipped: nothing of what was asked for is here"
    skipped=$((skipped + left))
    return
  fi
  if { [ "$2" != 0 ] && [ "$bad" = 0 ]; } || [ "$ok" = 0 ]; then
    bad=$((bad + 1))
    say "[$1] ended with status $2 without a result:"
    tail -n 15 "$LOGS/test-$1.log" >&2
  fi
  say "[$1] $ok passed, $bad failed, $left skipped"
  passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + left))
}
