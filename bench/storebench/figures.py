"""From a run's JSON to the figures that are compared, and medians of rounds."""
from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from .calm import stolen_share, undisturbed
from .numbers import interval_of_median, interval_words, ratio_of
from .variants import VARIANTS

Figures = dict[str, float]
SUSTAINED = "sustained-"    # cells that are measured by quarters begin so
WHOLE = "whole"             # the phase that stands for all quarters of a run

# Who else works for an operation in a cluster: client processes; CephFS' or S3's daemons.
IN_FRONT = ("client_", "service_")

LATENCIES = ("mean", "p50", "p99", "p99_9", "max")      # rados bench tells only some

# Figures of which more is better; of all others less is.
MORE_IS_BETTER = {"iops", "mb_per_second", "worst_second_share", "worst_second_iops"}


def per_second(phase: dict[str, Any]) -> list[int]:
    """Operations in each whole second."""
    per = 1000 // phase["interval_ms"]
    ops = phase["interval_operations"]
    return [sum(ops[i:i + per]) for i in range(0, len(ops) - per + 1, per)]


TRAFFIC = "traffic "
STEADINESS = ("variation", "worst_second_iops", "worst_second_share")


def steadiness(phase: dict[str, Any]) -> Figures:
    seconds = per_second(phase)
    if len(seconds) < 3:
        return {}
    mean, median = statistics.fmean(seconds), statistics.median(seconds)
    return dict(zip(STEADINESS, (statistics.stdev(seconds) / mean if mean else 0, min(seconds),
                                 min(seconds) / median if median else 0)))


def written_by(counters: dict[str, float], process_bytes: float, store: str) -> Figures:
    """Bytes that a store says that it wrote, by what for.

    The kernel's count for a process is exact for direct writes, as all of
    TableStore's are, but counts whole large folios for buffered ones, a few
    bytes in each: of no use for BlueFS and RocksDB."""
    def get(path: str) -> float:
        return counters.get(path, 0)

    if store == "tablestore":
        parts = {"data": get("tablestore.data_bytes"), "log": get("tablestore.log_bytes"),
                 "preparation": get("tablestore.prepared_bytes"),
                 "table flush": get("statistics.table_flushed_bytes"),
                 "compaction": get("statistics.table_compacted_bytes")}
        rest = "other" if parts["table flush"] else "table flush"
        return parts | {rest: parts.get(rest, 0) + max(0, process_bytes - sum(parts.values()))}
    if store == "bluestore":
        return {"data": max(0, get("bluestore.write_big_bytes")
                            + get("bluestore.write_small_bytes")
                            - get("bluestore.issued_deferred_write_bytes"))
                + get("bluestore.submitted_deferred_write_bytes"),
                "log": get("bluefs.bytes_written_wal"),
                "table": get("bluefs.bytes_written_sst") + get("bluefs.bytes_written_slow"),
                "other": get("bluefs.logged_bytes")}
    return {}


def traffic(phase: dict[str, Any], store: str) -> Figures:
    """Bytes written per payload byte, and by what. What the disk wrote beyond
    what the store says is the file system's, on an idle machine."""
    payload = phase["payload_bytes"]
    if not payload or store in ("memstore", "raw"):
        return {}
    usage = phase["usage"]
    disk = usage["disk_write_bytes"]
    parts = written_by(phase["counters"], usage["write_bytes"], store)
    figures = {"write_amplification_disk": phase["usage_settled"]["disk_write_bytes"] / payload}
    if parts:
        figures["write_amplification"] = sum(parts.values()) / payload
        parts["file system"] = max(0, disk - sum(parts.values()))
    else:
        parts["all"] = disk
    return figures | {f"{TRAFFIC}{name}": value / payload for name, value in parts.items()}


def in_front_of_osds(phase: dict[str, Any]) -> Figures:
    """Of a cluster: what an operation takes of the processors beside its OSDs, and of the disk, be
    it payload or not; and how busy the machine's processors were, in processors."""
    usage, operations = phase["usage"], phase["operations"]
    figures = {f"{who}cpu_us_per_operation":
               (usage[f"{who}user_seconds"] + usage[f"{who}system_seconds"]) / operations * 1e6
               for who in IN_FRONT}
    disk = phase["usage_settled"]["disk_write_bytes"]
    return figures | {"disk_bytes_per_operation": disk / operations,
                      "busy_processors": usage["machine_busy_seconds"] / usage["wall_seconds"]}


def of_standstill(phase: dict[str, Any]) -> Figures:
    """Time passed, and nothing was done: what an operation would take is without end."""
    figures = {"iops": 0.0, "mb_per_second": 0.0, "cpu_us_per_operation": math.inf,
               **{f"{name}_us": math.inf for name in LATENCIES if name in phase["latency_us"]}}
    return figures | ({"worst_second_iops": 0.0} if phase["seconds"] >= 3 else {})


