#!/usr/bin/env bash
# Mounts what a host has, then becomes systemd. Runs as process 1 of new namespaces; $1 is the
# machine's directory, $2 its name, $3 the lower layers, then pairs HOST=INSIDE up to --, then the
# devices that are its disks.
set -euo pipefail
dir=$1 name=$2 lower=$3
shift 3
# The process id outside: /proc is still the one of the namespace that we came from.
read -r pid _ </proc/self/stat
root=$dir/root
mkdir -p "$root" "$dir/upper" "$dir/work"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$dir/upper,workdir=$dir/work" "$root"
while [ "$1" != -- ]; do
  mkdir -p "$root${1#*=}"
  mount --bind "${1%%=*}" "$root${1#*=}"
  shift
done
shift

mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for each in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$root/$each"; done
chmod 1777 "$root/tmp"

mkdir -p "$root"/dev/{pts,shm,mapper} "$root"/run/{udev,lvm}
for each in null zero full random urandom tty loop-control fuse; do
  [ -e "/dev/$each" ] || continue
  touch "$root/dev/$each"
  mount --bind "/dev/$each" "$root/dev/$each"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for each in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${each%:*}" "$root/dev/${each#*:}"; done

# A disk has the name that the kernel knows it by, and the one that an operator expects.
letter=b
for disk; do
  cp -a "$disk" "$root$disk"
  ln -s "${disk#/dev/}" "$root/dev/vd$letter"
  letter=$(tr a-y b-z <<<"$letter")
done

# podman would ask for more than we have to give.
mkdir -p "$root/etc/containers/containers.conf.d"
processes=$(ulimit -Hu)
[ "$processes" != unlimited ] || processes=1048576
printf '[containers]\ndefault_ulimits = ["nofile=%s:%s", "nproc=%s:%s"]\n' \
  "$(ulimit -Hn)" "$(ulimit -Hn)" "$processes" "$processes" \
  >"$root/etc/containers/containers.conf.d/limits.conf"

hostname "$name"
printf '%s\n' "$name" >"$root/etc/hostname"
printf '127.0.0.1 localhost %s\n' "$name" >"$root/etc/hosts"
chroot "$root" ip link set lo up
printf '%s\n' "$pid" >"$dir/pid"
# Not a chroot: who enters a container in here would find himself outside of the machine.
cd "$root"
mkdir -p outside
pivot_root . outside
exec /usr/bin/env -i container=nspawn PATH=/usr/sbin:/usr/bin:/sbin:/bin /bin/sh -ec '
  cd /
  umount -l /outside
  rmdir /outside
  exec /lib/systemd/systemd --system --show-status=no'
