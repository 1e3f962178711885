# ./run powercut and the suite kernel: the engine, or a whole store, on real file systems; its
# process is killed, and the power of the disk below is cut. Needs /dev/fuse, loop devices and the
# kernel's ext4 and XFS. What cannot be done for want of one counts as skipped in the last line; the
# verb fails then, since that is what was asked for.

CEPH_TEST_TABLESTORE=/ceph/build/bin/ceph_test_tablestore
POWERCUT_SKIPPED=77   # the program's exit status where something could not be done

build_powercut() {
  need setup_rocksdb
  local log=$LOGS/powercut-build.log
  if ! in_env bash /tablestore/env/build_unit.sh plain tablestore_powercut \
    tablestore_powercut_test >"$log" 2>&1; then
    show_compile_error "$log"
    die "the program that cuts the power does not build (full log: $log)"
  fi
}

# powercut ARGS...: in an empty directory, which is kept where a store was found broken. The mounts
# and loop devices go with the program.
powercut() {
  local status=0 kept=$STATE/${keep_as:-powercut-failed}
  scratch=$STATE/powercut.$BASHPID
  mkdir -p "$scratch"
  in_env /unit/plain/tablestore_powercut --dir "/state/${scratch##*/}" "$@" </dev/null || status=$?
  if [ "$status" = 1 ]; then
    rm -rf --one-file-system "$kept"
    mv "$scratch" "$kept"
    scratch=
    say "what was found, a disk image after a power cut: in $kept"
  fi
  remove_scratch
  return "$status"
}

# --store: the whole of it, which needs Ceph's build.
run_powercut() {
  local word words=()
  build_powercut
  for word; do
    words+=("$word")
    [ "$word" != --store ] || { need setup_ceph; words+=("$CEPH_TEST_TABLESTORE"); }
  done
  powercut "${words[@]}"
}

# The disk's own tests; a fixed number of kills, and of cuts below each file system; flushes that
# somebody forgot. With --store the kills and cuts of whole stores, with other arguments only the
# first.
suite_kernel() {
  build_powercut
  if [ "${1-}" = --store ]; then
    need setup_ceph
    kernel_part store-kill-9 --store "$CEPH_TEST_TABLESTORE" --cuts 0 --kills 40
    kernel_part store-ext4 --store "$CEPH_TEST_TABLESTORE" --fs ext4 --cuts 60
    kernel_part store-xfs --store "$CEPH_TEST_TABLESTORE" --fs xfs --cuts 60
    fast_commit_is_refused
    return
  fi
  run_gtest kernel /unit/plain/tablestore_powercut_test "$@"
  [ $# = 0 ] || return 0
  skips_are_counted
  kernel_part kill-9 --cuts 0 --kills 150
  kernel_part ext4 --fs ext4 --cuts 120
  kernel_part xfs --fs xfs --cuts 120
  if grep -hq '^SKIPPED' "$LOGS/test-kernel-ext4.log" "$LOGS/test-kernel-xfs.log"; then
    kernel_skipped mutants "$LOGS/test-kernel-xfs.log"
  else
    kernel_mutants
  fi
}

# Without FUSE there are no power cuts, and nobody may take that for a pass.
skips_are_counted() {
  local log=$LOGS/test-kernel-skips.log status=0 right=0
  say "[kernel-skips] (log: $log)"
  scratch=$STATE/powercut.$BASHPID
  mkdir -p "$scratch"
  in_env bash -c 'mount --bind /dev/null /dev/fuse && exec "$@"' run /unit/plain/tablestore_powercut \
    --dir "/state/${scratch##*/}" --fs xfs --cuts 1 </dev/null >"$log" 2>&1 || status=$?
  remove_scratch
  if [ "$status" = "$POWERCUT_SKIPPED" ] && tail -n 1 "$log" | grep -q ' 1 skipped$'; then
    right=1
  fi
  add_counts kernel-skips $((1 - right)) "$right" $((1 - right)) 0
}

# A part that cannot be done here is one skipped test, and the reader is told why.
kernel_skipped() { # NAME LOG
  skipped=$((skipped + 1))
  say "[kernel-$1] SKIPPED, no power was cut: $(grep -h -m 1 '^SKIPPED' "$2" || true)"
}

# With that option ext4 loses what was flushed.
fast_commit_is_refused() {
  local log=$LOGS/test-kernel-fast-commit.log refused=0
  say "[kernel-fast-commit] (log: $log)"
  local keep_as=powercut-refused
  powercut --store "$CEPH_TEST_TABLESTORE" --fs ext4 --mkfs "-O fast_commit" --cuts 1 \
    >"$log" 2>&1 || true
  rm -rf --one-file-system "${STATE:?}/$keep_as"
  if grep -q '^SKIPPED' "$log"; then
    kernel_skipped fast-commit "$log"
    return
  fi
  ! grep -q 'mkfs: (95) Operation not supported' "$log" || refused=1
  add_counts kernel-fast-commit $((1 - refused)) "$refused" $((1 - refused)) 0
}

# Does it notice a flush that is missing?
kernel_mutants() {
  local log=$LOGS/test-kernel-mutants.log status=0
  say "[kernel-mutants] (log: $log)"
  in_env python3 "$ENGINE_MUTANTS" --powercut </dev/null 2>&1 |
    tee "$log" || status=$?
  add_counts kernel-mutants "$status" \
    $(grep -E '^[0-9]+ passed, ' "$log" | tail -n 1 | tr -dc '0-9 ')
}

# One run is one test.
kernel_part() { # NAME ARGS...
  local name=$1 log=$LOGS/test-kernel-$1.log status=0
  shift
  say "[kernel-$name] (log: $log)"
  powercut "$@" >"$log" 2>&1 || status=$?
  tail -n 8 "$log" >&2
  if [ "$status" = "$POWERCUT_SKIPPED" ]; then
    kernel_skipped "$name" "$log"
    return
  fi
  add_counts "kernel-$name" "$status" $((status == 0)) $((status != 0)) 0
}
