# ./run sim and the suites sim and mutants: the engine, and the whole store
# (--store), on a simulated disk.

ENGINE_SIM=/unit/plain/tablestore_sim
STORE_SIM=/ceph/build/bin/ceph_tablestore_sim
ENGINE_MUTANTS=/tablestore/src/test/tablestore/sim/mutants.py
STORE_MUTANTS=/tablestore/src/test/objectstore/tablestore/sim/store_mutants.py

build_sim() {
  need setup_rocksdb
  local log=$LOGS/sim-build.log
  if ! in_env bash /tablestore/env/build_unit.sh plain tablestore_sim tablestore_sim_test "$@" \
    >"$log" 2>&1; then
    show_compile_error "$log"
    die "the simulator does not build (full log: $log)"
  fi
}

run_sim() {
  local word program= rest=()
  for word; do if [ "$word" = --store ]; then program=$STORE_SIM; else rest+=("$word"); fi; done
  if [ "$program" ]; then need setup_ceph; else build_sim; fi
  trap - INT TERM
  exec_in_env "${program:-$ENGINE_SIM}" "${rest[@]}"
}

# The store's simulator is a part of Ceph's build, which takes half an hour the
# first time: nobody gets that by asking for the engine's.
has_store_sim() {
  if [ "$(stamp build)" ]; then need setup_ceph; return; fi
  say "[$1] without the whole store, which Ceph's build is needed for: ./run setup"
  return 1
}