def of_phase(phase: dict[str, Any], store: str) -> Figures:
    operations, seconds = phase["operations"], phase["seconds"]
    if not seconds:
        return {}
    if not operations:
        return of_standstill(phase)
    usage, latency = phase["usage"], phase["latency_us"]
    figures = {
        "iops": operations / seconds,
        "mb_per_second": phase["payload_bytes"] / seconds / 1e6,
        **{f"{name}_us": latency[name] for name in LATENCIES if name in latency},
        "cpu_us_per_operation":
            (usage["user_seconds"] + usage["system_seconds"]) / operations * 1e6,
        "flushes_per_operation": usage["disk_flushes"] / operations,
        "switches_per_operation": usage["context_switches"] / operations,
        "peak_memory_mb": phase["peak_memory_bytes"] / 1e6,
        # Of what the machine's processors did, the share of others.
        "foreign_cpu": max(0.0, 1 - sum(usage.get(f"{who}{where}_seconds", 0)
                                        for who in ("", *IN_FRONT) for where in ("user", "system"))
                           / max(usage["machine_busy_seconds"], 1e-9)),
        "stolen_cpu": stolen_share([usage]),
    }
    if "client_user_seconds" in usage:
        figures |= in_front_of_osds(phase)
    groups = phase["counters"].get("tablestore.groups", 0)
    if groups:
        figures["flushes_per_group"] = phase["counters"].get("tablestore.flushes", 0) / groups
        figures["operations_per_group"] = \
            phase["counters"].get("tablestore.transactions", 0) / groups
    return figures | steadiness(phase) | traffic(phase, store)


def of_run(run: dict[str, Any]) -> dict[str, Figures]:
    """By phase; single numbers of the whole run are a phase "run"."""
    store = run["options"]["store"]
    phases = {phase["name"]: of_phase(phase, store) for phase in run["phases"]}
    whole: Figures = dict(run.get("values", {}))
    space = run.get("space")
    if space:
        used = space["directory_bytes"]
        if store == "bluestore":
            used = space["total"] - space["available"]
        payload = sum(phase["payload_bytes"] for phase in run["phases"])
        whole["used_mb"] = used / 1e6
        if payload:
            whole["used_per_payload_byte"] = used / payload
    return phases | {"run": whole}


def of_quarters(result: dict[str, Any]) -> Figures:
    """Of the whole run: what happens once an hour falls into one quarter and not into another."""
    phases = result["phases"]
    payload = sum(phase["payload_bytes"] for phase in phases)
    operations = sum(phase["operations"] for phase in phases)
    seconds = sum(phase["seconds"] for phase in phases)
    if not seconds or result["options"]["store"] in ("memstore", "raw"):
        return {}
    if not operations:
        return {"iops": 0.0, "write_amplification_disk": math.inf}
    if not payload:
        return {}
    written = sum(phase["usage_settled"]["disk_write_bytes"] for phase in phases)
    return {"iops": operations / seconds, "write_amplification_disk": written / payload}


Round = tuple[int, int]     # of which session, and of its rounds which


def all_runs_of(sessions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first rounds of two sessions are not the same round: each run says of which it is."""
    return [run | {"session": number} for number, session in enumerate(sessions)
            for run in session["runs"]]


@dataclass(frozen=True)
class Summary:
    """One figure over the rounds: the median, and its interval (of fewer than six their range,
    else 95 % of the bootstrap's medians). `of` says of which round each value is."""

    median: float
    low: float
    high: float
    rounds: int
    values: tuple[float, ...] = field(default=(), compare=False)
    of: tuple[Round, ...] = field(default=(), compare=False)

    @property
    def spread(self) -> float:
        """Half the interval, as a share of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0


def summarize(values: Iterable[float], of: Iterable[Round] = ()) -> Summary:
    values = tuple(values)
    return Summary(statistics.median(values), *interval_of_median(values), len(values), values,
                   tuple(of))


def by_round(ours: Summary | None, theirs: Summary | None,
             compare: Callable[[float, float], float] = ratio_of) -> Summary | None:
    """Of two stores, or of two phases of one: round by round, since what one has in common with
    its neighbour of the same minutes, another hour's does not have. None where no round has
    both."""
    other = dict(zip(theirs.of, theirs.values)) if theirs else {}
    pairs = {each: compare(value, other[each]) for each, value in
             (zip(ours.of, ours.values) if ours else ()) if each in other}
    return summarize(pairs.values(), pairs) if pairs else None


Key = tuple[str, str, str]      # cell, phase, variant


def interval_note(table: dict[Key, dict[str, Summary]],
                  cells: Container[str] | None = None) -> str:
    """What the intervals of these cells' figures are, or of all; nothing where there are none. How
    steady a run was and what its traffic was for have none: some rounds do not have them."""
    return interval_words(summary.rounds for (cell, _, _), figures in table.items()
                          if cells is None or cell in cells
                          for name, summary in figures.items()
                          if name not in STEADINESS and not name.startswith(TRAFFIC))


def order(variant: str) -> int:
    """Of the lines for one workload."""
    names = list(VARIANTS)
    return names.index(variant) if variant in names else len(names)


def of_phases(run: dict[str, Any]) -> dict[str, Figures]:
    phases = of_run(run["result"])
    if run["cell"].startswith(SUSTAINED):
        phases[WHOLE] = of_quarters(run["result"])
    return phases


def summaries(runs: list[dict[str, Any]], all_runs: bool = False) -> dict[Key, dict[str, Summary]]:
    """Of every figure of every cell, phase and variant, over its calm runs, or over all."""
    gathered: dict[Key, dict[str, dict[Round, float]]] = {}
    for run in runs if all_runs else undisturbed(runs):
        of = run.get("session", 0), run["round"]
        for phase, figures in of_phases(run).items():
            into = gathered.setdefault((run["cell"], phase, run["variant"]), {})
            for name, value in figures.items():
                if not math.isnan(value):
                    into.setdefault(name, {})[of] = value
    # What is compared stands together: cells and phases in the order in which they were run.
    places = {key[:2]: place for place, key in reversed(list(enumerate(gathered)))}
    cells = {key[0]: place for place, key in reversed(list(enumerate(gathered)))}
    ordered = sorted(gathered, key=lambda key: (cells[key[0]], places[key[:2]], order(key[2])))
    return {key: {name: summarize(values.values(), values)
                  for name, values in gathered[key].items()}
            for key in ordered}
