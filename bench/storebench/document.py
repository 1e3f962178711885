"""What a program writes of the document about performance: pictures, and blocks of its text, all
from the JSON files that the document names. Every figure is a median of all runs in these files
that did not fail, disturbed ones too; those that failed are named."""
from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as xml
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import calm, draw, sustained
from .cells import LEVELS
from .failures import Failures, failures_of
from .figures import SUSTAINED, WHOLE, Summary, all_runs_of, by_round, interval_note, summaries
from .machine import place_text
from .numbers import number
from .panels import figure_of, floor_of, in_order
from .pictures import SUSTAINED_CELLS, Picture, last_phase, pictures, variants_of
from .rst import block, bold, bullets, markdown_table, simple_table, with_block
from .targets import BEST, GOALS, Goal, Table, Verdict, best_bluestore
from .variants import FLOORS, OURS

DOCUMENT = Path("doc/dev/tablestore-performance.rst")
FOLDER = Path("doc/dev/tablestore-performance")
README = Path("README.md")
RESULTS = Path("bench/results")
RESULT_NAME = r"\d{4}-\d\d-\d\dT\d{4}-[a-z]+\b"

UNITS = {"iops": "/s", "p99_9_us": " us", "cpu_us_per_operation": " us", "mount seconds": " s"}
NONE_DONE = "none done"
CLIENTS = ("rados-", "clients-")
LIMITS = {"floor": "a write and a flush", "floor-thin": "a write and a flush at first touch",
          "floor-read": "reads of a file", "memstore": "MemStore"}
SHOWN = (       # in README.md: cell, phase, what it is
    ("new-4K-qd16", "new", "new objects of 4K, 16 in flight"),
    ("new-64K-qd16", "new", "new objects of 64K, 16 in flight"),
    ("new-1M-qd16", "new", "new objects of 1M, 16 in flight"),
    ("overwrite-4K-qd16", "overwrite", "overwrites of 4K, 16 in flight"),
    ("sustained-overwrite-4K-qd16", "overwrite 4",
     "overwrites of 4K, the last quarter of 15 minutes"),
    ("metadata-1000K", "create", "a million objects without data: create"),
    ("metadata-1000K", "stat", "the same: stat"),
    ("rados-4K", "write", "`rados bench` 4K, one OSD, 16 threads"),
    ("sustained-rados-4K", "write 4", "`rados bench` 4K, the last quarter of 15 minutes"),
)


@dataclass(frozen=True)
class Results:
    """Of the files that were given, by their names without the ending."""

    names: list[str]
    sessions: list[dict[str, Any]]

    @classmethod
    def load(cls, paths: Iterable[Path]) -> Results:
        paths = sorted(paths, key=lambda path: path.name)
        return cls([path.stem for path in paths],
                   [json.loads(path.read_text()) for path in paths])

    @property
    def runs(self) -> list[dict[str, Any]]:
        return [run for run in all_runs_of(self.sessions) if "failed" not in run["result"]]

    @property
    def failures(self) -> Failures:
        return failures_of(self.sessions)

    @property
    def commits(self) -> list[str]:
        return list(dict.fromkeys(session["machine"].get("tablestore_commit", "unknown")
                                  for session in self.sessions))


def ratio_text(ratio: Summary | None) -> str:
    def text(x: float) -> str:
        return f"{x:.2f}" if x < 100 else number(x)    # or infinite
    if not ratio:
        return "-"
    interval = "" if ratio.low == ratio.high else f" [{text(ratio.low)}, {text(ratio.high)}]"
    return text(ratio.median) + interval


def pretty(setting: str) -> str:
    return setting.removeprefix("bluestore-")


# -- the first table

def workload(verdict: Verdict) -> str:
    """The phase is named where the cell's name does not say it, nor the goal's a quarter."""
    named = (verdict.phase in verdict.cell or verdict.phase == "run"
             or verdict.cell.startswith(SUSTAINED))
    return f"``{verdict.cell}``" + ("" if named else f", {verdict.phase}")


