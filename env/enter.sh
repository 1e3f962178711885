# Enters the root file system: a private mount namespace, bind mounts, chroot.
# Nothing stays mounted: the namespace goes with its last process.

# Mounts, then becomes the command. Runs inside the new namespace; $1 is the
# root, then pairs HOST=INSIDE up to --, then the command. All exec, no fork:
# the command keeps our process id, so ^C and kill reach it directly.
enter_script='
set -e
root=$1; shift
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mountpoint -q "$root/dev/pts" || mount -t devpts devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/run"
while [ "$1" != -- ]; do
  mkdir -p "$root${1#*=}"
  mount --bind "${1%%=*}" "$root${1#*=}"
  shift
done
shift
exec chroot "$root" "$@"
'

EXTRA_BINDS=()   # more HOST=INSIDE pairs, e.g. a cluster directory of the user's

# exec_in_env CMD...: replaces this process. Of the build tree only our own
# programs are on the PATH (its bin/ceph and others want a whole build), and
# these find their libraries by their run path: LD_LIBRARY_PATH would push our
# libraries into the packaged mon and mgr.
exec_in_env() {
  local binds=("$CHECKOUT=/tablestore" "$STATE=/state" "$CCACHE=/ccache"
    "$DOWNLOADS=/downloads" "$PRISTINE=/pristine" "$UNIT=/unit" "$LOGS=/logs")
  if [ -d "$SOURCE" ]; then
    mkdir -p "$SOURCE/build"
    binds+=("$SOURCE=/ceph" "$BUILD=/ceph/build")
  fi
  exec unshare -m --propagation private \
    bash -c "$enter_script" enter "$ROOTFS" "${binds[@]}" "${EXTRA_BINDS[@]}" -- \
    /usr/bin/env -i HOME=/tmp LANG=C.UTF-8 LC_ALL=C.UTF-8 TERM="${TERM:-dumb}" \
    DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} \
    ${CI:+CI="$CI"} \
    PATH=/ceph/build/ours:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    CCACHE_DIR=/ccache CCACHE_MAXSIZE=5G CCACHE_SLOPPINESS=time_macros CCACHE_DEPEND=1 \
    TABLESTORE_HOST_STATE="$STATE" TABLESTORE_HOST_LOGS="$LOGS" \
    bash -c 'cd /tablestore && exec "$@"' env "$@"
}

# in_env CMD...: the same, and comes back
in_env() { (exec_in_env "$@"); }
