#!/usr/bin/env python3
"""Tests of monitoring/ and patches/upstream/: rules by promtool, each query of the dashboard and of
the rules by a Prometheus that scrapes the manager of a real cluster under load."""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "qa" / "cluster"), str(ROOT / "qa" / "osd")]

import rados  # noqa: E402
from cephcluster.cluster import Cluster  # noqa: E402
from cephcluster.config import free_port  # noqa: E402
from cephcluster.ephemeral import EphemeralCluster  # noqa: E402
from cephcluster.errors import ClusterError  # noqa: E402
from cephcluster.tool import run_tool  # noqa: E402
from cephcluster.wait import signals_as_exceptions, wait_until  # noqa: E402
from osd_test import Count, check_no_crash  # noqa: E402

MONITORING = ROOT / "monitoring"
DASHBOARD = MONITORING / "tablestore-osds.json"
RULES = MONITORING / "tablestore_alerts.yml"
UPSTREAM = ROOT / "patches" / "upstream"
OUR_PATCHES = ROOT / "patches" / "20.2"
STORE = ROOT / "src" / "os" / "tablestore"
HEALTH_PAGE = ROOT / "doc" / "rados" / "operations" / "health-checks-tablestore.rst"
CEPH = Path("/ceph")
SCRAPE_SECONDS = 2
RATE_INTERVAL = "20s"
DATA_SECONDS = 90
PICTURE_SECONDS = 60
READY_SECONDS = 60


def rules_are_well_formed() -> str:
    run_tool("promtool", "check", "rules", RULES)
    return run_tool("promtool", "test", "rules",
                    *sorted((MONITORING / "tests").glob("*.yml"))).split()[-1]


def health_checks_are_known_everywhere() -> str:
    """Those of the page: raised by the source, in a rule, told by the manager; and none beside."""
    titles = re.findall(r"^TABLESTORE_(\w+)\n__+$", HEALTH_PAGE.read_text(), re.MULTILINE)
    documented = set(titles)
    rules = {name for group in re.findall(r"TABLESTORE_\(([A-Z_|]+)\)", RULES.read_text())
             for name in group.split("|")}
    patches = "".join(patch.read_text() for patch in OUR_PATCHES.glob("*-mon-*.patch"))
    told = set(re.findall(r'"TABLESTORE_(\w+)"', patches))
    source = "".join(path.read_text() for path in STORE.rglob("*.cc"))
    source += "".join(path.read_text() for path in STORE.rglob("*.h"))
    raised = {name for name in documented if re.search(rf'"(TABLESTORE_)?{name}"', source)}
    raised |= set(re.findall(r'\b(?:raise|tell)\("([A-Z_]+)"', source))
    raised |= set(re.findall(r'"TABLESTORE_([A-Z_]+)"', source))
    for where, names in (("the rules", rules), ("the manager", told), ("the source", raised)):
        if names != documented:
            raise ClusterError(f"the page of health checks and {where} do not have the same",
                               details=sorted(names ^ documented))
    return f"{len(documented)} health checks"


