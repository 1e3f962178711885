# ./run test deploy: from nothing to OSDs on a fresh host with systemd, a power cut, a boot, and back
# to nothing. What it prints is what an operator types and sees; --quick is what CI runs.

DEPLOY=                       # the machine
DEPLOY_ROOM=/tablestore/qa/deploy

suite_deploy() {
  local log=$LOGS/test-deploy.log objects=10000 quick=
  [ "${1-}" != --quick ] || { objects=500; quick=1; shift; }
  [ $# = 0 ] || usage_error "test deploy takes --quick: $*"
  need setup_machine
  make_packages "$PACKAGES"
  say "[deploy] (log: $log)"
  in_a_machine deploy-test deploy_steps "$objects" "$quick" 2>&1 | tee "$log" || true
  count_steps deploy "$log"
}

# in_a_machine NAME STEPS ARGS...: a fresh one, which ends with the steps. One shell, so that ^C
# ends the machine too.
in_a_machine() {
  local steps=$2
  DEPLOY=$1
  shift 2
  machine_remove "$DEPLOY"
  (trap 'machine_remove "$DEPLOY"' EXIT
    trap 'exit 130' INT TERM
    "$steps" "$@")
}

count_steps() { # NAME LOG
  local status=1
  ! grep -q '^deploy: complete$' "$2" || status=0
  add_counts "$1" "$status" "$(grep -cE '^ok ' "$2")" "$(grep -cE '^FAIL ' "$2")" 0
}

# The plugin of ceph-volume by itself: a real monitor, real directories and loop devices.
suite_ceph_volume() {
  local log=$LOGS/test-ceph-volume.log status=0
  need setup_ceph
  say "[ceph-volume] (log: $log)"
  scratch=$STATE/ceph-volume.$BASHPID
  mkdir -p "$scratch"
  in_env bash -ec 'mount -t tmpfs -o mode=755 tmpfs /etc/ceph; mount -t tmpfs -o mode=755 tmpfs /var/lib/ceph
    export TABLESTORE_TEST_DIR=$1; cd /tablestore/src/ceph-volume/plugin/tablestore/tests; shift
    exec pytest -q -p no:cacheprovider "$@"' pytest "/state/${scratch##*/}" "$@" \
    </dev/null 2>&1 | tee "$log" || status=$?
  remove_scratch
  add_counts ceph-volume "$status" $(pytest_counts "$log")
}

# "3 failed, 12 passed, 1 skipped in 4.2s": passed, failed and skipped.
pytest_counts() { # LOG
  local word
  for word in passed failed skipped; do
    tail -n 1 "$1" | grep -oE "[0-9]+ $word" | grep -oE '[0-9]+' || echo 0
  done
}

# What is typed on the host, and what it says. A command that hangs leaves its programs to be looked at.
STEP_SECONDS=300
on_host() {
  printf '# %s\n' "$*"
  quietly "$@"
}
quietly() {
  (machine_exec "$DEPLOY" timeout --foreground "$STEP_SECONDS" bash -c "$*") 2>&1 </dev/null
}

# step_is NAME COMMAND...: one test. After a failure the others make no sense.
step_is() {
  local name=$1 began=$SECONDS
  shift
  printf '\n'
  if "$@"; then
    printf 'ok   %s (%s)\n' "$name" "$(elapsed $((SECONDS - began)))"
  else
    printf 'FAIL %s\n' "$name"
    quietly 'for pid in $(pgrep -x -a ceph-osd | sed -n "s/ .*--mkfs.*//p"); do
      timeout 60 gdb -p $pid -batch -ex "thread apply all bt"
    done'
    quietly 'systemctl --failed --no-legend --no-pager;
      journalctl -b --no-pager -p warning | grep -v KillMode= | tail -n 30'
    exit 1
  fi
}

deploy_steps() { # OBJECTS QUICK
  step_is a_fresh_host_starts machine_start "$DEPLOY" 6G 6G 6G 6G
  step_is packages_install install_packages
  step_is a_monitor_and_a_manager_start start_monitor
  step_is a_bluestore_osd_is_made make_bluestore
  step_is one_line_makes_an_osd_on_a_device on_host ceph-volume tablestore create --data /dev/vdc
  step_is one_line_makes_an_osd_in_a_directory make_in_directory
  step_is all_osds_are_up_side_by_side osds_are_up 3
  step_is what_would_lose_data_is_refused refusals
  step_is objects_are_written write_objects "$1"
  step_is after_a_power_cut_all_osds_come_back kill_and_boot
  step_is every_object_is_as_written compare "$1"
  step_is a_deactivated_osd_stays_down_and_comes_back deactivate_and_activate
  if [ -z "$2" ]; then
    step_is a_zapped_osd_is_made_again_with_its_number zap_and_make_again
    step_is every_object_is_as_written_after_backfill compare "$1"
    step_is a_bluestore_osd_becomes_one_of_tablestore from_bluestore
    step_is every_object_is_as_written_on_tablestore_alone compare "$1"
  fi
  step_is all_osds_are_taken_away take_away
  step_is packages_leave_the_host_as_it_was purge_packages
  printf 'deploy: complete\n'
}

# Those of `make_packages`, without debug symbols.
install_packages() {
  local packages=$MACHINES/$DEPLOY/srv/packages
  mkdir -p "$packages"
  cp $(ls "$PACKAGES"/*.deb | grep -v -e -dbgsym_) "$packages"
  on_host 'DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    /srv/packages/*.deb' | grep -v '^(Reading database' && on_host ceph-osd --version
}

# What was packaged must then be as it was.
purge_packages() {
  on_host apt-get purge -y -qq ceph-osd-tablestore ceph-volume-tablestore |
    grep -v '^(Reading database' &&
    quietly '[ ! -e /usr/lib/ceph-tablestore ] && [ ! -e /usr/lib/python3/dist-packages/ceph_volume_tablestore ] &&
      [ -z "$(dpkg-divert --list "*tablestore*")" ] &&
      ! dpkg -V ceph-osd ceph-base ceph-volume | grep -v "^missing\|^........ c "'
}

start_monitor() {
  quietly "bash $DEPLOY_ROOM/mon_and_mgr.sh" && wait_for 60 'the manager' 'ceph mgr stat | grep -q active_name.*[a-z]' &&
    on_host ceph --version
}

make_bluestore() {
  on_host ceph-volume raw prepare --bluestore --data /dev/vdb >/dev/null && start_bluestore
}

# `raw` has no unit that does this at boot, and `lvm` needs a kernel with device-mapper.
start_bluestore() {
  on_host ceph-volume raw activate --device /dev/vdb >/dev/null && on_host systemctl start ceph-osd@0
}

# In a container systemd leaves /etc/fstab alone.
mount_by_unit() { # DEVICE POINT
  local unit
  unit=$(tr / - <<<"${2#/}").mount
  quietly "printf '[Mount]\nWhat=%s\nWhere=%s\n[Install]\nWantedBy=local-fs.target\n' $1 $2 \
    >/etc/systemd/system/$unit" && on_host systemctl enable --now "$unit"
}

make_in_directory() {
  on_host mkfs.ext4 -q /dev/vdd && mount_by_unit /dev/vdd /srv/data && on_host mkdir /srv/data/osd &&
    on_host ceph-volume tablestore create --data /srv/data/osd --capacity 5G \
      --crush-device-class ssd
}

# Asked for themselves: after a power cut the monitor does not know yet who is gone.
osds_are_up() { # COUNT
  wait_for 90 "$1 OSDs" "ceph osd stat -f json | jq -e '.num_up_osds == $1' &&
    timeout 10 ceph tell 'osd.*' version" && wait_for 30 'their sizes' \
    "ceph osd df -f json | jq -e '[.nodes[] | select(.kb == 0)] == []'" &&
    on_host ceph osd tree && on_host ceph-volume tablestore list && on_host ceph osd df
}

refused() { # COMMAND WORDS: it fails, and says so
  local said
  said=$(quietly "$1") && { printf '# %s\n%s\nwas not refused\n' "$1" "$said"; return 1; }
  printf '# %s\n%s\n' "$1" "$said"
  grep -q "$2" <<<"$said"
}

refusals() {
  refused 'ceph-volume tablestore create --data /dev/vdb' 'is not blank\|is in use' &&
    refused 'ceph-volume tablestore create --data /srv/data' 'is not empty' &&
    refused 'ceph-volume tablestore zap /dev/vdc' 'runs' &&
    refused 'ceph-volume tablestore create --data /tmp' 'tmpfs' &&
    refused 'mkdir /opt/osd && ceph-volume tablestore create --data /opt/osd' 'overlay' &&
    on_host ceph-volume tablestore create --data /dev/vdc 2>&1 | tail -n 2
}

write_objects() { # COUNT
  quietly 'for pool in data churned; do
      ceph osd pool create $pool 8 && ceph osd pool application enable $pool test || exit 1
    done' &&
    wait_clean && quietly "python3 $DEPLOY_ROOM/objects.py fill data $1"
}

wait_clean() {
  wait_for 180 'all placement groups to be clean' \
    'ceph pg stat -f json | jq -e "[.pg_summary.num_pg_by_state[] | select(.name != \"active+clean\")] == []"'
}
wait_for() { quietly "bash $DEPLOY_ROOM/wait.sh $1 '$2' bash -c '$(sed "s/'/'\\\\''/g" <<<"$3")'"; }

# In the midst of writes; then the boot does all but what BlueStore's `raw` leaves to the operator.
kill_and_boot() {
  quietly "systemd-run --quiet python3 $DEPLOY_ROOM/objects.py churn churned" || return 1
  quietly "bash $DEPLOY_ROOM/wait.sh 60 'some writes' bash -c \
    '[ \$(grep -c ^a /srv/notes/writer.churned.1.log) -ge 300 ]'" || return 1
  printf '(the power is cut, and the host boots)\n'
  machine_kill "$DEPLOY"
  machine_start "$DEPLOY" && start_bluestore && osds_are_up 3 && wait_clean &&
    on_host findmnt /var/lib/ceph/osd/ceph-1
}

compare() { # COUNT
  quietly "python3 $DEPLOY_ROOM/objects.py check data $1" &&
    quietly "python3 $DEPLOY_ROOM/objects.py recheck churned"
}

deactivate_and_activate() {
  on_host ceph-volume tablestore deactivate 1 >/dev/null &&
    quietly '! mountpoint -q /var/lib/ceph/osd/ceph-1 && ! systemctl is-active -q ceph-osd@1' &&
    on_host ceph-volume tablestore activate --all && osds_are_up 3 >/dev/null && wait_clean
}

zap_and_make_again() {
  on_host ceph-volume tablestore deactivate 2 >/dev/null &&
    on_host ceph osd destroy 2 --yes-i-really-mean-it &&
    on_host ceph-volume tablestore zap --osd-id 2 &&
    on_host ceph-volume tablestore create --data /srv/data/osd --capacity 5G --osd-id 2 &&
    osds_are_up 3 && wait_for 60 'groups on osd.2' \
      "ceph osd df -f json | jq -e '[.nodes[] | select(.pgs == 0)] == []'" && wait_clean
}

from_bluestore() {
  on_host systemctl stop ceph-osd@0 && on_host mkfs.xfs -q /dev/vde &&
    mount_by_unit /dev/vde /srv/second && on_host mkdir /srv/second/osd &&
    on_host bash "$DEPLOY_ROOM/dup.sh" 0 /srv/second/osd && osds_are_up 3 >/dev/null && wait_clean &&
    quietly 'ceph osd metadata 0 | grep -q tablestore' && scrub_finds_nothing
}

# All replicas are read and compared.
scrub_finds_nothing() {
  quietly "python3 $DEPLOY_ROOM/scrub.py"
}

take_away() {
  quietly 'for pool in data churned; do
      ceph osd pool rm $pool $pool --yes-i-really-really-mean-it || exit 1
    done' &&
    on_host 'for osd in $(ceph-volume tablestore list --format json | jq -r "keys[]"); do
      ceph-volume tablestore deactivate $osd && ceph osd purge $osd --yes-i-really-mean-it || exit 1
    done' >/dev/null && on_host ceph-volume tablestore zap /dev/vdc &&
    on_host ceph-volume tablestore zap --destroy /srv/data/osd &&
    quietly '[ ! -e /srv/second ] || ceph-volume tablestore zap /srv/second/osd' &&
    on_host ceph-volume tablestore list &&
    quietly '[ -z "$(blkid -p -s TYPE -o value /dev/vdc)" ] && [ ! -e /srv/data/osd ] &&
      [ -z "$(ls /run/systemd/system | grep ceph-osd@)" ] &&
      [ -z "$(ls /etc/systemd/system/multi-user.target.wants | grep ceph-volume@)" ]'
}
