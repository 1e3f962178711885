# ./run clean: removes what the other verbs made, and nothing else.

clean_up() {
  local what=("$ROOTFS" "$ROOTFS.new" "$SOURCE" "$SOURCE.new" "$BUILD" "$UNIT" "$PRISTINE" \
    "$STATE" "$CCACHE" "$DOWNLOADS" "$LOGS" "$STAMPS" "$MACHINES")
  case ${1-} in
    '') ;;
    --build) what=("$BUILD" "$UNIT" "$STAMPS/configure" "$STAMPS/rocksdb" "$STAMPS/build") ;;
    *) usage_error "clean takes --build or nothing: $*" ;;
  esac
  local users running
  users=$(processes_inside)
  [ -z "$users" ] || die "still running in there: $users; end them first (./run cluster stop)"
  running=$(machine_status | grep ': up$' || true)
  [ -z "$running" ] || die "machines are running: $running; remove them first (./run machine remove)"

  say "removing $([ $# = 0 ] && echo "all" || echo "what was built") in $CACHE"
  rm -rf --one-file-system "${what[@]}"
  [ $# != 0 ] || { rm -f "$CACHE/lock"; rmdir "$CACHE" 2>/dev/null || true; }
}

# Name and id of every process whose root is our root file system.
processes_inside() {
  local process
  [ -d "$ROOTFS" ] || return 0
  for process in /proc/[0-9]*; do
    [ "$process/root" -ef "$ROOTFS" ] || continue
    printf '%s(%s) ' "$(cat "$process/comm")" "${process#/proc/}"
  done 2>/dev/null
}
