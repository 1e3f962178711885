"""The document about performance, the report, and their pictures."""
from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any

from storebench import document, draw, panels
from storebench.document import (DOCUMENT, FOLDER, README, RESULTS, Results, differences,
                                 make)
from storebench.figures import summaries
from storebench.page import page
from storebench.pictures import pictures
from storebench.rst import block, simple_table, with_block
from storebench.variants import OURS, PEERS, SETTINGS

from samples import SESSION, phase, run

CHECKOUT = Path(__file__).resolve().parent.parent.parent
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
STORES = (*OURS, *SETTINGS, "kstore")
EXPONENT = r"\d[eE][+-]?\d"


def sample_runs() -> list[dict[str, Any]]:
    """Of each kind of cell one, three rounds; TableStore has twice BlueStore's best."""
    speed = dict(zip(STORES, (2000, 2400, 700, 1000, 800, 900, 500)))
    runs = []
    for number in (-1, 0, 1):
        for store, operations in speed.items():
            for cell, name in (("new-4K-qd16", "new"), ("new-1M-qd64", "new"),
                               ("metadata-1000K", "create"), ("rados-4K", "write")):
                runs.append(run(store, number, operations + 10 * number, cell, name=name))
            long = run(store, number, 0, "sustained-rados-4K")
            long["result"]["phases"] = [
                phase(name=f"write {i}", operations=operations - 100 * i) for i in range(1, 5)]
            long["result"]["values"] = {f"{kind} bytes write {i}": 5e9 for i in range(1, 5)
                                        for kind in ("used", "directory")}
            runs.append(long)
    return runs


def results(runs: list[dict[str, Any]], name: str = "2026-01-01T0000-full") -> Results:
    return Results([name], [SESSION | {"runs": runs}])


def document_of(runs: list[dict[str, Any]]) -> str:
    return make(results(runs), CHECKOUT).texts[DOCUMENT]