def absolute(goal: Goal, summary: Summary | None) -> str:
    if not summary:
        return "-"
    if summary.median == math.inf:
        return NONE_DONE
    return number(summary.median) + UNITS.get(goal.figure, "")


def against(verdict: Verdict) -> str:
    if not verdict.theirs:
        return "-"
    return f"{absolute(verdict.goal, verdict.theirs)} ({pretty(verdict.against)})"


def value_text(verdict: Verdict | None) -> str:
    if not verdict:
        return "-"
    found = verdict.found
    if verdict.goal.difference or not verdict.goal.against:
        low, high = number(found.low), number(found.high)
        runs = f", of {verdict.ours.rounds}" if verdict.goal.share else ""
        return number(found.median) + ("" if low == high else f" [{low}, {high}]") + runs
    return ratio_text(found)


def goal_row(goal: Goal, found: list[Verdict], failures: Failures) -> list[str]:
    """Of the workloads of a goal the one where the default, else the other, is least."""
    said = reached(goal, found, failures.of(goal))
    if not found:
        return [goal.name, goal.bound_text, *["-"] * 6, said]
    store = next(name for name in OURS if any(v.store == name for v in found))
    worst = min((v for v in found if v.store == store), key=lambda v: v.distance)
    both = {v.store: v for v in found if (v.cell, v.phase) == (worst.cell, worst.phase)}
    ratios = [bold(value_text(both.get(name)), name in both and both[name].met) for name in OURS]
    return [goal.name, goal.bound_text, workload(worst), *ratios,
            *(absolute(goal, both[name].ours if name in both else None) for name in OURS),
            against(worst), said]


def reached(goal: Goal, found: list[Verdict], failures: Failures) -> str:
    """"Yes" is for what was measured in full: each workload of the goal on each of its stores, and
    on each of BlueStore's settings."""
    judged = [v for v in found if v.store in goal.stores]
    met = sum(v.met for v in judged)
    missing = len(goal.expected() - {v.answers for v in judged})
    of_all = f", {met} of {len(judged)}" if len(judged) > 1 else ""
    if failures or met < len(judged):
        failed = f"; {failures.total} failed" if failures else ""
        return f"no{of_all}{failed}" + (f"; {missing} not measured" if missing else "")
    if not judged:
        return "default not measured" if found else "not measured"
    if not missing:
        unknown = sorted({pretty(name) for v in judged for name in v.unknown})
        if unknown:
            return f"not known{of_all}: BlueStore's {', '.join(unknown)} not measured"
        fewest = min(v.found.rounds for v in judged)
        if fewest < goal.least_rounds:
            return f"not known{of_all}: {fewest} of {goal.least_rounds} rounds"
        return f"yes{of_all}" + (", measured once" if fewest == 1 else "")
    if not any(v.store == OURS[0] for v in judged):
        return f"provisioned only{of_all}"
    return f"not all measured{of_all}; {missing} not"


def goals_block(table: Table, failures: Failures) -> Iterator[str]:
    found = {goal: list(goal.verdicts(table)) for goal in GOALS}
    yield from simple_table(
        ("what", "aim", "where it is least", "default, ratio", "provisioned, ratio", "default",
         "provisioned", "against", "reached"),
        (goal_row(goal, verdicts, failures) for goal, verdicts in found.items()))
    missed = {goal: list(missed_parts(table, goal, verdicts, failures.of(goal)))
              for goal, verdicts in found.items()}
    if any(missed.values()):
        yield ""
        yield "What is not reached:"
        yield ""
        yield from bullets(f"{goal.name}: {'; '.join(parts)}" for goal, parts in missed.items()
                           if parts)


