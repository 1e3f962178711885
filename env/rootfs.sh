# The root file system: Debian with Ceph's packages (mon, mgr and clients run
# from these; the OSD is ours) and what is needed to build Ceph. Every step is
# apt's own work and picks up where it was cut short.

CEPH_PACKAGES="ceph-mon ceph-mgr ceph-osd ceph-common ceph-test"
TOOL_PACKAGES="ccache ninja-build cmake rsync python3 gdb strace fio xfsprogs procps
  libgtest-dev libgmock-dev liburing-dev liblz4-dev libsnappy-dev libzstd-dev
  zlib1g-dev libbz2-dev"
APT="apt-get -y -q -o Acquire::Retries=4 -o Dpkg::Use-Pty=0 --no-install-recommends"

# First half of every apt step: whatever an interruption left behind is
# finished. dpkg fails where a dependency is not unpacked yet; apt mends that.
apt_recover="dpkg --configure -a || true; $APT -f install"

make_base() {
  check_tools
  rm -rf --one-file-system "$ROOTFS.new"
  mmdebstrap --variant=buildd \
    --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Retries "4"' \
    "$SUITE" "$ROOTFS.new"
  # No service may start in here: there is no init.
  printf '#!/bin/sh\nexit 101\n' >"$ROOTFS.new/usr/sbin/policy-rc.d"
  chmod 755 "$ROOTFS.new/usr/sbin/policy-rc.d"
  # The sources from where the packages came from, whatever mirror that was.
  sed -n 's/^deb /deb-src /p' "$ROOTFS.new/etc/apt/sources.list" \
    >"$ROOTFS.new/etc/apt/sources.list.d/source.list"
  rm -rf --one-file-system "$ROOTFS"
  mv "$ROOTFS.new" "$ROOTFS"
}

check_tools() {
  ! command -v mmdebstrap >/dev/null || return 0
  command -v apt-get >/dev/null || { echo "MISSING: mmdebstrap"; exit 1; }
  apt-get update -q
  apt-get install -y -q mmdebstrap
}

install_ceph() {
  cp /etc/resolv.conf "$ROOTFS/etc/resolv.conf"
  in_env sh -ec "$apt_recover; $APT update; $APT install $CEPH_PACKAGES"
  in_env sh -ec "dpkg-query -W ceph-osd | grep -F '$CEPH_SERIES.' ||
    { echo 'ceph-osd is not $CEPH_SERIES'; exit 1; }"
}

install_build_deps() {
  in_env sh -ec "$apt_recover; $APT install $(echo $TOOL_PACKAGES); $APT build-dep ceph; apt-get clean"
}

# apt checks the tar's checksum and size, and completes a partial download.
fetch_source() {
  in_env sh -ec "cd /downloads; apt-get -q -o Acquire::Retries=4 -o APT::Sandbox::User=root \
    source --download-only --tar-only ceph; ls ceph_$CEPH_SERIES.*.orig.tar.*"
  local tar
  tar=$(ls -t "$DOWNLOADS"/ceph_"$CEPH_SERIES".*.orig.tar.* | head -1)
  rm -rf "$SOURCE.new"
  mkdir "$SOURCE.new"
  tar --extract --file "$tar" --directory "$SOURCE.new" --strip-components=1
  rm -rf "$SOURCE" "$PRISTINE" "$STAMPS/overlay"
  mkdir -p "$PRISTINE"
  mv "$SOURCE.new" "$SOURCE"
}

setup_rootfs() {
  local base ceph deps
  # A directory that somebody removed takes its stamps along.
  [ -d "$ROOTFS" ] || rm -f "$STAMPS"/{rootfs,packages,build-deps}
  [ -d "$SOURCE/src" ] || rm -f "$STAMPS"/{source,overlay}
  base=$(hash_of base "$SUITE")
  ceph=$(hash_of "$base" "$CEPH_PACKAGES")
  deps=$(hash_of "$ceph" "$TOOL_PACKAGES")
  step rootfs "$base" "Debian $SUITE root file system, about 1 minute" make_base
  step packages "$ceph" "Ceph's packages, about 1 minute" install_ceph
  step build-deps "$deps" "Ceph's build dependencies, about 3 minutes" install_build_deps
  step source "$(hash_of "$base" source)" "Ceph's source, about 1 minute" fetch_source
}

# For the pictures of bench/ and of monitoring/: nothing else here wants it.
install_matplotlib() {
  in_env sh -ec "$apt_recover; $APT update; $APT install python3-matplotlib; apt-get clean"
}

setup_matplotlib() {
  step matplotlib "$(hash_of "$(stamp build-deps)" matplotlib)" "matplotlib, about a minute" install_matplotlib
}