class Document(unittest.TestCase):
    def rows(self, name: str, runs: list[dict[str, Any]] | None = None) -> list[str]:
        text = document_of(sample_runs() if runs is None else runs)
        return block(text, ".rst", name).splitlines()

    def test_a_line_has_ratio_interval_and_absolute_figures(self) -> None:
        line = next(each for each in self.rows("aims") if "rados bench 4K, one OSD  " in each)
        self.assertRegex(line, r">= 1\.4 +``rados-4K``, write +\*\*2\.00 \[1\.\d\d, 2\.\d\d\]\*\*"
                               r" +\*\*2\.40 \[.*\]\*\* +1,000/s +1,200/s +500/s \(hdd\) +not all"
                               " measured; 1 not$")

    def test_a_goal_of_several_workloads_shows_the_one_that_is_furthest(self) -> None:
        runs = [run(store, 1, operations, cell) for cell, operations in
                (("new-4K-qd16", 1600), ("new-8K-qd64", 1200), ("new-16K-qd16", 1400))
                for store, operations in (("tablestore-thin", operations), ("bluestore-ssd", 1000))]
        lines = self.rows("aims", runs)
        line = next(each for each in lines if "4K to 32K" in each)
        self.assertIn("``new-8K-qd64``", line)
        self.assertTrue(line.endswith("no, 1 of 3; 5 not measured"), line)
        missed = next(each for each in lines if each.startswith("* new objects of 4K"))
        self.assertTrue(missed.endswith("``new-8K-qd64`` 1.20; ``new-16K-qd16`` 1.40"), missed)

    def test_what_is_not_reached_has_its_limit_beside_it(self) -> None:
        runs = [run("tablestore-thin", 1, 800, "new-1M-qd16"),
                run("bluestore-ssd", 1, 1000, "new-1M-qd16"),
                run("floor-thin", 1, 900, "new-1M-qd16", name="group and flush"),
                run("floor", 1, 1100, "new-1M-qd16", name="group and flush"),
                run("tablestore-thin", 1, 1100, "rados-4K"),
                run("bluestore-hdd", 1, 1000, "rados-4K"), run("memstore", 1, 1300, "rados-4K")]
        missed = [each for each in self.rows("aims", runs) if each.startswith("* ")]
        for goal, said in (("new objects of 64K to 1M, depth 16 and 64",
                            "``new-1M-qd16`` 0.80 (a write and a flush at first touch: 0.90)"),
                           ("rados bench 4K, one OSD",
                            "``rados-4K``, new 1.10 (MemStore: 1.30)")):
            self.assertIn(f"* {goal}: {said}", missed)

    def goal(self, runs: list[dict[str, Any]], name: str) -> str:
        return next(each for each in self.rows("aims", runs) if each.startswith(name))

    def test_what_was_measured_in_full_is_reached(self) -> None:
        """Each workload, each of its operations, each of the goal's stores; yes, if all are met."""
        names = ("create", "stat", "attributes", "list", "rename", "remove")
        runs = [run(store, 1, 0, "metadata-1000K") for store in ("tablestore-thin", *PEERS)]
        for each in runs:
            rate = 1000 if each["variant"] in PEERS else 1500
            each["result"]["phases"] = [phase(name=name, operations=rate) for name in names]
        self.assertTrue(self.goal(runs, "a million").endswith(" yes, 6 of 6, measured once"))
        del runs[0]["result"]["phases"][3]
        self.assertTrue(self.goal(runs, "a million").endswith(" not all measured, 5 of 5; 1 not"))

    def test_one_of_two_stores_is_not_all(self) -> None:
        def measured(store: str, operations: int) -> list[dict[str, Any]]:
            return [run(store, 1, operations, f"overwrite-64K-qd{depth}", name="overwrite")
                    for depth in (16, 64)] + [run(store, 1, operations, "new-64K-qd64")]

        others = [each for store in PEERS for each in measured(store, 1000)]
        ours = {store: measured(store, 1200) for store in OURS}
        for runs, said in ((ours["tablestore"], "provisioned only, 3 of 3"),
                           (ours["tablestore-thin"], "not all measured, 3 of 3; 3 not"),
                           ([*ours["tablestore"], *ours["tablestore-thin"]],
                            "yes, 6 of 6, measured once")):
            line = self.goal(runs + others, "new objects of 64K, depth 64")
            self.assertRegex(line, rf"\) +{said}$")

    def test_a_setting_that_was_not_measured_may_be_the_best(self) -> None:
        runs = [run(store, 1, 1300 if store in OURS else 1000, f"clients-rbd-4K-3osd-t{depth}")
                for store in (*OURS, *PEERS) for depth in (16, 64)]
        self.assertRegex(self.goal(runs, "rbd bench"), " yes, 4 of 4, measured once$")
        without = [each for each in runs if not each["variant"].endswith("-v2")]
        self.assertRegex(self.goal(without, "rbd bench"),
                         " not known, 4 of 4: BlueStore's hdd-v2, ssd-v2 not measured$")
        without[0]["result"]["phases"][0]["operations"] = 500
        self.assertRegex(self.goal(without, "rbd bench"), " no, 3 of 4$")

    def failed_once(self, store: str, cell: str = "restart-1000K") -> list[dict[str, Any]]:
        runs = [run(name, number, 1, cell) for name in (*OURS, "bluestore-ssd")
                for number in range(21)]
        for each in runs:
            each["result"]["values"] = {"mount seconds": 0.1}
            if each["variant"] == store and each["round"] == 1:
                each["result"] = {"failed": "'program --dir /some/where' ended with status 1"}
        return runs

    def test_failed_runs_are_named(self) -> None:
        said = " ".join(self.rows("results", self.failed_once("tablestore-thin")))
        self.assertIn("Medians of all 62 runs that did not fail", said)
        self.assertIn("1 failed:  * ``restart-1000K`` on tablestore-thin: 1 of 21 runs", said)
        self.assertNotIn("/some/where", said)
        self.assertIn("None failed.", " ".join(self.rows("results")))

    def test_a_goal_of_which_a_run_failed_is_not_reached(self) -> None:
        name = "restart after"
        self.assertTrue(self.goal(self.failed_once("kstore"), name).endswith(" yes, 2 of 2"))
        self.assertTrue(self.goal(self.failed_once("bluestore-ssd"), name).endswith(
            " yes, 2 of 2"))
        for store in OURS:
            runs = self.failed_once(store)
            self.assertTrue(self.goal(runs, name).endswith(" no, 2 of 2; 1 failed"))
            missed = next(each for each in self.rows("aims", runs) if each.startswith(f"* {name}"))
            self.assertIn("``restart-1000K``" + (" (provisioned)" if store == "tablestore" else "")
                          + ": 1 of 21 runs failed", missed)
        few = [each for each in self.failed_once("kstore") if each["round"] < 19]
        self.assertTrue(self.goal(few, name).endswith(" not known, 2 of 2: 19 of 20 rounds"))
        other = run("tablestore", 1, 1) | {"result": {"failed": "of another goal"}}
        self.assertTrue(self.goal(self.failed_once("kstore") + [other], name).endswith(
            " yes, 2 of 2"))
        nothing = [each | {"result": {"failed": "x"}} for each in self.failed_once("tablestore")]
        self.assertTrue(self.goal(nothing, name).endswith(" no; 42 failed; 2 not measured"))

    def stalled(self, store: str) -> list[dict[str, Any]]:
        cell = "sustained-overwrite-4K-qd16"
        runs = [run(name, 1, 0, cell) for name in (*OURS, "bluestore-ssd")]
        for each in runs:
            each["result"]["phases"] = [phase(name=f"overwrite {i}", operations=1000)
                                        for i in range(1, 5)]
            if each["variant"] == store:
                each["result"]["phases"][3] |= {"operations": 0, "payload_bytes": 0}
        return runs

    def test_a_store_that_stood_still_does_not_reach_it(self) -> None:
        runs = self.stalled("tablestore-thin")
        for name, said in (("4K random overwrites, last quarter of", r" 0\.00 .* 0/s .*"),
                           ("4K random overwrites, last quarter: p99", r" inf .* none done .*")):
            self.assertRegex(self.goal(runs, name), said + r" no, 0 of 2$")
        line = next(each for each in self.rows("sustained", runs) if " default " in each)
        self.assertRegex(line, r" 500 +500 +500 +0 +0\.00 +0\.00 +none done ")

    def test_whoever_works_beats_who_stands_still(self) -> None:
        line = self.goal(self.stalled("bluestore-ssd"), "4K random overwrites, last quarter of")
        self.assertRegex(line, r" \*\*inf\*\* .* 0/s \(ssd\) +not known, 2 of 2: .*")

    def test_an_interval_of_few_runs_is_called_their_range(self) -> None:
        def said(*counts: int) -> str:
            runs = [run(store, n, 100 + n) for store, count in
                    zip(("tablestore-thin", "bluestore-ssd"), counts) for n in range(count)]
            made = make(results(runs), CHECKOUT)
            caption = block(made.texts[DOCUMENT], ".rst", "throughput-by-size")
            note = re.search(r"in brackets, where there was more than one: (.*?)\. ",
                             block(made.texts[DOCUMENT], ".rst", "results"))
            readme = re.search(r"In brackets: (.*)\.\n",
                               block(made.texts[README], ".md", "figures"))
            lines = re.search(r"Thin lines are (.*)\.\n", caption)
            self.assertEqual({found and found[1] for found in (note, readme, lines)},
                             {note and note[1]})
            return note[1] if note else ""

        self.assertEqual(said(1, 1), "")
        self.assertEqual(said(3, 3), "the range of 3 runs")
        self.assertEqual(said(3, 5), "the range of 3 or 5 runs")
        self.assertEqual(said(6, 7), "95 % of the bootstrap's medians")
        self.assertEqual(said(1, 20), "95 % of the bootstrap's medians")
        self.assertEqual(said(5, 20), "the range of 5 runs, or 95 % of the bootstrap's medians of"
                                      " 6 or more")

    def test_sessions_say_how_often_and_how_long(self) -> None:
        for changes, said in (
                ({}, "1 round of 2 s; tablestore-thin"),
                ({"tries": 1}, "1 round of 2 s, at most 1 try; tablestore-thin"),
                ({"tries": 3, "level": "full"},
                 "1 round of 2 s (``rados-4K``: 60 s), at most 3 tries; tablestore-thin")):
            runs = [run("tablestore-thin", 1, 1000, cell) for cell in ("new-4K-qd16", "rados-4K")]
            one = Results(["2026-01-01T0000-full"], [SESSION | changes | {"runs": runs}])
            text = make(one, CHECKOUT).texts[DOCUMENT]
            self.assertIn(f"2 workloads, {said}\n", block(text, ".rst", "results"))
        one = Results(["2026-01-01T0000-full"],
                      [SESSION | {"level": "full", "runs": [run("kstore", 1, 9, "rados-4K")]}])
        self.assertIn("1 round of 60 s; kstore\n", make(one, CHECKOUT).texts[DOCUMENT])

    def test_what_was_not_measured_says_so(self) -> None:
        lines = self.rows("aims", [run("tablestore", 1, 5, "new-4K-qd16"),
                                   run("bluestore-ssd", 1, 1, "new-4K-qd16")])
        self.assertTrue(any(each.endswith("default not measured") for each in lines))
        self.assertTrue(any(each.startswith("rbd bench") and each.endswith("not measured")
                            for each in lines))
        for name in ("sustained", "clients"):
            self.assertEqual(self.rows(name, []), ["Not measured.", ""])

    def test_the_default_is_first_and_the_best_setting_is_named(self) -> None:
        lines = [each for each in self.rows("sustained") if each.startswith("rados bench")]
        self.assertEqual([each[16:31].split()[0] for each in lines],
                         ["default", "provisioned", "BlueStore"])
        self.assertIn("BlueStore hdd ", lines[2])
        for name in ("aims", "clients"):
            text = "\n".join(self.rows(name))
            self.assertLess(text.index(" default"), text.index(" provisioned"))

    def test_what_was_too_short_to_be_sustained_says_so(self) -> None:
        said = [each for each in self.rows("sustained") if each.startswith("* NOT SUSTAINED")]
        self.assertEqual(len(said), 3 * len((*OURS, *SETTINGS)))
        runs = [each for each in sample_runs() if each["variant"] == "tablestore-thin"]
        for each in runs:
            for part in each["result"]["phases"]:
                part["counters"] = {"tablestore.checkpoints": 5,
                                    "statistics.table_flushed_bytes": 1e9,
                                    "statistics.table_compacted_bytes": 1e9}
        self.assertNotIn("NOT SUSTAINED", "".join(self.rows("sustained", runs)))

    def test_a_disturbed_run_counts_as_any_other(self) -> None:
        runs = [run("tablestore-thin", n, operations, "rados-4K", name="write")
                for n, operations in enumerate((200, 1000, 1000))]
        runs[0]["result"]["stolen_shares"] = [0.5]
        runs += [run("bluestore-ssd", n, 400, "rados-4K", name="write") for n in range(3)]
        text = document_of(runs)
        self.assertIn("2.50 [0.50, 2.50]", text)
        self.assertRegex(text, r"Medians of all 6 runs.* more than 5 % of the processors\s+from 1 ")

    def test_there_are_no_exponents(self) -> None:
        made = make(results(sample_runs()), CHECKOUT)
        for path, text in made.texts.items():
            for name in re.findall(r"begin: ([\w-]+)", text):
                self.assertNotRegex(block(text, path.suffix, name), EXPONENT)
        for picture in made.pictures:
            self.assertNotRegex(draw.description(picture.panels), EXPONENT)

    def test_what_is_outside_of_the_blocks_stays(self) -> None:
        text = "a\n\n.. begin: x\n\nold\n\n.. end: x\n\nb\n"
        self.assertEqual(with_block(text, ".rst", "x", ["new \\1", "two"]),
                         "a\n\n.. begin: x\n\nnew \\1\ntwo\n\n.. end: x\n\nb\n")
        with self.assertRaisesRegex(ValueError, "no block 'y'"):
            block(text, ".rst", "y")

    def test_columns_are_as_wide_as_their_widest_cell(self) -> None:
        self.assertEqual(simple_table(("a", "long"), [("bcd", "e")]),
                         ["=== ====", "a   long", "=== ====", "bcd e", "=== ===="])

    def test_results_of_several_commits_are_refused(self) -> None:
        for commits in (("abc", "abd"), ("abc-dirty",)):
            with self.subTest(commits), tempfile.TemporaryDirectory() as folder:
                paths = []
                for commit in commits:
                    session = SESSION | {"runs": sample_runs(), "machine": SESSION["machine"] | {
                        "tablestore_commit": commit}}
                    paths.append(Path(folder, f"2026-01-01T0000-{commit}.json"))
                    paths[-1].write_text(json.dumps(session))
                done = subprocess.run([sys.executable, CHECKOUT / "bench/page", "--draft", folder,
                                       *paths], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (
                    1, "bench/page: the document is of one commit, and these are of "
                       f"{', '.join(commits)}\n"))
                self.assertEqual(len(list(Path(folder).iterdir())), len(commits))

    def page_of(self, folder: Path, commits: tuple[str, ...], *words: str | Path,
                checkout: Path = CHECKOUT) -> tuple[int, str]:
        paths = []
        for i, commit in enumerate(commits):
            session = SESSION | {"runs": [run("tablestore-thin", 1, 1)],
                                 "machine": SESSION["machine"] | {"tablestore_commit": commit}}
            paths.append(folder / f"2026-01-0{i + 1}T0000-full.json")
            paths[-1].write_text(json.dumps(session))
        done = subprocess.run([sys.executable, checkout / "bench/page", *words, *paths],
                              capture_output=True, text=True)
        return done.returncode, done.stderr

    def test_the_same_code_is_a_commits(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for commits in (("abc", "abd-dirty"), ("unknown",), ("abc", "unknown")):
                self.assertEqual(
                    self.page_of(Path(folder), commits, "--draft", folder, "--same-code"),
                    (1, "bench/page: the document is of one commit, and these are of "
                        f"{', '.join(commits)}\n"))

    @unittest.skipUnless(HAS_MATPLOTLIB, "there is no matplotlib here")
    def test_the_same_code_of_two_commits_is_shown(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.page_of(Path(folder), ("abc", "abd"), "--draft", folder,
                                          "--same-code"), (0, ""))

    def test_results_that_nobody_else_has_are_refused(self) -> None:
        """Said by a program that has no document to write."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copytree(CHECKOUT / "bench", folder / "bench",
                            ignore=shutil.ignore_patterns("results", "tests"))
            self.assertEqual(self.page_of(folder, ("abc",), checkout=folder), (
                1, f"bench/page: {folder}/2026-01-01T0000-full.json is not in bench/results, where"
                   " the document says that it is; move it there, or look at it with --draft"
                   " DIR\n"))
            status, said = self.page_of(folder, (), folder / RESULTS / "x.json", checkout=folder)
            self.assertEqual(status, 1)
            self.assertIn("x.json has no name as ./run bench gives them", said)


class Committed(unittest.TestCase):
    """The document in this checkout."""

    def copy(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="document."))
        self.addCleanup(shutil.rmtree, folder)
        for path in (DOCUMENT, README, *document.named_results(Path())):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / path, folder / path)
        shutil.copytree(CHECKOUT / FOLDER, folder / FOLDER)
        return folder

    def setUp(self) -> None:
        self.enterContext(contextlib.chdir(CHECKOUT))

    def test_it_is_what_its_results_give(self) -> None:
        self.assertEqual(list(differences(CHECKOUT)), [])

    def test_another_figure_is_noticed(self) -> None:
        folder = self.copy()
        for path in (DOCUMENT, README):
            text = (folder / path).read_text()
            at = re.search(r"\d\.\d\d", text[text.index("begin: "):])
            assert at
            place = text.index("begin: ") + at.start()
            changed = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1:]
            (folder / path).write_text(changed)
            self.assertEqual(list(differences(folder)), [f"{path} is not what its results give"])
            (folder / path).write_text(text)
        self.assertEqual(list(differences(folder)), [])

    def test_another_picture_is_noticed(self) -> None:
        folder = self.copy()
        first = sorted((folder / FOLDER).glob("*.svg"))[0]
        text = first.read_text()
        first.write_text(re.sub(r"(: operations/s|: bytes).*\n", r"\1 \n", text, count=1))
        shutil.copy(first, folder / FOLDER / "another.svg")
        self.assertEqual(list(differences(folder)), [
            f"{first.name} does not show what its results give", "nothing makes another.svg"])
        first.unlink()
        self.assertEqual(list(differences(folder))[0], f"there is no {first.name}")

    @unittest.skipUnless(HAS_MATPLOTLIB, "there is no matplotlib here")
    def test_its_pictures_are_as_they_are_drawn(self) -> None:
        for picture in make(Results.load(document.named_results(CHECKOUT)), CHECKOUT).pictures:
            file = CHECKOUT / FOLDER / picture.file
            with self.subTest(picture.name):
                if document.drawn_by(file) != draw.drawer():
                    self.skipTest(f"{picture.file} was drawn by {document.drawn_by(file)}, and"
                                  f" this is {draw.drawer()}; bench/page draws it anew")
                self.assertEqual(document.svg_of(picture), file.read_text())


class Pictures(unittest.TestCase):
    def test_the_best_of_bluestores_settings_has_one_line(self) -> None:
        runs = sample_runs()
        for picture in pictures(runs, summaries(runs)):
            self.assertFalse(picture.is_empty, picture.name)
            for panel in picture.panels:
                self.assertNotIn("bluestore-", " ".join(panel.names()))

    def test_a_ratio_has_its_interval(self) -> None:
        panel = panels.ratio_by_size(summaries(sample_runs()), "new", 16, "")
        mark = panel.series["tablestore-thin"][0]
        assert mark
        self.assertEqual(mark.value, 2)
        self.assertLess(mark.low, 2)
        self.assertGreater(mark.high, 2)

    def test_the_run_of_median_speed_is_drawn(self) -> None:
        runs = [run("kstore", n, 20 * n, "c", interval_operations=[n] * 20,
                    interval_ms=1000, seconds=20.0) for n in (5, 1, 3)]
        panel = panels.over_time(runs, "c", {"kstore": "kstore"}, 10, "")
        self.assertEqual(panel.curves, {"kstore": [(5, 3), (15, 3)]})

    def test_quarters_follow_each_other(self) -> None:
        long = run("kstore", 1, 0, "c")
        long["result"]["phases"] = [
            phase(name=f"w {i}", operations=60, seconds=60.0, interval_ms=1000,
                  interval_operations=[i] * 60) for i in range(1, 5)]
        panel = panels.over_time([long], "c", {"kstore": "kstore"}, 60, "")
        self.assertEqual(panel.curves["kstore"], [(0.5, 1), (1.5, 2), (2.5, 3), (3.5, 4)])
        self.assertEqual((panel.x_title, panel.steps), ("minutes", (1, 2, 3)))

    def test_stores_have_colours_of_their_own(self) -> None:
        colors = [draw.style(name)[0] for name in (*OURS, "bluestore-ssd", "kstore", "memstore")]
        self.assertEqual(len(set(colors)), len(colors))
        self.assertEqual(draw.style("best bluestore")[0], draw.style("bluestore-ssd")[0])

    @unittest.skipUnless(HAS_MATPLOTLIB, "there is no matplotlib here")
    def test_an_interval_without_end_is_drawn(self) -> None:
        for mark in (panels.Mark(100, 50, math.inf), panels.Mark(100, 0, 200)):
            for kind, log, level in (("points", True, None), ("points", False, 1),
                                     ("bars", False, 1)):
                panel = panels.Panel("t", "y", "", kind, ("a",), {"kstore": [mark]}, log=log,
                                     level=level)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    self.assertNotRegex(draw.svg([panel], 1, (4, 3)).split("</metadata>")[1],
                                        r"\b(inf|nan)\b")

    @unittest.skipUnless(HAS_MATPLOTLIB, "there is no matplotlib here")
    def test_the_same_results_give_the_same_bytes(self) -> None:
        runs = sample_runs()
        for picture in pictures(runs, summaries(runs)):
            with self.subTest(picture.name):
                first, second = document.svg_of(picture), document.svg_of(picture)
                self.assertEqual(first, second)
                self.assertNotIn("<dc:date>", first)
                self.assertIn(">depth 64: ratio<" if "size" in picture.name else "<text", first)


@unittest.skipUnless(HAS_MATPLOTLIB, "there is no matplotlib here")
class Report(unittest.TestCase):
    def report(self, runs: list[dict[str, Any]]) -> str:
        with contextlib.redirect_stdout(io.StringIO()):
            return page([SESSION], runs, summaries(runs))

    def test_it_begins_with_pictures_and_tables_follow(self) -> None:
        text = self.report(sample_runs())
        self.assertGreater(text.count("<svg"), 4)
        self.assertLess(text.rindex("</svg>"), text.index("<table>"))
        self.assertLess(text.rindex("</svg>"), text.index("<pre>"))
        self.assertIn(">new-4K-qd16<", text)
        self.assertIn("P&lt;&amp;&gt;", text)
        self.assertIn("2.00 [1.", text)     # the ratio
        self.assertIn("the last quarter is 0.84 of the first", text)

    def test_it_names_what_failed_and_shows_who_stood_still(self) -> None:
        runs = sample_runs()
        for each in runs:
            if each["variant"] in ("tablestore-thin", "bluestore-ssd") and each["round"] < 1:
                for part in each["result"]["phases"]:
                    part |= {"operations": 0, "payload_bytes": 0}
        session = SESSION | {"runs": [*runs, run("kstore", 1, 1) | {"result": {"failed": "x"}}]}
        text = page([session], runs, summaries(runs))
        self.assertIn("new-4K-qd16 on kstore: 1 of 4", text)
        self.assertNotIn("<h2>Failed", self.report(sample_runs()))

    def test_its_numbers_have_no_exponents(self) -> None:
        text = self.report(sample_runs())
        words = re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(style|metadata).*?</\1>", "", text))
        self.assertNotRegex(words, EXPONENT)

    def test_what_was_not_measured_has_no_picture(self) -> None:
        runs = [run("tablestore", 1, 10, "read-hot-4K-qd16", name="read hot"),
                run("bluestore-ssd", 1, 5, "read-hot-4K-qd16", name="read hot")]
        text = self.report(runs)
        self.assertEqual(text.count("<svg"), 1)
        self.assertNotIn("not measured", text)


if __name__ == "__main__":
    unittest.main()