def missed_parts(table: Table, goal: Goal, verdicts: list[Verdict],
                 failures: Failures) -> Iterator[str]:
    named = {"tablestore-thin": "", "tablestore": " (provisioned)"}
    for v in verdicts:
        if v.store in goal.stores and not v.met:
            yield f"{workload(v)}{named[v.store]} {value_text(v)}{limit_text(table, v)}"
    for (cell, store), (failed, total) in failures.counts.items():
        yield f"``{cell}``{named[store]}: {failed} of {count_of(total, 'run')} failed"


def limit_text(table: Table, verdict: Verdict) -> str:
    """What was measured beside it and keeps less, or nothing, against the same."""
    limit = verdict.goal.limit
    figure = verdict.goal.figure
    found = (floor_of(table, verdict.cell, limit, figure) if limit in FLOORS else
             figure_of(table, verdict.cell, verdict.phase, limit, figure))
    ratio = by_round(found, verdict.theirs)
    return f" ({LIMITS[limit]}: {ratio_text(ratio)})" if ratio else ""


# -- the second table

def sustained_block(table: Table, runs: list[dict[str, Any]]) -> Iterator[str]:
    rows = [row for cell, name in SUSTAINED_CELLS.items()
            for row in quarter_rows(table, cell, name)]
    if not rows:
        yield "Not measured."
        return
    yield from simple_table(
        ("what", "store", "1st", "2nd", "3rd", "4th quarter", "4th to 1st", "4th, ratio",
         "99.9 %, ms", "worst s", "bytes/byte", "GB used"), rows)
    short = [line for line in sustained.work_done(runs) if line.startswith(sustained.TOO_SHORT)]
    if short:
        yield ""
        yield from bullets(short)


def quarter_rows(table: Table, cell: str, name: str) -> Iterator[list[str]]:
    phases = sustained.quarters(table, cell)
    last = last_phase(table, cell)
    best = best_bluestore(table, cell, last, "iops")
    for variant in variants_of(table, cell).values():
        if variant not in phases:
            continue
        figures = [table[cell, phase, variant] for phase in phases[variant]]
        rates = [each.get("iops") for each in figures]
        first, fourth = rates[0], rates[-1]
        lasting = ratio_text(by_round(fourth, first))
        ratio = ratio_to(best, fourth) if variant in OURS else "-"
        whole = table.get((cell, WHOLE, variant), {}).get("write_amplification_disk")
        used = table[cell, "run", variant].get(f"used bytes {last}")
        tail = figures[-1].get("p99_9_us")
        worst = figures[-1].get("worst_second_iops")
        yield [name, store_name(variant), *(number(r.median) if r else "-" for r in rates),
               lasting, ratio, milliseconds(tail),
               number(worst.median) if worst else "-",
               f"{whole.median:.2f}" if whole else "-",
               number(used.median / 1e9) if used else "-"]


def milliseconds(summary: Summary | None) -> str:
    if not summary:
        return "-"
    return NONE_DONE if summary.median == math.inf else number(summary.median / 1000)


def store_name(variant: str) -> str:
    names = {"tablestore-thin": "default", "tablestore": "provisioned"}
    return names.get(variant) or variant.replace("bluestore-", "BlueStore ")


# -- the third table

def clients_block(table: Table) -> Iterator[str]:
    places = list(dict.fromkeys((cell, phase) for cell, phase, _ in table
                                if cell.startswith(CLIENTS) and phase != "run"))
    rows = [row for place in places if (row := ratio_row(table, *place))]
    if not rows:
        yield "Not measured."
        return
    yield from simple_table(("workload", "phase", "default, ratio", "provisioned, ratio",
                             "default", "provisioned", "BlueStore", "KStore", "MemStore"), rows)


def rate(table: Table, cell: str, phase: str, store: str) -> Summary | None:
    return table.get((cell, phase, store), {}).get("iops")


def ratios(table: Table, cell: str, phase: str) -> list[str]:
    best = best_bluestore(table, cell, phase, "iops")
    return [ratio_to(best, rate(table, cell, phase, store)) for store in OURS]


def ratio_to(best: tuple[str, Summary] | None, ours: Summary | None) -> str:
    return ratio_text(by_round(ours, best[1]) if best else None)


