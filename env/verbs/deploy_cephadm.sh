# ./run test cephadm: an OSD in a container that cephadm manages, in a machine. Uses the words of
# deploy.sh.

suite_cephadm() {
  local log=$LOGS/test-cephadm.log
  [ $# = 0 ] || usage_error "test cephadm takes no arguments: $*"
  need setup_base_image
  make_packages "$PACKAGES"
  say "[cephadm] (log: $log)"
  in_a_machine cephadm-test cephadm_steps 2>&1 | tee "$log" || true
  count_steps cephadm "$log"
}

cephadm_steps() {
  step_is a_fresh_host_starts machine_start "$DEPLOY" 6G
  step_is a_monitor_and_a_manager_start start_monitor
  step_is images_are_made make_images
  step_is a_file_system_is_mounted mount_for_cephadm
  step_is cephadm_deploys_an_osd_at_the_first_try deploy_by_cephadm one
  step_is objects_are_written write_objects 500
  step_is the_osd_comes_back_when_restarted restart_by_cephadm
  step_is after_a_power_cut_the_osd_comes_back boot_with_cephadm
  step_is every_object_is_as_written compare_filled
  step_is another_image_takes_over deploy_by_cephadm two
  step_is every_object_is_as_written_in_the_new_image compare_filled
  step_is rm_daemon_leaves_the_data remove_by_cephadm
  step_is the_osd_can_be_deployed_again deploy_by_cephadm two
  step_is every_object_is_as_written_after_all compare_filled
  printf 'deploy: complete\n'
}

make_images() {
  cp "$MACHINES/image.tar" "$MACHINES/$DEPLOY/srv/image.tar"
  install_packages && quietly "bash $DEPLOY_ROOM/image.sh one &&
    bash $DEPLOY_ROOM/image.sh two && rm /srv/image.tar" && purge_packages &&
    quietly 'printf "[global]\nosd pool default size = 1\nmon allow pool size one = true\n" >/run/one &&
      ceph config assimilate-conf -i /run/one && ceph config set mgr mgr/devicehealth/enable_monitoring false'
}

mount_for_cephadm() {
  on_host mkfs.xfs -q /dev/vdb && mount_by_unit /dev/vdb /srv/osd
}

deploy_by_cephadm() { # IMAGE
  on_host bash "$DEPLOY_ROOM/cephadm_osd.sh" "localhost/$1" /srv/osd && one_osd_is_up &&
    on_host podman ps --format '"{{.Names}} {{.Image}}"' && quietly "podman ps | grep -q localhost/$1"
}

one_osd_is_up() {
  wait_for 90 'the OSD' "ceph osd stat -f json | jq -e '.num_up_osds == 1' &&
    timeout 10 ceph tell osd.0 version"
}

restart_by_cephadm() {
  on_host 'systemctl restart "ceph-$(ceph fsid)@osd.0"' && one_osd_is_up
}

boot_with_cephadm() {
  printf '(the power is cut, and the host boots)\n'
  machine_kill "$DEPLOY"
  machine_start "$DEPLOY" && one_osd_is_up
}

compare_filled() { wait_clean && quietly "python3 $DEPLOY_ROOM/objects.py check data 500"; }

remove_by_cephadm() {
  on_host 'cephadm rm-daemon --fsid $(ceph fsid) --name osd.0 --force --force-delete-data' &&
    quietly '[ "$(cat /srv/osd/type)" = tablestore ] && ! podman ps | grep -q osd'
}
