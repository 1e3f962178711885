# ./run test cephadm: an OSD in a container that cephadm manages, in a machine. Uses the words of
# deploy.sh.

suite_cephadm() {
  local log=$LOGS/test-cephadm.log
  [ $# = 0 ] || usage_error "test cephadm takes no arguments: $*"
  need setup_machine
  make_packages "$PACKAGES"
  make_test_image
  make_build_context
  say "[cephadm] (log: $log)"
  in_a_machine cephadm-test cephadm_steps 2>&1 | tee "$log" || true
  count_steps cephadm "$log"
}

# The image that users get, made anew when what is in it has changed.
TEST_IMAGE=$MACHINES/image.tar
make_test_image() {
  local key
  key=$(hash_of "$(hash_files "$PACKAGES" "$CHECKOUT/packaging/image-packages" \
    "$CHECKOUT/packaging/image.py")")
  [ ! -e "$TEST_IMAGE" ] || [ "$(stamp test-image)" != "$key" ] || return 0
  make_image "$PACKAGES" "$TEST_IMAGE"
  printf '%s\n' "$key" >"$STAMPS/test-image"
}

# What `podman build` is given where there is no network: packaging/ with our packages, Debian's in an
# archive beside them, and a Debian that takes packages from there.
BUILD_CONTEXT=$STATE/build-context
BUILD_ARCHIVE=/packaging/archive   # where the Containerfile sees it
make_build_context() {
  local key log=$LOGS/containerfile.log packages
  key=$(hash_of "$(hash_files "$PACKAGES" "$CHECKOUT/packaging/image-packages" \
    "$CHECKOUT/packaging/Containerfile" "$CHECKOUT/env/verbs/cephadm.sh")")
  [ ! -d "$BUILD_CONTEXT" ] || [ "$(stamp build-context)" != "$key" ] || return 0
  rm -rf "$BUILD_CONTEXT" "$STAMPS/build-context"
  mkdir -p "$BUILD_CONTEXT"/{debs,archive}
  cp "$CHECKOUT/packaging"/{Containerfile,image-packages} "$BUILD_CONTEXT"
  cp "$PACKAGES"/*.deb "$BUILD_CONTEXT/debs"
  packages=$(paste -sd' ' "$CHECKOUT/packaging/image-packages")
  say "[cephadm] what the Containerfile needs, about 1 minute (log: $log)"
  mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
    --aptopt='Acquire::Retries "4"' \
    --customize-hook="copy-in $BUILD_CONTEXT/debs /tmp" \
    --customize-hook="chroot \"\$1\" sh -c \
      'apt-get -y --no-install-recommends --download-only install $packages /tmp/debs/*.deb'" \
    --customize-hook="cp \"\$1\"/var/cache/apt/archives/*.deb $BUILD_CONTEXT/archive" \
    --customize-hook="rm -r \"\$1/tmp/debs\" \"\$1\"/etc/apt/sources.list*" \
    --customize-hook="echo 'deb [trusted=yes] file:$BUILD_ARCHIVE ./' >\"\$1/etc/apt/sources.list\"" \
    "$SUITE" "$BUILD_CONTEXT/base.tar" </dev/null >"$log" 2>&1 &&
    in_env sh -c 'cd "$1" && apt-ftparchive packages . >Packages' sh \
      /state/build-context/archive >>"$log" 2>&1 ||
    { tail -n 5 "$log" >&2; die "there is nothing to build an image of (full log: $log)"; }
  printf '%s\n' "$key" >"$STAMPS/build-context"
}

# The base is imported beside it; the labels are those of the image that has been loaded.
build_by_containerfile() {
  cp -r "$BUILD_CONTEXT" "$MACHINES/$DEPLOY/srv/context"
  on_host podman import -q /srv/context/base.tar localhost/base && quietly rm /srv/context/base.tar &&
    on_host "podman build --build-arg BASE=localhost/base --build-arg RELEASE=$(release_of_checkout) \
      -t localhost/built -f /srv/context/Containerfile /srv/context >/srv/build.log 2>&1 ||
      { tail -n 60 /srv/build.log; false; }" &&
    quietly "bash $DEPLOY_ROOM/same_image.sh localhost/built localhost/one"
}

load_images() {
  cp "$TEST_IMAGE" "$MACHINES/$DEPLOY/srv/image.tar"
  quietly "bash $DEPLOY_ROOM/images.sh /srv/image.tar && rm /srv/image.tar"
}

cephadm_steps() {
  step_is a_fresh_host_starts machine_start "$DEPLOY" 6G 6G
  step_is a_monitor_and_a_manager_start start_monitor
  step_is images_are_loaded load_images
  step_is pools_need_one_osd pools_of_one
  step_is cephadm_deploys_an_osd_at_the_first_try first_by_cephadm
  step_is objects_are_written write_objects 500
  step_is the_osd_comes_back_when_its_unit_is_restarted restart_by_cephadm
  step_is after_a_power_cut_the_osd_comes_back boot_with_cephadm
  step_is every_object_is_as_written compare_filled
  step_is another_image_takes_over deploy_by_cephadm two
  step_is every_object_is_as_written_in_the_new_image compare_filled
  step_is rm_daemon_leaves_the_data remove_by_cephadm
  step_is rm_daemon_that_shall_delete_leaves_it_too remove_by_cephadm --force-delete-data
  step_is every_object_is_as_written_after_all compare_filled
  step_is podman_builds_an_image_by_the_containerfile build_by_containerfile
  step_is the_image_that_podman_built_takes_over deploy_by_cephadm built
  step_is every_object_is_as_written_in_that_image compare_filled
  step_is a_keyring_that_is_there_is_the_trap_that_we_say trap_of_cephadm
  step_is the_patch_for_cephadm_mends_it mended_cephadm
  step_is rm_daemon_of_a_mount_point_is_the_trap_that_we_say trap_of_mount_point
  step_is the_patch_for_rm_daemon_mends_it mended_rm_daemon
  printf 'deploy: complete\n'
}

pools_of_one() {
  quietly 'ceph config set global osd_pool_default_size 1 &&
    ceph config set global mon_allow_pool_size_one true &&
    ceph config set mgr mgr/devicehealth/enable_monitoring false &&
    sed -i "/osd pool default .*size/d" /etc/ceph/ceph.conf && systemctl restart ceph-mon@$(hostname)'
}

first_by_cephadm() {
  on_host mkfs.xfs -q /dev/vdb && mount_by_unit /dev/vdb /srv/osd && deploy_by_cephadm one
}

deploy_by_cephadm() { # IMAGE
  on_host bash "$DEPLOY_ROOM/cephadm_osd.sh" "localhost/$1" /srv/osd && are_up 1 &&
    on_host podman ps --format '"{{.Names}} {{.Image}}"' && quietly "podman ps | grep -q localhost/$1"
}

are_up() { # COUNT
  wait_for 120 "$1 OSDs" "ceph osd stat -f json | jq -e '.num_up_osds == $1' &&
    timeout 10 ceph tell 'osd.*' version"
}

restart_by_cephadm() {
  on_host 'systemctl restart "ceph-$(ceph fsid)@osd.0"' && are_up 1
}

boot_with_cephadm() {
  printf '(the power is cut, and the host boots)\n'
  machine_kill "$DEPLOY"
  machine_start "$DEPLOY" && are_up 1
}

compare_filled() { wait_clean && quietly "python3 $DEPLOY_ROOM/objects.py check data 500"; }

remove_by_cephadm() { # OPTIONS
  on_host "cephadm rm-daemon --fsid \$(ceph fsid) --name osd.0 --force $*" &&
    quietly '[ "$(cat /srv/osd/type)" = tablestore ] && ! podman ps | grep -q osd' &&
    deploy_by_cephadm two
}

# As an OSD has it that was prepared without --cephadm. The first deploy writes the right one, and
# fails; so each try begins with the wrong one.
WRONG_KEYRING='sed -i /caps/d /srv/osd/keyring'
trap_of_cephadm() {
  refused "$WRONG_KEYRING && bash $DEPLOY_ROOM/cephadm_osd.sh localhost/two /srv/osd" \
    'Failed to find lv path' && deploy_by_cephadm two
}

mended_cephadm() {
  quietly "bash $DEPLOY_ROOM/mended_cephadm.sh /srv/mended && $WRONG_KEYRING" &&
    on_host "PATH=/srv/mended:\$PATH bash $DEPLOY_ROOM/cephadm_osd.sh localhost/two /srv/osd" &&
    are_up 1
}

# The OSD's file system where cephadm looks for it, and no link.
RM_DAEMON='cephadm rm-daemon --fsid $(ceph fsid) --name osd.1 --force'
trap_of_mount_point() {
  on_host 'place=/var/lib/ceph/$(ceph fsid)/osd.1; mkdir $place && mkfs.xfs -q /dev/vdc &&
    mount /dev/vdc $place' && deploy_at_mount_point && refused "$RM_DAEMON" 'busy'
}

deploy_at_mount_point() {
  on_host "bash $DEPLOY_ROOM/cephadm_osd.sh localhost/two /var/lib/ceph/\$(ceph fsid)/osd.1" && are_up 2
}

mended_rm_daemon() {
  on_host "PATH=/srv/mended:\$PATH; $RM_DAEMON" &&
    quietly '[ "$(cat /var/lib/ceph/$(ceph fsid)/osd.1/type)" = tablestore ]' && deploy_at_mount_point
}