def rates(table: Table, cell: str, phase: str, stores: Iterable[str]) -> list[str]:
    found = []
    for store in stores:
        if store == BEST:
            best = best_bluestore(table, cell, phase, "iops")
            found.append(f"{number(best[1].median)} ({pretty(best[0])})" if best else "-")
        else:
            summary = rate(table, cell, phase, store)
            found.append(number(summary.median) if summary else "-")
    return found


def ratio_row(table: Table, cell: str, phase: str) -> list[str]:
    if not any(rate(table, cell, phase, store) for store in OURS):
        return []
    return [f"``{cell}``", phase, *ratios(table, cell, phase),
            *rates(table, cell, phase, (*OURS, BEST, "kstore", "memstore"))]


# -- what it is of

def results_block(results: Results, table: Table) -> Iterator[str]:
    of = " and ".join(f"``{commit}``" for commit in results.commits)
    yield f"All figures are of commit {of}, from these files in ``bench/results``:"
    yield ""
    for name, session in zip(results.names, results.sessions):
        cells = {run["cell"] for run in session["runs"]}
        rounds = {run["round"] for run in session["runs"]}
        tries = f", at most {count_of(session['tries'], 'try', 'tries')}" \
            if "tries" in session else ""
        stores = in_order(run["variant"] for run in session["runs"])
        yield (f"* ``{name}``: {count(cells, 'workload')}, {count(rounds, 'round')}"
               f" of {lengths(session)}{tries}; {', '.join(stores)}")
    yield ""
    yield from machine_lines(results.sessions)
    runs, failures = results.runs, results.failures
    disturbed = sum(not calm.is_calm(run) for run in runs)
    note = interval_note(table)
    yield (f"Medians of all {number_of(runs)} runs that did not fail"
           + (f"; in brackets, where there was more than one: {note}" if note else "") + "."
           f" The machine's host took more than {calm.MOST_STOLEN * 100:.0f} % of the processors"
           f" from {disturbed} of them. {failures.total or 'None'} failed"
           + (":" if failures else "."))
    if failures:
        yield ""
        yield from bullets(f"``{cell}`` on {variant}: {failed} of {count_of(total, 'run')}"
                           for (cell, variant), (failed, total) in failures.counts.items())


def count(what: Iterable[Any], word: str) -> str:
    return count_of(len(list(what)), word)


def count_of(n: int, word: str, several: str = "") -> str:
    return f"{n} {word if n == 1 else several or word + 's'}"


def number_of(what: list[Any]) -> str:
    return f"{len(what):,}"


def length(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:g} minutes"


def lengths(session: dict[str, Any]) -> str:
    """Some workloads have a time of their own."""
    measured = {run["cell"] for run in session["runs"]}
    own: dict[float, list[str]] = {}
    usual = set(measured)
    for cell in LEVELS.get(session["level"], tuple)():
        if cell.name in measured and cell.seconds not in (None, session["seconds"]):
            own.setdefault(cell.seconds or 0, []).append(f"``{cell.name}``")
            usual.discard(cell.name)
    if not usual and len(own) == 1:
        return length(next(iter(own)))
    return length(session["seconds"]) + "".join(
        f" ({', '.join(cells)}: {length(seconds)})" for seconds, cells in own.items())


def machine_lines(sessions: list[dict[str, Any]]) -> Iterator[str]:
    for text in dict.fromkeys(machine_text(session["machine"]) for session in sessions):
        yield text


def machine_text(m: dict[str, Any]) -> str:
    ceph = re.search(r"version (\S+)", m.get("ceph", ""))
    return (f"{m['cores']} processors ({m['processor']}), {m['memory_bytes'] / 2**30:.0f} GiB,"
            f" {place_text(m)}, Linux {m['kernel']},"
            f" Ceph {ceph.group(1) if ceph else '?'}.")


