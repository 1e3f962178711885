# ./run test kubernetes: packaging/kubernetes against Kubernetes' schemas, and its pods under podman
# in a machine, with the users, capabilities and probes that they have in a cluster. --quick: the
# schemas alone. Uses the words of deploy.sh and cephadm.sh.

KUBERNETES_PACKAGES="kustomize python3-jsonschema python3-packaging python3-referencing
  python3-typing-extensions"
KUBERNETES_SCHEMAS=kubernetes-validate==1.37.0   # on PyPI
PODS=/tablestore/qa/kubernetes

suite_kubernetes() {
  local log=$LOGS/test-kubernetes.log
  case $* in '' | --quick) ;; *) usage_error "test kubernetes takes --quick alone: $*" ;; esac
  need setup_kubernetes
  in_env kustomize build /tablestore/packaging/kubernetes >"$STATE/manifests.yaml"
  suite_of_clusters kubernetes-schemas qa/kubernetes/manifests.py /state/manifests.yaml
  [ "${1-}" != --quick ] || { rm -f "$STATE/manifests.yaml"; return 0; }
  make_packages "$PACKAGES"
  make_test_image
  say "[kubernetes] (log: $log)"
  in_a_machine kubernetes-test kubernetes_steps 2>&1 | tee "$log" || true
  count_steps kubernetes "$log"
  rm -f "$STATE/manifests.yaml"
}

# ./run test containers: all that runs an OSD in one.
suite_containers() {
  case $* in '' | --quick) ;; *) usage_error "test containers takes --quick alone: $*" ;; esac
  [ "${1-}" = --quick ] || suite_cephadm
  suite_kubernetes "$@"
}

setup_kubernetes() {
  setup_machine
  setup_ceph
  step kubernetes "$(hash_of "$(stamp build-deps)" "$KUBERNETES_PACKAGES" "$KUBERNETES_SCHEMAS")" \
    "Kubernetes' schemas, about 30 seconds" install_schemas
}

install_schemas() {
  local to=$DOWNLOADS/kubernetes-validate
  in_env sh -ec "$apt_recover; $APT update; $APT install $(echo $KUBERNETES_PACKAGES); apt-get clean"
  python3 -m pip --version >/dev/null || { echo "MISSING: python3-pip"; exit 1; }
  rm -rf "$to"
  python3 -m pip download -q --no-deps -d "$to" "$KUBERNETES_SCHEMAS"
  (cd "$to" && python3 -m zipfile -e ./*.whl . && rm ./*.whl)
}

kubernetes_steps() {
  step_is a_fresh_host_starts machine_start "$DEPLOY" 6G 6G 6G 2G
  step_is a_monitor_and_a_manager_start start_monitor
  step_is images_are_loaded load_images
  step_is volumes_are_there make_volumes
  step_is three_pods_are_three_osds three_pods
  step_is their_probes_are_content probes_are_content
  step_is the_memory_limit_is_their_target memory_target
  step_is objects_are_written write_objects 500
  step_is an_osd_that_dies_is_started_again killed_osd
  step_is a_pod_that_is_replaced_is_the_same_osd replaced_pod
  step_is another_image_takes_over_one_by_one other_image
  step_is every_object_is_as_written compare_filled
  step_is after_a_power_cut_the_pods_find_their_osds boot_with_pods
  step_is every_object_is_as_written_after_all compare_filled
  step_is a_pod_that_dies_while_it_makes_its_osd_goes_on_with_it killed_init
  printf 'deploy: complete\n'
}

# Each volume on a file system of its own; what StatefulSet's claims would be.
make_volumes() {
  local number letter
  cp "$STATE/manifests.yaml" "$MACHINES/$DEPLOY/srv/manifests.yaml"
  for number in 0 1 2 3; do
    letter=$(tr 0-3 b-e <<<"$number")
    quietly "mkfs.ext4 -q /dev/vd$letter" &&
      mount_by_unit "/dev/vd$letter" "/srv/volume$number" >/dev/null || return 1
  done
}

play() { on_host bash "$PODS/play.sh" "$@"; } # ORDINAL [IMAGE]

three_pods() {
  play 0 && play 1 && play 2 && are_up 3 && on_host ceph osd tree &&
    quietly '[ "$(ceph osd tree -f json | jq -c "[.nodes[] | select(.type == \"host\").name] | sort")" = \
      "[\"node-0\",\"node-1\",\"node-2\"]" ]'
}

probes_are_content() {
  on_host 'for number in 0 1 2; do podman healthcheck run tablestore-osd-$number-osd || exit 1; done' &&
    quietly "bash $PODS/is_ready.sh 0 && ceph osd set noup && ceph osd down 0" &&
    wait_for 30 'osd.0 not to be ready' "! bash $PODS/is_ready.sh 0" &&
    quietly 'podman healthcheck run tablestore-osd-0-osd && ceph osd unset noup' &&
    wait_for 30 'osd.0 to be ready' "bash $PODS/is_ready.sh 0"
}

memory_target() {
  quietly 'limit=$((4 << 30)) target=$(ceph config show osd.0 osd_memory_target)
    echo "osd_memory_target $target"; [ "$target" -gt $((limit / 2)) ] && [ "$target" -lt "$limit" ]'
}

killed_osd() {
  on_host 'kill -KILL $(podman inspect -f "{{.State.Pid}}" tablestore-osd-0-osd)' && are_up 3
}

replaced_pod() {
  play 1 && are_up 3 && quietly '[ "$(ceph osd ls | wc -l)" = 3 ]'
}

other_image() {
  local number
  for number in 0 1 2; do
    play "$number" two && are_up 3 && wait_clean || return 1
  done
  quietly '[ "$(podman ps --format "{{.Image}}" | grep -c localhost/two)" = 3 ]'
}

boot_with_pods() {
  printf '(the power is cut, and the host boots)\n'
  machine_kill "$DEPLOY"
  machine_start "$DEPLOY" && play 0 two && play 1 two && play 2 two && are_up 3
}

# Where the monitors have given it a number already: it gets no second one.
killed_init() {
  quietly "bash $PODS/play.sh 3 >/run/play.log 2>&1 &
    until jq -e .osd_id /srv/volume3/ceph-volume.unfinished; do sleep 0.01; done >/dev/null 2>&1
    podman kill --signal KILL tablestore-osd-3-init; wait
    ls /srv/volume3; [ -e /srv/volume3/ceph-volume.unfinished ]" &&
    play 3 && are_up 4 && quietly '[ "$(ceph osd ls | wc -l)" = 4 ]'
}
