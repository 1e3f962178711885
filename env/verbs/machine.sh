# ./run machine: hosts in namespaces, see env/machine.

MACHINES=$CACHE/machine
MACHINE_PACKAGES="iproute2 iputils-ping udev cephadm podman crun netavark aardvark-dns catatonit lvm2
  cryptsetup-bin parted chrony python3-yaml jq less"
MACHINE_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# The layer that all machines share. `layered ROOT`: then the command of enter_script, in that root.
make_machine_base() {
  local base=$MACHINES/base binds=("$DOWNLOADS=/downloads")
  rm -rf --one-file-system "$base"
  mkdir -p "$base"/{upper,work,root}
  unshare -m --propagation private bash -ec '
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
    shift 2
    '"$enter_script" enter "$ROOTFS" "$base" "$base/root" "${binds[@]}" -- \
    /usr/bin/env -i HOME=/tmp LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    ${http_proxy:+http_proxy="$http_proxy"} PATH="$MACHINE_PATH" \
    sh -ec "$apt_recover; $APT update; $APT install $(echo $MACHINE_PACKAGES); apt-get clean
      rm -f /usr/sbin/policy-rc.d
      # None that would change the kernel, which is everybody's, or asks for what is not here.
      systemctl mask systemd-sysctl.service systemd-modules-load.service binfmt-support.service \
        nvmf-autoconnect.service xfs_healer_start.service netavark-dhcp-proxy.service
      systemctl mask netavark-dhcp-proxy.socket systemd-logind-varlink.socket e2scrub_reap.service
      systemctl mask systemd-udevd.service systemd-networkd.service systemd-resolved.service \
        systemd-logind.service systemd-timesyncd.service chrony.service lvm2-monitor.service \
        apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer
      systemctl disable ceph.target ceph-mon.target ceph-osd.target || true
      systemctl enable ceph.target ceph-mon.target ceph-mgr.target ceph-osd.target"
  rmdir "$base/root"
  install -D -m 755 "$CHECKOUT/env/machine/podman.sh" "$base/upper/usr/local/bin/podman"
  install -D -m 755 "$CHECKOUT/env/machine/sysctl.sh" "$base/upper/usr/local/sbin/sysctl"
  install -D -m 644 -t "$base/upper/etc/containers" "$CHECKOUT"/env/machine/{containers,storage}.conf
}

setup_machine() {
  setup_rootfs
  step machine "$(hash_of "$(stamp build-deps)" "$MACHINE_PACKAGES" \
    "$(declare -f make_machine_base)" "$(hash_files "$CHECKOUT/env/machine")")" "what a host has more, about 1 minute" make_machine_base
}

run_machine() {
  local action=${1-} name=host disks=()
  [ $# = 0 ] || shift
  while [ $# -gt 0 ]; do
    case $1 in
      --name) name=${2-}; shift 2 ;;
      --disk) disks+=("${2-}"); shift 2 ;;
      --) shift; break ;;
      *) break ;;
    esac
  done
  case $action in exec | shell) ;; *) [ $# = 0 ] || usage_error "machine $action: $*" ;; esac
  case $name in '' | *[!a-z0-9-]*) usage_error "a machine's name is of a-z, 0-9 and -" ;; esac
  case $action in
    start)
      need setup_machine
      need setup_ceph
      machine_start "$name" "${disks[@]}"
      say "machine '$name' is up: ./run machine exec --name $name systemctl status" ;;
    stop) machine_stop "$name" ;;
    kill) machine_kill "$name" ;;
    remove) machine_remove "$name" ;;
    exec) [ $# -gt 0 ] || usage_error "machine exec needs a command"; machine_exec "$name" "$@" ;;
    shell) machine_exec "$name" bash -il ;;
    status) machine_status ;;
    *) usage_error "machine start|stop|kill|remove|exec|shell|status [--name NAME]" ;;
  esac
}

machine_pid() { # NAME
  local pid
  pid=$(cat "$MACHINES/$1/pid" 2>/dev/null) || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = systemd ] && printf '%s' "$pid"
}

