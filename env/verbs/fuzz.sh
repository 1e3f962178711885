# ./run fuzz and the suite fuzz: what reads bytes from the disk, under the address
# and undefined-behaviour sanitizers, with libFuzzer, or, in CI, with a driver of
# ours. The work is in src/test/tablestore/fuzz/fuzz.py.

FUZZ=/tablestore/src/test/tablestore/fuzz/fuzz.py

# Only libFuzzer needs clang: it is installed when it is first called for.
FUZZ_PACKAGES="clang libclang-rt-dev llvm"

install_clang() { in_env sh -ec "$apt_recover; $APT update; $APT install $FUZZ_PACKAGES; apt-get clean"; }

setup_clang() {
  [ -x "$ROOTFS/usr/bin/clang++" ] || rm -f "$STAMPS/clang"
  step clang "$(hash_of "$(stamp build-deps)" "$FUZZ_PACKAGES")" "clang, about 15 seconds" install_clang
}

# The targets of the store's rows take the rest of Ceph from its build, of any
# day: they compile what they test themselves.
build_fuzz() { # [coverage]
  need setup_rocksdb
  [ -e "$BUILD/lib/libceph-common.so" ] || need setup_ceph
  need setup_clang
  local log=$LOGS/fuzz-build.log began=$SECONDS
  if ! in_env bash /tablestore/env/build_fuzz.sh "$@" >"$log" 2>&1; then
    show_compile_error "$log"
    die "the fuzz targets do not build (full log: $log)"
  fi
  say "[fuzz] built in $(elapsed $((SECONDS - began))) (log: $log)"
}

run_fuzz() {
  local word variant= arguments=()
  for word; do
    case $word in
      --coverage) variant=coverage; arguments+=("$word") ;;
      # An input is on the host: what runs inside gets a copy.
      *) if [ -f "$word" ]; then
           mkdir -p "$STATE/fuzz"
           cp "$word" "$STATE/fuzz/input"
           word=/state/fuzz/input
         fi
         arguments+=("$word") ;;
    esac
  done
  build_fuzz $variant
  trap - INT TERM
  exec_in_env python3 "$FUZZ" "${arguments[@]}"
}

# What was found worth keeping, and a fixed number of inputs more; one target is one test. Then
# some inputs that no other state of the source had: their seed is printed.
suite_fuzz() {
  if [ "${1-}" = --quick ]; then suite_fuzz_driver engine; suite_fuzz_driver store; return; fi
  build_fuzz
  fuzz_part fuzz --fixed "$@"
  fuzz_part fuzz-fresh --fixed --seed "$(fresh_seed)" "$@"
}
# What CI runs: the same targets of the engine or of the store without clang, in the tree of the
# address sanitizer, which has most of what they need already. New inputs are made by the seed that
# nobody has chosen.
suite_fuzz_driver() { # engine|store
  local part=$1 targets=tablestore_fuzz log=$LOGS/fuzz-$1-build.log began=$SECONDS
  if [ "$part" = store ]; then targets=tablestore_store_fuzz; need setup_ceph; else need setup_rocksdb; fi
  if ! in_env bash /tablestore/env/build_unit.sh address "$targets" >"$log" 2>&1; then
    show_compile_error "$log"
    die "the fuzz targets do not build (full log: $log)"
  fi
  say "[fuzz-$part] built in $(elapsed $((SECONDS - began))) (log: $log)"
  fuzz_part "fuzz-$part" --driver "$part" --seed "$(fresh_seed)"
}
fuzz_part() { # NAME ARGS...
  local name=$1 log=$LOGS/test-$1.log status=0
  shift
  say "[$name] (log: $log)"
  in_env python3 "$FUZZ" "$@" </dev/null >"$log" 2>&1 || status=$?
  [ "$status" = 0 ] || tail -n 40 "$log" >&2
  add_counts "$name" "$status" $(grep -E '^[0-9]+ passed, ' "$log" | tail -n 1 | tr -dc '0-9 ')
}
