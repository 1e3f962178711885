# ./run test: unit, store, osd, qa. Each suite writes its own log and says how many
# tests passed, failed and were skipped; the last line adds them up.

passed=0 failed=0 skipped=0
suite_limit=0   # seconds of one suite's program; 0: none. One that does not end has failed.
limited=(timeout --foreground --kill-after=60 --verbose)

run_tests() {
  local suite=all
  case ${1-} in
    unit | store | osd | qa | sim | fresh | kernel | fuzz | mutants | bench | metrics | \
      package | deploy | ceph-volume | containers | cephadm | kubernetes | all)
      suite=$1; shift ;;
  esac
  case $suite in
    unit) suite_unit "$@" ;;
    store) suite_store "$@" ;;
    osd) suite_osd "$@" ;;
    qa) suite_qa "$@" ;;
    sim) suite_sim "$@" ;;
    fresh) suite_fresh ;;
    kernel) suite_kernel "$@" ;;
    fuzz) suite_fuzz "$@" ;;
    mutants) suite_mutants "$@" ;;
    bench) suite_bench "$@" ;;
    metrics) suite_metrics "$@" ;;
    package) suite_package "$@" ;;
    ceph-volume) suite_ceph_volume "$@" ;;
    deploy) suite_deploy "$@" ;;
    containers) suite_containers "$@" ;;
    cephadm) suite_cephadm "$@" ;;
    kubernetes) suite_kubernetes "$@" ;;
    all)
      [ $# = 0 ] || usage_error "'test all' takes no arguments: $*"
      suite_limit=$((40 * 60))
      trap end_background EXIT   # whatever ends this, they do not run on
      suite_unit
      in_background sim suite_sim
      in_background kernel suite_kernel
      in_background sanitizers-engine suite_engine_sanitizers
      suite_store
      in_background sanitizers-store suite_store_sanitizers
      suite_kernel --store; suite_osd
      need_bench
      in_background bench suite_bench
      suite_osd_xfs; suite_qa --quick; suite_metrics
      suite_package --quick; suite_ceph_volume; suite_deploy --quick
      suite_containers --quick
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
    passed=0 failed=0 skipped=0 suite_limit=0   # wait_for_background has one for it
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
    wait_for_background "${background_pids[i]}" "$name"
    cat "$LOGS/background-$name.log" >&2
    read -ra counts <"$LOGS/background-$name.counts" || counts=(0 1 0)
    passed=$((passed + counts[0])) failed=$((failed + counts[1])) skipped=$((skipped + counts[2]))
  done
  background_pids=() background_names=()
}

# A suite that does not end has failed; its log says where it was.
background_limit=$((30 * 60))   # seconds, when all else has ended
wait_for_background() { # PID NAME
  local until=$((SECONDS + background_limit))
  while kill -0 "$1" 2>/dev/null; do
    if [ "$SECONDS" -gt "$until" ]; then
      say "[$2] did not end within $(elapsed "$background_limit"): ended it"
      kill -TERM -- "-$1" 2>/dev/null || true
      sleep 5
      kill -KILL -- "-$1" 2>/dev/null || true
      break
    fi
    sleep 1
  done
  wait "$1" || true
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
  run_sanitized "unit-$variant" "/unit/$variant/tablestore_engine_test" "$@"
}

# gcc's thread sanitizer cannot cope with the kernel's widest address randomisation; RocksDB and
# Ceph's libraries are not instrumented, see qa/*.supp.
run_sanitized() { # NAME PROGRAM ARGS...
  local name=$1
  shift
  run_gtest "$name" setarch -R env \
    ASAN_OPTIONS=detect_container_overflow=0:detect_leaks=1:detect_odr_violation=0 \
    LSAN_OPTIONS=suppressions=/tablestore/qa/lsan.supp:print_suppressions=0 \
    UBSAN_OPTIONS=print_stacktrace=1 \
    TSAN_OPTIONS=suppressions=/tablestore/qa/tsan.supp:second_deadlock_stack=1 "$@"
}

# The rules that a program can check, each of which is a test, and whether it notices.
suite_lint() { lint_part lint; lint_part test_lint; }
lint_part() { quiet_program "$1" "src/test/tablestore/lint/$1.py"; }
# A Python program that ends with a line of counts, and is shown only when it fails.
quiet_program() { # NAME PROGRAM
  local name=$1 log=$LOGS/test-$1.log status=0
  in_env python3 "/tablestore/$2" </dev/null >"$log" 2>&1 || status=$?
  [ "$status" = 0 ] || cat "$log" >&2
  add_counts "$name" "$status" $(tail -n 1 "$log" | tr -dc '0-9 ')
}

