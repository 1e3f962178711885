# Shared by ./run and the rooms in env/ and env/verbs/: where things live, messages, steps.
# Sourced, never executed.

CACHE=${TABLESTORE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tablestore}
ROOTFS=$CACHE/rootfs        # Debian root file system, everything runs inside
SOURCE=$CACHE/source        # Ceph's source, patched and overlaid; /ceph inside
BUILD=$CACHE/build          # its build tree;                      /ceph/build
UNIT=$CACHE/unit            # the engine's own build trees;        /unit
PRISTINE=$CACHE/pristine    # files of the source as they came;    /pristine
STATE=$CACHE/state          # clusters, test directories;          /state
CCACHE=$CACHE/ccache        #                                      /ccache
DOWNLOADS=$CACHE/downloads  #                                      /downloads
LOGS=$CACHE/logs
STAMPS=$CACHE/stamps

SUITE=forky                 # the Debian release that carries Ceph 20.2
CEPH_SERIES=20.2
DISK_GIB=10                 # what all of it takes, about

say()  { printf '%s\n' "$*" >&2; }
die()  { printf 'run: %s\n' "$*" >&2; exit 1; }

# hash_of WORDS...: one key for everything that a step depends on
hash_of() { printf '%s\0' "$@" | sha256sum | cut -c1-16; }

# hash_files DIR...: one key for the names and contents of all files below
hash_files() {
  local dir
  for dir; do
    [ -e "$dir" ] || continue
    find "$dir" -type f -not -name '*.pyc' -print0
  done | LC_ALL=C sort -z | xargs -0r sha256sum | sha256sum | cut -c1-16
}

prepare_cache() {
  [ "$(id -u)" = 0 ] || die "needs root (it mounts and enters a root file system); try: sudo $0 ..."
  mkdir -p "$CACHE" "$LOGS" "$STAMPS" "$BUILD" "$UNIT" "$PRISTINE" "$STATE" \
    "$CCACHE" "$DOWNLOADS" || die "cannot write to $CACHE; set TABLESTORE_CACHE to a directory that can be written"
}

check_space() {
  local free wanted=2
  # Less what an interrupted set-up has taken already.
  [ -e "$STAMPS/source" ] || wanted=$((DISK_GIB - $(du -sxB1G "$CACHE" 2>/dev/null | cut -f1)))
  [ "$wanted" -ge 2 ] || wanted=2
  free=$(df --output=avail -B1G "$CACHE" | tail -n 1 | tr -dc 0-9)
  [ "$free" -ge "$wanted" ] || die "only $free GiB free under $CACHE, $wanted GiB needed: free some space or set TABLESTORE_CACHE to a directory on another disk, then run the same command again"
}

# need SETUP: has SETUP's steps done. One at a time: a second run waits for the
# first and then finds all done. Nobody waits for what is up to date already.
need() {
  if (step() { [ "$(cat "$STAMPS/$1" 2>/dev/null)" = "$2" ] || exit 1; }; "$1") 2>/dev/null; then
    return
  fi
  exec 9>"$CACHE/lock"
  if ! flock -n 9; then
    say "another run is setting up in $CACHE; waiting for it"
    flock 9
  fi
  check_space
  "$1"
  exec 9>&-
}

scratch=   # a directory of the running test's
remove_scratch() { [ -z "$scratch" ] || rm -rf --one-file-system "$scratch"; scratch=; }

current_step= step_pid= progress_pid=
background_pids=()   # of suites that run beside others; each leads its process group
end_background() {
  local pid
  for pid in "${background_pids[@]}"; do end_group "$pid"; done
  background_pids=()
}
interrupted() {
  trap - INT TERM HUP
  end_background
  end_group "$step_pid"
  end_group "$progress_pid"
  remove_scratch
  say ""
  say "run: interrupted${current_step:+ in step '$current_step'}; run the same command again and it continues there"
  exit 130
}

elapsed() { # SECONDS
  if [ "$1" -lt 60 ]; then printf '%ds' "$1"; else printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); fi
}

# step NAME KEY TITLE FUNCTION: runs FUNCTION once per KEY, its output in a
# log. The stamp is written after success only, so whatever was cut short
# runs again; every FUNCTION must cope with its own unfinished work.
step() {
  local name=$1 key=$2 title=$3 function=$4 log=$LOGS/$1.log began=$SECONDS status=0
  [ "$(cat "$STAMPS/$name" 2>/dev/null)" = "$key" ] && return
  rm -f "$STAMPS/$name"
  current_step=$name
  say "[$name] $title (log: $log)"
  # Each in the background with a process group of its own (set -m): a signal
  # is acted on at once, and the whole step can be ended. The step inherits the
  # lock: should we be killed, it is held until the step has ended too.
  set -m
  (set -euo pipefail; trap - INT TERM HUP; "$function") >"$log" 2>&1 </dev/null &
  step_pid=$!
  report_progress "$name" "$log" 9>&- </dev/null &
  progress_pid=$!
  set +m
  wait "$step_pid" || status=$?
  step_pid=
  end_group "$progress_pid"
  [ "$status" = 0 ] || explain_failure "$name" "$log"
  printf '%s\n' "$key" >"$STAMPS/$name"
  current_step=
  say "[$name] done in $(elapsed $((SECONDS - began)))"
}

# For the long steps: once a minute, where they are.
report_progress() { # NAME LOG
  local began=$SECONDS
  while sleep 60; do
    say "[$1] $(elapsed $((SECONDS - began))): $(tail -n 1 "$2" | cut -c1-100)"
  done
}

end_group() { # PID
  [ -n "$1" ] || return 0
  kill -TERM -- "-$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

# Turns the commonest causes into one line that says what to do.
explain_failure() { # NAME LOG
  local again="then run the same command again, it continues with step '$1'"
  if grep -q '^MISSING: ' "$2"; then
    die "step '$1': install $(sed -n 's/^MISSING: //p' "$2") on this machine, $again"
  elif grep -qi 'no space left on device' "$2"; then
    die "step '$1': the disk is full: free some space under $CACHE, $again"
  elif grep -qiE 'could not resolve|temporary failure (in name|resolving)|network is unreachable|connection (refused|timed out|failed)|could not connect' "$2"; then
    die "step '$1': Debian's package servers cannot be reached: check the network (and http_proxy), $again"
  elif grep -qiE 'hash sum mismatch|unexpected (size|end of file)|file has unexpected|method [a-z]+ has died|failed to fetch|(xz|gzip|tar): .*(corrupt|unexpected)' "$2"; then
    die "step '$1': a broken download: run the same command again, it fetches that file anew (log: $2)"
  elif grep -q '^FAILED: ' "$2"; then
    show_compile_error "$2"
    die "step '$1': the build failed (full log: $2)"
  fi
  tail -5 "$2" >&2
  die "step '$1' failed (full log: $2); mend the cause above, $again"
}

# The first error of a build, without the command lines around it.
show_compile_error() { # LOG
  grep -m1 -A12 -E ': (fatal )?error: |undefined reference|multiple definition|CMake Error' "$1" >&2 || true
}
