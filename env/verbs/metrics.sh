# The suite metrics: rules, dashboard and patches for a monitoring stack, judged by Debian's
# Prometheus and by a real cluster. The work is in qa/metrics/metrics_test.py.

METRICS_PACKAGES="prometheus"

# The service is not started: nothing runs in this root file system by itself.
install_prometheus() {
  in_env sh -ec "$apt_recover; $APT update; $APT install $METRICS_PACKAGES; apt-get clean"
}

setup_prometheus() {
  [ -x "$ROOTFS/usr/bin/promtool" ] || rm -f "$STAMPS/prometheus"
  step prometheus "$(hash_of "$(stamp build-deps)" "$METRICS_PACKAGES")" \
    "Prometheus, about 30 seconds" install_prometheus
}

suite_metrics() {
  need setup_prometheus
  case " $* " in *" --picture"*) need setup_matplotlib ;; esac
  suite_of_clusters metrics qa/metrics/metrics_test.py "$@"
}