# The simulator's own tests, then fixed seeds, all histories of up to two
# transactions on two bases and damage of any file; then the same of the whole
# store; then what no run had before. With arguments: the tests only.
suite_sim() {
  build_sim tablestore_damage
  run_gtest sim /unit/plain/tablestore_sim_test "$@"
  [ $# = 0 ] || return 0
  sim_part random --seeds 400
  sim_part damage --seeds 200 --seed 100000 --faults errors,full,damage
  sim_part in-turn --seeds 60 --seed 996000000 --in-turn
  sim_part nearly-full --seeds 60 --seed 999000000 --nearly-full
  sim_part exhaustive-fresh --exhaustive --transactions 2 --only fresh,in_order
  sim_part exhaustive-wrapped --exhaustive --transactions 2 --only wrapped,in_order
  # A group of the log that is lost, or lands on others, while what those had freed is others' space.
  sim_part lost-group --seed 990001168 --faults errors,full,damage
  sim_part misplaced-group --seed 990001256 --faults errors,full,damage
  sim_part misplaced-witness --seed 997002948 --faults errors,full,damage
  sim_part misplaced-across-the-start --seed 999202710 --in-turn --nearly-full \
    --faults errors,full,damage
  sim_part witness-read-again --seed 999401140 --in-turn --nearly-full --faults errors,full,damage
  # A table that goes on after a full disk while a compaction waits.
  sim_part resumed-table --seed 993011925 --faults errors,full,damage
  run_sim_part /unit/plain/tablestore_damage files --seeds 400
  suite_fresh
  has_store_sim sim || return 0
  store_sim_part random --seeds 350
  store_sim_part damage --seeds 250 --seed 100000 --faults errors,full,damage
  store_sim_part nearly-full --seeds 100 --seed 979500000 --nearly-full
  store_sim_part twice --seeds 50 --seed 200000 --twice
  # A mount that fails after the engine has opened, then a crash.
  store_sim_part failed-mount --seed 961501634 --steps 100 --faults errors,full
  # Rows of an extent map that cannot be read while it is cloned; a compaction that finds no space.
  store_sim_part unreadable-clone --seed 979300677 --steps 100 --faults errors,full,damage
  store_sim_part two-groups-hit --seed 979418750 --steps 100 --faults errors,full,damage
  store_sim_part replaced-on-a-full-disk --seed 979410032 --steps 100 --faults errors,full,damage
  store_sim_part compaction-without-space --seed 979401853 --faults errors,full,damage
  store_sim_part exhaustive --exhaustive --transactions 1 --only ,in_order
}

# Other histories than those of any other state of the source: by a seed that nobody has chosen,
# which is printed. The same source has the same seed: who runs this before a commit has seen what
# CI will see of it. Of the short histories that take long, a part that the seed chooses: ./run sim
# --exhaustive, and with --damage, runs all.
suite_fresh() {
  local seed; seed=$(fresh_seed)
  build_sim tablestore_damage tablestore_engine_test
  run_sim_part /unit/plain/tablestore_damage fresh-files --seeds 400 --seed "$seed"
  sim_part fresh --seeds 40 --seed "$seed"
  sim_part fresh-damage --seeds 40 --seed "$seed" --faults errors,full,damage
  sim_part fresh-in-turn --seeds 40 --seed "$seed" --in-turn --faults errors,full,damage
  sim_part fresh-nearly-full --seeds 40 --seed "$seed" --nearly-full --faults errors,full,damage
  sim_part fresh-provisioned --exhaustive --transactions 2 --only provisioned,in_order \
    --part $((seed % 2))/2
  sim_part fresh-newest-first --exhaustive --transactions 2 --only ,newest_first \
    --part $((seed % 5))/5
  sim_part fresh-damaged-block --exhaustive --damage --part $((seed % 3))/3
  suite_mutants --sample 2 --choice "$seed"
  has_store_sim fresh || return 0
  store_sim_part fresh --seeds 40 --seed "$seed"
  store_sim_part fresh-damage --seeds 40 --seed "$seed" --faults errors,full,damage
  store_sim_part fresh-in-turn --seeds 40 --seed "$seed" --in-turn
  store_sim_part fresh-nearly-full --seeds 40 --seed "$seed" --nearly-full
}
fresh_seed() {
  local key; key=$(cd "$CHECKOUT" && hash_files src patches)   # wherever the checkout is
  local seed=$((16#${key:0:7} + 1000000))   # up to 269 million
  say "[fresh] seeds from $seed on"
  echo "$seed"
}

# One run of the simulator is one test. What it prints of a failure is enough to make it smaller.
sim_part_limit=$((20 * 60))   # seconds
sim_part() { run_sim_part "$ENGINE_SIM" "$@" --no-minimise; }
store_sim_part() {
  local name=$1
  shift
  run_sim_part "$STORE_SIM" "store-$name" "$@" --no-minimise
}
run_sim_part() { # PROGRAM NAME ARGS...
  local program=$1 name=$2 log=$LOGS/test-sim-$2.log status=0
  shift 2
  say "[sim-$name] (log: $log)"
  in_env timeout -k 30 "$sim_part_limit" "$program" "$@" </dev/null >"$log" 2>&1 || status=$?
  [ "$status" != 124 ] || say "[sim-$name] did not end within $(elapsed "$sim_part_limit")"
  grep -vE '/s$' "$log" | tail -n 8 >&2 || true
  add_counts "sim-$name" "$status" $((status == 0)) $((status != 0)) 0
}

# Every way in which these programs break the engine and the store must be
# found. Names are of one of them.
suite_mutants() {
  local ours=0 word
  if [ "${1-}" = --sample ]; then   # N --choice SEED: so many of each, which that seed chooses
    build_sim tablestore_engine_test
    run_mutants "$ENGINE_MUTANTS" "$@"
    if has_store_sim mutants; then run_mutants "$STORE_MUTANTS" "$@"; fi
    return
  fi
  for word; do
    if grep -q "mutant(\"$word\"" "$CHECKOUT${STORE_MUTANTS#/tablestore}"; then :; else ours=1; fi
  done
  if [ $# = 0 ] || [ $ours = 1 ]; then build_sim tablestore_engine_test; run_mutants "$ENGINE_MUTANTS" "$@"; fi
  if [ $# = 0 ] || [ $ours = 0 ]; then
    if has_store_sim mutants; then run_mutants "$STORE_MUTANTS" "$@"; fi
  fi
}
run_mutants() { # PROGRAM ARGS...
  local program=$1 name=$(basename "$1" .py) status=0
  local log=$LOGS/test-$name.log
  shift
  say "[$name] (log: $log)"
  in_env python3 "$program" "$@" </dev/null 2>&1 | tee "$log" || status=$?
  add_counts "$name" "$status" $(grep -E '^[0-9]+ passed, ' "$log" | tail -n 1 | tr -dc '0-9 ')
}