# machine_start NAME [SIZE...]: disks of these sizes, if it is new.
machine_start() {
  local name=$1 dir=$MACHINES/$1 disks=() each
  shift
  ! machine_pid "$name" >/dev/null || die "machine '$name' runs already"
  mkdir -p "$dir/srv"
  if [ ! -e "$dir/disks" ]; then
    each=0
    while [ $# -gt 0 ]; do
      truncate -s "$1" "$dir/disk$each.img"
      shift
      each=$((each + 1))
    done
    touch "$dir/disks"
  fi
  machine_attach "$dir"
  mapfile -t disks <"$dir/attached"
  rm -f "$dir/pid"
  # Its own control group: what is started in there can be told from all else.
  setsid unshare -m --propagation private bash -ec '
    dir=$1
    mkdir -p "$dir/cgroup"
    mount -t cgroup2 cgroup2 "$dir/cgroup"
    mkdir -p "$dir/cgroup/tablestore-$2"
    echo $$ >"$dir/cgroup/tablestore-$2/cgroup.procs"
    umount "$dir/cgroup"
    exec unshare --pid --fork --mount --uts --ipc --net --cgroup \
      bash "$0/env/machine/boot.sh" "$@"
  ' "$CHECKOUT" "$dir" "$name" "$MACHINES/base/upper:$ROOTFS" "$CHECKOUT=/tablestore" "$dir/srv=/srv" \
    "$SOURCE=/ceph" "$BUILD=/ceph/build" -- "${disks[@]}" \
    >"$LOGS/machine-$name.log" 2>&1 </dev/null 9>&- &
  disown
  machine_wait "$name"
}

machine_wait() { # NAME
  local until=$((SECONDS + 90))
  while [ "$SECONDS" -lt "$until" ]; do
    sleep 0.5
    machine_pid "$1" >/dev/null || continue
    (machine_exec "$1" systemctl is-active -q basic.target) 2>/dev/null && return
  done
  tail -n 5 "$LOGS/machine-$1.log" >&2
  die "machine '$1' did not come up within 90 s (log: $LOGS/machine-$1.log)"
}

# A kill leaves the disks attached, as a power cut does.
machine_attach() { # DIR
  local image
  [ ! -e "$1/attached" ] || return 0
  : >"$1/attached.new"
  for image in "$1"/disk*.img; do
    [ -e "$image" ] || continue
    losetup --find --show --direct-io=on "$image" >>"$1/attached.new"
  done
  mv "$1/attached.new" "$1/attached"
}

machine_detach() { # DIR
  local disk
  [ -e "$1/attached" ] || return 0
  while read -r disk; do losetup --detach "$disk" || true; done <"$1/attached"
  rm -f "$1/attached"
}

machine_exec() { # NAME CMD...
  local name=$1 pid
  shift
  pid=$(machine_pid "$name") || die "machine '$name' does not run"
  exec nsenter -t "$pid" -m -p -u -i -C -n -r -w -- /usr/bin/env -i HOME=/root TERM="${TERM:-dumb}" \
    LANG=C.UTF-8 LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PATH="$MACHINE_PATH" "$@"
}

machine_stop() { # NAME: in order
  local pid until=$((SECONDS + 60))
  if pid=$(machine_pid "$1"); then
    (machine_exec "$1" systemctl --no-block poweroff) || true
    while machine_pid "$1" >/dev/null && [ "$SECONDS" -lt "$until" ]; do sleep 0.3; done
  fi
  machine_kill "$1"
  machine_detach "$MACHINES/$1"
}

machine_kill() { # NAME: all of its processes at once
  local pid
  if pid=$(machine_pid "$1"); then
    kill -KILL "$pid"
    while [ -e "/proc/$pid" ]; do sleep 0.1; done
  fi
  rm -f "$MACHINES/$1/pid"
}

machine_remove() { # NAME
  local dir=$MACHINES/$1
  machine_kill "$1"
  [ -d "$dir" ] || return 0
  machine_detach "$dir"
  remove_cgroup "$1"
  rm -rf --one-file-system "$dir"
}

remove_cgroup() { # NAME
  unshare -m --propagation private bash -c '
    mkdir -p "$1/cgroup"
    mount -t cgroup2 cgroup2 "$1/cgroup"
    find "$1/cgroup/tablestore-$2" -depth -type d -exec rmdir {} + 2>/dev/null
    umount "$1/cgroup"' remove "$MACHINES/$1" "$1" || true
}

machine_status() {
  local dir name
  for dir in "$MACHINES"/*/; do
    name=${dir%/} name=${name##*/}
    [ "$name" != base ] && [ -d "$dir" ] || continue
    if machine_pid "$name" >/dev/null; then echo "$name: up"; else echo "$name: down"; fi
  done
}