# Ceph's contract tests with the parameter tablestore, and our own; and functions of the store that
# nothing calls. --sanitize: a part of our own, with the store and the engine instrumented.
suite_store() {
  if [ "${1-}" = --sanitize ]; then shift; suite_store_sanitized "$@"; return; fi
  need setup_ceph
  local arguments=("$@") may_be_empty=$#   # what a filter names may be in one program only
  [ $# -gt 0 ] || { lint_part unused; leave_out_bluestore; }
  run_gtest store ceph_test_objectstore "${arguments[@]}"
  [ -e "$BUILD/bin/ceph_test_tablestore" ] || return 0
  run_gtest store-own ceph_test_tablestore "$@"
}

# Sets `arguments` to the contract tests that say something of tablestore. Those that return at once
# for all but BlueStore count as skipped, where gtest would count them as passed.
leave_out_bluestore() {
  local of_bluestore
  { read -r of_bluestore && read -r arguments; } \
    < <(in_env python3 /tablestore/qa/objectstore/contract.py) ||
    die "qa/objectstore/contract.py does not say which contract tests are about this store"
  arguments="--gtest_filter=$arguments"
  say "[store] of Ceph's contract tests, $of_bluestore are about BlueStore's inside and return at once: skipped"
  skipped=$((skipped + of_bluestore))
}

# The engine's tests and a part of the store's under both sanitizers, and the fuzz targets, in two
# chains: each builds with all processors and then tests with one. Of what takes long both get one
# seed, and the thread sanitizer what has threads; `./run test unit --sanitize thread` leaves nothing
# out.
more_of_the_same='Mixes/ContainersFill.*:Seeds/EngineModel.*/1:Seeds/EngineModel.*/2'
more_of_the_same+=':Seeds/EngineModel.*/3'
suite_engine_sanitizers() {
  suite_unit --sanitize thread --gtest_filter="-RottenPartTest.*:$more_of_the_same"
  suite_unit --sanitize address --gtest_filter="-$more_of_the_same"
  suite_fuzz_driver engine
}
suite_store_sanitizers() {
  suite_store --sanitize address
  suite_store --sanitize thread
  suite_fuzz_driver store
}

suite_store_sanitized() { # address|thread [GTEST ARGS]
  local variant=${1-} log=$LOGS/store-sanitize-build.log began=$SECONDS
  case $variant in address | thread) ;; *) usage_error "--sanitize takes address or thread" ;; esac
  shift
  need setup_ceph
  if ! in_env python3 /tablestore/env/build_store.py "$variant" >"$log" 2>&1; then
    show_compile_error "$log"
    die "the store with $variant sanitizer does not build (full log: $log)"
  fi
  say "[store-$variant] built in $(elapsed $((SECONDS - began))) (log: $log)"
  run_sanitized "store-$variant" "/unit/store-$variant/ceph_test_tablestore" "$@"
}

# Real clusters: programs of qa/ that end with a line of counts in our format.
suite_osd() { suite_of_clusters osd qa/osd/osd_test.py "$@"; }
# What depends on the file system below, on the other kind than most caches are on.
suite_osd_xfs() {
  suite_of_clusters osd-xfs qa/osd/osd_test.py --fs xfs --only acknowledged_writes_survive_kill \
    --only snapshots_keep --only decay_of_a_replica
}
# Ceph's own qa/standalone scripts on OSDs of this store.
suite_qa() {
  need setup_ceph
  [ "${1-}" = --list ] || quiet_program test_standalone qa/standalone/test_standalone.py
  suite_of_clusters qa qa/standalone/standalone_test.py "$@"
}
suite_of_clusters() { # NAME PROGRAM ARGS...
  local name=$1 program=$2 log=$LOGS/test-$1.log status=0 counts
  shift 2
  need setup_ceph
  say "[$name] (log: $log)"
  in_env "${limited[@]}" "$suite_limit" python3 "/tablestore/$program" "$@" </dev/null 2>&1 |
    tee "$log" || status=$?
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1) || true
  add_counts "$name" "$status" $(tr -dc '0-9 ' <<<"$counts")
}

TEST_SEED=${TABLESTORE_TEST_SEED:-1}    # of our models and of Ceph's contract tests
# run_gtest NAME CMD...: in an empty directory on the cache's disk
run_gtest() {
  local name=$1 log=$LOGS/test-$1.log status=0
  shift
  say "[$name] (log: $log)"
  scratch=$STATE/test-$name.$$
  mkdir -p "$scratch"
  in_env "${limited[@]}" "$suite_limit" env TABLESTORE_TEST_SEED="$TEST_SEED" TEST_RANDOM_SEED="$TEST_SEED" \
    bash -ec 'cd "$1"; export TABLESTORE_TEST_DIR=$1; shift; exec "$@"' run "/state/${scratch##*/}" "$@" \
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