def picture_block(picture: Picture) -> Iterator[str]:
    if picture.is_empty:
        yield f"*{picture.title}*: not measured."
        return
    yield f".. figure:: {FOLDER.name}/{picture.file}"
    yield f"   :alt: {picture.title}"
    yield ""
    yield f"   {picture.caption}"


def readme_block(results: Results, table: Table) -> Iterator[str]:
    rows = [[name, *rates(table, cell, phase, (*OURS, BEST)), *ratios(table, cell, phase)]
            for cell, phase, name in SHOWN
            if any(rate(table, cell, phase, store) for store in OURS)]
    yield from markdown_table(
        ("operations per second", "default", "provisioned", "BlueStore, best setting",
         "default, ratio", "provisioned, ratio"), rows)
    yield ""
    shown = {cell for cell, _, _ in SHOWN}
    note = interval_note(table, shown)
    yield ("Commit " + " and ".join(f"`{commit}`" for commit in results.commits) + "."
           + (f" In brackets: {note}." if note else ""))


# -- all of it

@dataclass(frozen=True)
class Made:
    """The document's and the README's text, and the pictures that have something to show."""

    texts: dict[Path, str]
    pictures: list[Picture]

    def write(self, root: Path) -> Iterator[Path]:
        for path, text in self.texts.items():
            yield written(root / path, text)
        kept = {picture.file for picture in self.pictures}
        for old in (root / FOLDER).glob("*.svg"):
            if old.name not in kept:
                old.unlink()
        for picture in self.pictures:
            yield written(root / FOLDER / picture.file, svg_of(picture))


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def svg_of(picture: Picture) -> str:
    return draw.svg(picture.panels, picture.columns, picture.inches)


def make(results: Results, checkout: Path) -> Made:
    """From the texts as they are: what is outside of the blocks stays."""
    runs = results.runs
    table = summaries(runs, all_runs=True)
    found = list(pictures(runs, table))
    blocks = {"results": results_block(results, table),
              "aims": goals_block(table, results.failures),
              "sustained": sustained_block(table, runs), "clients": clients_block(table)}
    blocks |= {picture.name: picture_block(picture) for picture in found}
    text = (checkout / DOCUMENT).read_text(encoding="utf-8")
    for name, lines in blocks.items():
        text = with_block(text, ".rst", name, lines)
    readme = with_block((checkout / README).read_text(encoding="utf-8"), ".md", "figures",
                        readme_block(results, table))
    return Made({DOCUMENT: text, README: readme}, [p for p in found if not p.is_empty])


def named_results(checkout: Path) -> list[Path]:
    """The files that the document says it is of."""
    text = block((checkout / DOCUMENT).read_text(encoding="utf-8"), ".rst", "results")
    return [checkout / RESULTS / f"{name}.json"
            for name in re.findall(rf"``({RESULT_NAME})``", text)]


def differences(checkout: Path) -> Iterator[str]:
    """Between the document and what its results give. Needs no matplotlib: what a picture shows is
    said in its file."""
    made = make(Results.load(named_results(checkout)), checkout)
    for path, text in made.texts.items():
        if (checkout / path).read_text(encoding="utf-8") != text:
            yield f"{path} is not what its results give"
    here = {path.name for path in (checkout / FOLDER).glob("*.svg")}
    for picture in made.pictures:
        if picture.file not in here:
            yield f"there is no {picture.file}"
        elif described(checkout / FOLDER / picture.file) != draw.description(picture.panels):
            yield f"{picture.file} does not show what its results give"
    for name in sorted(here - {picture.file for picture in made.pictures}):
        yield f"nothing makes {name}"


def described(path: Path) -> str:
    tag = "{http://purl.org/dc/elements/1.1/}description"
    return next((found.text or "" for found in xml.parse(path).iter(tag)), "")


def drawn_by(path: Path) -> str:
    """As draw.drawer() says it."""
    found = re.search(r"<dc:title>(.*)</dc:title>", path.read_text(encoding="utf-8"))
    return found.group(1) if found else ""