def upstream_patches_apply() -> str:
    patches = sorted(UPSTREAM.glob("*.patch"))
    for patch in patches:
        done = subprocess.run(["patch", "-p1", "--dry-run", "-f", "-d", CEPH, "-i", patch],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0 or "fuzz" in done.stdout:
            raise ClusterError(f"{patch.name} does not apply", details=done.stdout.splitlines())
    return f"{len(patches)} patches"


# ---- a cluster that is watched


def enable_prometheus(cluster: Cluster) -> int:
    """The manager's own exporter, with the counters of daemons; its port."""
    conf = cluster.layout.conf
    modules = re.compile(r"(mgr_disabled_modules = .*?)\bprometheus\b,?")
    conf.write_text(modules.sub(r"\1", conf.read_text()))
    port = free_port()
    for name, value in (("server_port", port), ("server_addr", "127.0.0.1"),
                        ("exclude_perf_counters", "false"), ("scrape_interval", SCRAPE_SECONDS)):
        cluster.client.mon("config set", who="mgr", name=f"mgr/prometheus/{name}",
                           value=str(value), force=True)
    cluster.client.mon("mgr module enable", module="prometheus", force="--force")
    cluster.mgr.kill()
    cluster.mgr.start()
    cluster.wait_mgr()
    wait_until("the manager to export counters", lambda: "ceph_tablestore_txc" in scrape(port),
               DATA_SECONDS, explain=cluster.mgr.last_lines)
    return port


def scrape(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


@contextmanager
def prometheus(directory: Path, target: int) -> Iterator[int]:
    directory.mkdir()
    port = free_port()
    config = directory / "prometheus.yml"
    config.write_text(yaml.safe_dump({
        "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": "2s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "ceph", "honor_labels": True,
                            "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}]}))
    with (directory / "log").open("wb") as log, subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "prometheus", f"--config.file={config}",
             f"--storage.tsdb.path={directory / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log) as server:
        try:
            await_prometheus(port, lambda: server.poll() is None, directory / "log")
            yield port
        finally:
            server.terminate()


def await_prometheus(port: int, lives: Callable[[], bool], log: Path) -> None:
    """It listens before it is ready, and refuses queries until then."""
    def last_lines() -> list[str]:
        return log.read_text(errors="replace").splitlines()[-20:]

    def is_ready() -> bool:
        if not lives():
            raise ClusterError("Prometheus has ended", details=last_lines())
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=10):
                return True
        except OSError:
            return False

    wait_until("Prometheus to be ready", is_ready, READY_SECONDS, explain=last_lines)


class StartingServer(BaseHTTPRequestHandler):
    """Listens, and is "Service Unavailable" to the first few requests, as Prometheus is while it
    opens its database."""
    refusals = 3

    def do_GET(self) -> None:   # noqa: N802, pylint: disable=invalid-name
        starting = type(self).refusals > 0
        type(self).refusals -= 1
        self.send_response(503 if starting else 200)
        self.end_headers()
        self.wfile.write(b"Service Unavailable" if starting else
                         b'{"data": {"result": [{"value": [0, "1"]}]}}')

    def log_message(self, *_: object) -> None:
        pass


def a_starting_prometheus_is_waited_for() -> None:
    with HTTPServer(("127.0.0.1", 0), StartingServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            await_prometheus(server.server_port, lambda: True, Path(os.devnull))
        finally:
            server.shutdown()
    if StartingServer.refusals > 0:
        raise ClusterError("taken for ready while it refused")
    try:
        await_prometheus(free_port(), lambda: False, Path(os.devnull))
    except ClusterError as error:
        if "ended" not in str(error):
            raise
    else:
        raise ClusterError("a Prometheus that ended was taken for ready")


@contextmanager
def load(io: rados.Ioctx) -> Iterator[None]:
    """Writes of all kinds, reads and omap, until the block ends."""
    stop = threading.Event()
    errors: list[Exception] = []

    def work() -> None:
        number = 0
        try:
            while not stop.is_set():
                number += 1
                name = f"o{number % 50}"
                io.write_full(name, bytes([number % 256]) * (64 << 10))
                io.write(name, b"a part of a block", 5000)
                io.write_full(f"small{number % 50}", b"inline" * 50)
                io.read(name, 64 << 10)
                with rados.WriteOpCtx() as op:
                    io.set_omap(op, ("a", "b", "c"), (b"1", b"2", b"3"))
                    io.operate_write_op(op, "omap")
                with rados.WriteOpCtx() as op:
                    io.remove_omap_keys(op, ("a",))
                    io.operate_write_op(op, "omap")
        except rados.Error as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if errors:
        raise ClusterError(f"the load failed: {errors[0]}")


def query(port: int, expression: str) -> list[float]:
    """The finite values of a query; none where there is no data."""
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError):
            raise ClusterError(f"Prometheus refuses: {expression}",
                               details=error.read().decode().splitlines()) from None
        return []
    values = [float(each["value"][1]) for each in found]
    return [value for value in values if math.isfinite(value)]


def dashboard_queries() -> Iterator[tuple[str, str]]:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], as_query(target["expr"])


def as_query(expression: str) -> str:
    """With the values that Grafana would put in, of all OSDs."""
    return expression.replace("$osd", ".*").replace("$__rate_interval", RATE_INTERVAL)


def every_query_has_data(port: int) -> str:
    queries = list(dashboard_queries())
    for title, expression in queries:
        wait_until(f"data of the panel '{title}': {expression}",
                   lambda expression=expression: query(port, expression), DATA_SECONDS, poll=1)
    return f"{len(queries)} queries"


def every_counter_of_a_rule_is_exported(target: int) -> str:
    used = set(re.findall(r"\bceph_\w+", RULES.read_text())) - {"ceph_default", "ceph_daemon"}
    used.remove("ceph_health_detail")   # that one is there when there is a warning

    def missing() -> list[str]:
        return sorted(used - set(re.findall(r"^(ceph_\w+)", scrape(target), re.MULTILINE)))

    wait_until("all that rules use to be exported", lambda: not missing(), DATA_SECONDS, poll=1,
               explain=missing)
    return f"{len(used)} metrics"


def an_alert_of_the_store_reaches_prometheus(cluster: Cluster, port: int) -> str:
    """Raised, shown by the manager, and cleared."""
    name = "TABLESTORE_SLOW_OPS"
    expression = f'ceph_health_detail{{name="{name}"}}'
    options = {"tablestore_log_op_age": "0"}
    for osd in cluster.osds:
        for option, value in options.items():
            asok(cluster, osd.name, "config", "set", option, value)
    wait_until(f"{name} in Prometheus", lambda: 1.0 in query(port, expression), DATA_SECONDS,
               poll=1)
    for osd in cluster.osds:
        asok(cluster, osd.name, "config", "set", "tablestore_log_op_age", "5")
        asok(cluster, osd.name, "config", "set", "tablestore_slow_ops_warn_lifetime", "1")
        asok(cluster, osd.name, "config", "set", "tablestore_stalled_read_warn_lifetime", "1")
    wait_until(f"the end of {name}", lambda: 1.0 not in query(port, expression), DATA_SECONDS,
               poll=1)
    return name


def the_cluster_says_what_an_osd_is(cluster: Cluster) -> None:
    """`ceph osd metadata`, `device ls`, `df` and `osd df`, to the slot."""
    for osd in cluster.osds:
        known = cluster.client.mon("osd metadata", id=int(osd.ident))
        for key in ("osd_objectstore", "tablestore_min_alloc_size", "devices"):
            if not known.get(key):
                raise ClusterError(f"ceph osd metadata {osd.ident} lacks {key}",
                                   details=[str(sorted(known))])
        if known["osd_objectstore"] != "tablestore":
            raise ClusterError(f"osd.{osd.ident} is of {known['osd_objectstore']}")

    def agrees() -> bool:
        nodes = cluster.client.mgr("osd df", output_method="plain")["nodes"]
        for osd, node in zip(cluster.osds, sorted(nodes, key=lambda each: each["id"])):
            counters = json.loads(asok(cluster, osd.name, "perf", "dump"))["tablestore"]
            taken = counters["allocated"] + counters["inline_bytes"]
            if node["kb_used_data"] != taken // 1024:
                return False
        return True

    wait_until("osd df to be what the stores count", agrees, DATA_SECONDS, poll=1)


def asok(cluster: Cluster, name: str, *words: str) -> str:
    return run_tool("ceph", "--admin-daemon", cluster.layout.socket(name), *words)


def make_picture(port: int, file: Path) -> str:
    from picture import draw  # pylint: disable=import-outside-toplevel
    time.sleep(PICTURE_SECONDS)   # of load
    draw(DASHBOARD, file, as_query, port, PICTURE_SECONDS)
    return str(file)


def watched_cluster(count: Count, options: argparse.Namespace) -> None:
    wanted = options.only
    with EphemeralCluster("metrics-test", "tablestore", 2, keep=options.keep) as cluster:
        cluster.create_pool("metrics", groups=8, size=2)
        io = cluster.client.open_pool("metrics")
        target = enable_prometheus(cluster)
        with prometheus(cluster.layout.root / "prometheus", target) as port:
            with load(io):
                tests = {
                    "every_query_of_the_dashboard_has_data": lambda: every_query_has_data(port),
                    "every_counter_of_a_rule_is_exported":
                        lambda: every_counter_of_a_rule_is_exported(target),
                    "an_alert_of_the_store_reaches_prometheus":
                        lambda: an_alert_of_the_store_reaches_prometheus(cluster, port),
                }
                if options.picture:
                    tests["picture"] = lambda: make_picture(port, ROOT / options.picture)
                for name, test in tests.items():
                    one(count, wanted, name, test)
            io.close()
            one(count, wanted, "the_cluster_says_what_an_osd_is",
                lambda: the_cluster_says_what_an_osd_is(cluster))
        one(count, wanted, "no_crash", lambda: check_no_crash(cluster))


def one(count: Count, wanted: list[str], name: str, test) -> None:  # type: ignore[no-untyped-def]
    if wanted and not any(word in name for word in wanted):
        return
    with count.one(name) as remarks:
        remark = test()
        if remark:
            remarks.append(remark)


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run test metrics", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", default=[],
                        help="only tests with NAME in their name; may be repeated")
    parser.add_argument("--offline", action="store_true", help="only what needs no cluster")
    parser.add_argument("--picture", metavar="FILE",
                        help="draw the dashboard into FILE of the checkout, after a minute of load")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running")
    options = parser.parse_args()
    signals_as_exceptions()
    count = Count()
    one(count, options.only, "rules_are_well_formed", rules_are_well_formed)
    one(count, options.only, "health_checks_are_known_everywhere",
        health_checks_are_known_everywhere)
    one(count, options.only, "upstream_patches_apply", upstream_patches_apply)
    one(count, options.only, "a_starting_prometheus_is_waited_for",
        a_starting_prometheus_is_waited_for)
    if not options.offline:
        with count.one("watched_cluster"):
            watched_cluster(count, options)
    print(f"{count.passed} passed, {count.failed} failed, 0 skipped")
    sys.exit(1 if count.failed else 0)


if __name__ == "__main__":
    main()
