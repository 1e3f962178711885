# ./run package: Debian packages of what is built, an apt repository of them, an image; and their
# tests. What makes and tests them is in packaging/.

PACKAGE_TOOLS="debhelper dh-python dpkg-dev lintian devscripts apt-utils"
PACKAGES=$STATE/packages   # /state/packages inside

package_usage() {
  cat <<END
Usage: ./run package [--out DIR] [--repo DIR --key KEY] [--image FILE]

Makes Debian packages of what is built: in $PACKAGES, or in DIR.

  --out DIR      copies them to DIR
  --repo DIR     adds them to an apt repository in DIR (made where there is none)
  --key KEY      the key in your gpg that signs the repository
  --image FILE   a container image with them as an archive, for 'podman load'; takes
                 Debian's packages from its servers. packaging/Containerfile makes the
                 same with podman
END
}

run_package() {
  local out='' repository='' key='' image=''
  while [ $# -gt 0 ]; do
    case $1 in
      --out) out=${2-} ;;
      --repo) repository=${2-} ;;
      --key) key=${2-} ;;
      --image) image=${2-} ;;
      --help | -h) package_usage; return ;;
      *) usage_error "package does not know '$1'; './run package --help' lists what it does" ;;
    esac
    [ -n "${2-}" ] || usage_error "$1 needs a value"
    shift 2
  done
  [ -z "$repository" ] || [ -n "$key" ] ||
    usage_error "--repo needs --key: apt takes no repository that is not signed"
  [ -z "$key" ] || check_key "$key"
  make_packages "$PACKAGES"
  [ -z "$out" ] || { mkdir -p "$out" && cp "$PACKAGES"/*.deb "$out"; }
  [ -z "$repository" ] || make_repository "$PACKAGES" "$repository" "$key"
  [ -z "$image" ] || make_image "$PACKAGES" "$image"
  say "packages: ${out:-$PACKAGES}${repository:+, repository: $repository}${image:+, image: $image}"
}

install_package_tools() { in_env sh -ec "$apt_recover; $APT update; $APT install $PACKAGE_TOOLS"; }

setup_package_tools() {
  setup_ceph
  step package-tools "$(hash_of "$(stamp build-deps)" "$PACKAGE_TOOLS")" \
    "tools for packages, about 1 minute" install_package_tools
}

release_of_checkout() {
  sed -nE 's/^#define TABLESTORE_RELEASE_M(AJ|IN)OR ([0-9]+)$/\2/p' \
    "$CHECKOUT/src/os/tablestore/engine/format/release.h" | paste -sd.
}

# Sets `commit`, `epoch` (seconds) and `snapshot`: what the version of a build that is no release
# ends with, so that apt sorts builds by their commits' times, and a release between them. Short:
# a file name has at most 80 characters. An x: with changes that are not committed.
find_commit() {
  local git=(git -c safe.directory="$CHECKOUT" -C "$CHECKOUT") release
  commit='' snapshot=''
  epoch=$("${git[@]}" log -1 --format=%ct 2>/dev/null) ||
    { epoch=$(stat -c %Y "$CHECKOUT/CHANGELOG.md"); return 0; }
  release=$(release_of_checkout)
  commit=$(checkout_state)
  [ "$("${git[@]}" tag --points-at HEAD --list "v$release")" != "v$release" ] || return 0
  snapshot="~"
  ! "${git[@]}" merge-base --is-ancestor "v$release" HEAD 2>/dev/null || snapshot="+"
  snapshot+=$(date -u -d "@$epoch" +%Y%m%d%H%M%S).${commit:0:6}
  case $commit in *-dirty) snapshot+=x ;; esac
}

make_packages() { # DIRECTORY below $STATE
  local log=$LOGS/package.log began=$SECONDS commit epoch snapshot
  need setup_package_tools
  find_commit
  if ! in_env python3 -B /tablestore/packaging/packages.py --out "/state/${1#"$STATE"/}" \
      --epoch "$epoch" --commit "$commit" --snapshot "$snapshot" </dev/null >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    die "the packages cannot be made (full log: $log)"
  fi
  say "[package] made in $(elapsed $((SECONDS - began))) (log: $log)"
  grep -E '^[a-z-]+_.*\.deb \(' "$log" | sed 's/^/  /' >&2
}

check_key() { # KEY
  command -v gpg >/dev/null || die "install gnupg on this machine: it signs the repository"
  gpg --list-secret-keys "$1" >/dev/null 2>&1 ||
    die "gpg has no secret key '$1': gpg --list-secret-keys says which there are"
}

# Signed here and not inside, where your gpg's agent cannot be reached.
make_repository() { # PACKAGES REPOSITORY KEY
  local root commit epoch snapshot
  mkdir -p "$2" || die "cannot make the directory $2"
  root=$(cd "$2" && pwd)
  find_commit
  EXTRA_BINDS+=("$root=$root")
  in_env python3 -B /tablestore/packaging/repository.py "$root" "/state/${1#"$STATE"/}" \
    --epoch "$epoch"
  (
    cd "$root/dists/forky"
    gpg --yes --quiet --local-user "$3" --armor --detach-sign --output Release.gpg Release
    gpg --yes --quiet --local-user "$3" --clearsign --output InRelease Release
    gpg --yes --quiet --armor --export "$3" >"$root/tablestore.asc"
  ) || die "gpg did not sign $root"
}

# The packages on fresh hosts. --quick is a part of `./run test`; --older DIR has packages of an
# older commit, which are upgraded with data; without, the same programs get a lower version.
# --image makes an image and tests that alone: it takes minutes, and Debian's servers. --rebuild
# compiles all that is ours a second time and does nothing else; without, a part of it is.
suite_package() {
  local arguments=() quick='' older='' image=''
  local new=$STATE/package-test/new again=$STATE/package-test/again
  while [ $# -gt 0 ]; do
    case $1 in
      --quick) quick=1; arguments+=(--quick) ;;
      --image) image=$STATE/package-test/image.tar ;;
      --rebuild)
        suite_of_clusters package-rebuild packaging/tests/rebuild.py --all --jobs "$JOBS" \
          --seed "$(checkout_state)"
        return ;;
      --only) arguments+=(--only "${2-}"); shift ;;
      --older)
        older=$(cd "${2-}" && pwd) || die "--older needs a directory with packages"
        EXTRA_BINDS+=("$older=/older"); arguments+=(--older /older); shift ;;
      *) usage_error "test package takes --quick, --image, --rebuild, --older DIR and --only NAME" ;;
    esac
    shift
  done
  rm -rf "$STATE/package-test"
  make_packages "$new"
  if [ "$image" ]; then
    make_image "$new" "$image"
    suite_of_clusters package-image packaging/tests/image_test.py /state/package-test/image.tar \
      "$(release_of_checkout)"
    rm -rf "$STATE/package-test"
    return
  fi
  if [ -z "$quick" ]; then
    make_packages "$again"
    make_test_repository "$new"
    arguments+=(--again /state/package-test/again --repository /state/package-test/repository)
    suite_of_clusters package-rebuild packaging/tests/rebuild.py --jobs "$JOBS" \
      --seed "$(checkout_state)"
  fi
  suite_of_clusters package packaging/tests/package_test.py \
    --debs /state/package-test/new "${arguments[@]}"
  rm -rf "$STATE/package-test"
}

# Signed with a key that is made for it.
make_test_repository() { # PACKAGES
  local GNUPGHOME=/tmp/tablestore-gpg.$$
  export GNUPGHOME
  mkdir -m 700 "$GNUPGHOME"
  gpg --batch --quiet --passphrase '' --quick-generate-key 'Throwaway <nobody@tablestore.test>' \
    ed25519 sign never 2>>"$LOGS/package.log"
  (make_repository "$1" "$STATE/package-test/repository" nobody@tablestore.test)
  gpgconf --kill all
  rm -rf "$GNUPGHOME"
}

# An image of a root file system that has nothing but what its packages depend on: that these say
# all that they need is seen here.
make_image() { # PACKAGES FILE
  local work=$STATE/image log=$LOGS/package-image.log commit epoch snapshot packages
  find_commit
  rm -rf --one-file-system "$work"
  mkdir -p "$work/debs"
  cp $(ls "$1"/*.deb | grep -v -e -dbgsym_) "$work/debs"
  packages=$(paste -sd, "$CHECKOUT/packaging/image-packages")
  say "[package] an image, about 3 minutes (log: $log)"
  (
    check_tools
    SOURCE_DATE_EPOCH=$epoch mmdebstrap --variant=minbase --include="$packages" \
      --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Retries "4"' \
      --skip=cleanup/run \
      --dpkgopt='path-exclude=/usr/share/doc/*' \
      --dpkgopt='path-include=/usr/share/doc/*/copyright' \
      --customize-hook="copy-in $work/debs /tmp" \
      --customize-hook='chroot "$1" sh -c \
        "apt-get -y --no-install-recommends install /tmp/debs/*.deb"' \
      --customize-hook='rm -r "$1/tmp/debs"' \
      --customize-hook='chroot "$1" install -d -o ceph -g ceph -m 770 /var/run/ceph' \
      "$SUITE" "$work/root.tar"
    in_env python3 -B /tablestore/packaging/image.py /state/image/root.tar /state/image/oci.tar \
      --release "$(release_of_checkout)" --ceph-release "$CEPH_SERIES" --epoch "$epoch" \
      --commit "$commit"
  ) </dev/null >"$log" 2>&1 ||
    { tail -n 5 "$log" >&2; die "the image cannot be made (full log: $log)"; }
  cp "$work/oci.tar" "$2" || die "cannot write $2"
  rm -rf --one-file-system "$work"
}
