#!/usr/bin/env python3
"""Does the lint notice? Made-up trees, each of which breaks one rule of the tree.

    python3 src/test/tablestore/lint/test_lint.py

Ends with a line of counts in the format of the other suites.
"""
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

import tree
import unused


class Tree(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)

    def file(self, name: str, text: str = "") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def source(self, name: str, *includes: str, text: str = "") -> None:
        """A file of the store."""
        lines = [f'#include "os/tablestore/{each}"' for each in includes]
        self.file(f"{tree.STORE}/{name}", "\n".join([*lines, text]))

    def found(self, rule: Callable[[Path], Iterator[tree.Breach]]) -> list[str]:
        return [f"{path.relative_to(self.root).as_posix()}:{number}: {what}"
                for path, number, what in rule(self.root)]

    def of_store(self, rule: Callable[[Path], Iterator[tree.Breach]]) -> list[str]:
        return [each.removeprefix(f"{tree.STORE}/") for each in self.found(rule)]


class Includes(Tree):
    def breaches(self) -> list[str]:
        return self.of_store(tree.includes_go_down_only)

    def test_down_and_within_a_room_is_well(self) -> None:
        for name in ("engine/engine.h", "engine/format/extent.h", "rows/keys.h", "object/onode.h",
                     "txn/txn_context.h"):
            self.source(name)
        self.source("txn/txn_builder.cc", "txn/txn_context.h", "object/onode.h", "rows/keys.h",
                    "engine/engine.h", "engine/format/extent.h")
        self.source("TableStore.cc", "txn/txn_context.h")
        self.assertEqual(self.breaches(), [])

    def test_up_is_a_breach(self) -> None:
        self.source("txn/txn_context.h")
        self.source("object/onode.h", "txn/txn_context.h")
        self.assertEqual(self.breaches(), [
            "object/onode.h:1: includes txn/txn_context.h, which is above it"])

    def test_no_part_includes_the_face(self) -> None:
        self.source("TableStore.h")
        self.source("TableStore.cc", "TableStore.h")
        self.source("mounted_store.h", "TableStore.h")
        self.source("check/fsck.cc", "TableStore.h")
        self.assertEqual(self.breaches(), [
            "check/fsck.cc:1: includes TableStore.h, which is above it",
            "mounted_store.h:1: includes TableStore.h, which is above it"])

    def test_rooms_of_one_floor_do_not_know_each_other(self) -> None:
        self.source("operate/admin.h")
        self.source("check/fsck.cc", "operate/admin.h")
        self.assertEqual(self.breaches(), [
            "check/fsck.cc:1: includes operate/admin.h, which is beside it"])

    def test_the_engine_has_floors_too(self) -> None:
        for name in ("engine/engine.h", "engine/commit/commit_lane.h", "engine/io/disk.h"):
            self.source(name)
        self.source("engine/engine.cc", "engine/commit/commit_lane.h", "engine/io/disk.h")
        self.source("engine/table/table.h", "engine/engine.h")
        self.source("engine/container/containers.h", "engine/engine.h")
        self.source("engine/io/file_disk.cc", "engine/io/disk.h", "engine/commit/commit_lane.h")
        self.assertEqual(self.breaches(), [
            "engine/container/containers.h:1: includes engine/engine.h, which is above it",
            "engine/io/file_disk.cc:2: includes engine/commit/commit_lane.h, which is above it"])

    def test_an_include_may_be_relative(self) -> None:
        self.source("txn/txn_context.h")
        self.source("rows/keys.cc", text='  #  include "../txn/txn_context.h"')
        self.assertEqual(self.breaches(), [
            "rows/keys.cc:1: includes txn/txn_context.h, which is above it"])

    def test_a_new_room_has_to_be_put_on_a_floor(self) -> None:
        self.source("cellar/wine.h")
        self.source("engine/odds.h")
        self.assertEqual([each.split(": is on no floor")[0] for each in self.breaches()],
                         ["cellar/wine.h:1", "engine/odds.h:1"])

    def test_what_is_not_ours_is_not_judged(self) -> None:
        self.file("src/common/debug.h")
        self.source("rows/keys.h", text='#include "common/debug.h"\n#include <map>')
        self.assertEqual(self.breaches(), [])


class Friends(Tree):
    def breaches(self) -> list[str]:
        return self.of_store(tree.parts_have_no_friends)

    def test_a_friend_is_a_breach(self) -> None:
        self.source("object/onode.h", text="class Onode {\n  friend class tablestore::Cache;\n};")
        self.assertEqual(self.breaches(), [
            "object/onode.h:2: friend Cache: it needs a smaller interface instead"])

    def test_comments_and_make_ref_are_none(self) -> None:
        self.source("object/onode.h", text='// friend class A\n/* friend class B */ auto c = '
                                           '"friend class C";\n  FRIEND_MAKE_REF(Onode);')
        self.assertEqual(self.breaches(), [])

    def test_an_exception_is_for_one_friend_and_goes_with_it(self) -> None:
        friends = {("engine/engine.h", "Engine"): "", ("engine/engine.h", "Applier"): ""}
        self.source("engine/engine.h", text="friend class Engine;\nfriend class Other;")
        kept, tree.FRIENDS = tree.FRIENDS, friends
        self.addCleanup(setattr, tree, "FRIENDS", kept)
        self.assertEqual([each.split(": ")[1] for each in self.breaches()],
                         ["friend Other", "has no friend Applier any more"])

    def test_each_exception_has_a_reason(self) -> None:
        self.assertTrue(all(tree.FRIENDS.values()))


class Folders(Tree):
    def test_each_has_a_readme(self) -> None:
        self.source("rows/README.md")
        self.source("README.md")
        self.source("object/onode.h")
        self.file("env/common.sh")
        self.file("qa/cluster/README.md")
        self.file("qa/README.md")
        self.file("qa/cluster/package/__init__.py", '"""What it is for."""')
        self.file("qa/suites/rados/some.yaml")
        self.assertEqual(self.found(tree.folders_have_a_readme), [
            f"{tree.STORE}/object:1: has no README.md", "env:1: has no README.md"])

    CONTENTS = """
Other
=====

   src/os/tablestore/
     nothing/

Rooms
=====

From the top::

   src/os/tablestore/
     TableStore.h     the face
     check/  rows/    two of them, with other/ in between
     engine/          below

And::

   src/os/tablestore/engine/
     io/              the disk

Next
====

     cellar/
"""

    def test_the_contents_name_them(self) -> None:
        for folder in ("check", "rows", "engine", "engine/io"):
            self.source(f"{folder}/some.h")
        self.file(tree.CONTENTS, self.CONTENTS)
        self.assertEqual(self.found(tree.contents_name_the_folders), [])

    def test_the_contents_are_exact(self) -> None:
        for folder in ("check", "engine", "engine/log"):
            self.source(f"{folder}/some.h")
        self.file(tree.CONTENTS, self.CONTENTS)
        self.assertEqual([each.split(": ")[1] for each in
                          self.found(tree.contents_name_the_folders)],
                         [f"'Rooms' does not name {tree.STORE}/engine/log",
                          f"there is no folder {tree.STORE}/engine/io",
                          f"there is no folder {tree.STORE}/rows"])

    def test_the_contents_are_there(self) -> None:
        self.source("check/fsck.h")
        self.file(tree.CONTENTS, "Title\n=====\n")
        self.assertEqual(len(self.found(tree.contents_name_the_folders)), 1)


class Names(Tree):
    def test_files_that_are_named_exist(self) -> None:
        self.file("env/common.sh", "# see env/enter.sh and /tablestore/env/common.sh")
        self.file("qa/README.md", "`common.sh`, `gone.py`, env/*.sh, env/X/<n>, src/osd/OSD.cc")
        self.file("doc/dev/some.rst", "``bench/report``, env/common.sh.\n/x/env/other.sh")
        self.assertEqual(self.found(tree.named_files_exist), [
            "env/common.sh:1: there is no env/enter.sh",
            "qa/README.md:1: there is no env/X",
            "qa/README.md:1: there is no gone.py in any of our folders",
            "doc/dev/some.rst:1: there is no bench/report"])

    def test_results_are_cited_and_raw(self) -> None:
        for name in ("2026-01-01T0000-full.json", "2026-01-01T0100-fsck.json",
                     "2026-01-02T0000-full.json", "page.html"):
            self.file(f"bench/results/{name}")
        self.file("doc/dev/some.rst", "``2026-01-01T0000-full`` and ``2026-01-03T0000-quick``")
        self.file("bench/NOTES.md", "`2026-01-01T0100-fsck`, `2026-01-04T0000-sustained`")
        self.assertEqual([each.split(": ")[1] for each in self.found(tree.results_are_cited)], [
            "no document cites it",
            "is not a raw result",
            "a document cites 2026-01-03T0000-quick.json, which is not here",
            "a document cites 2026-01-04T0000-sustained.json, which is not here"])


class FuzzInputs(Tree):
    INPUT = "2aae6c35c94fcfb4"  # begins the SHA-1 of "hello world"

    def committed(self, name: str) -> None:
        self.file(f"{tree.FUZZ_INPUTS}/{name}", "hello world")

    def breaches(self) -> list[str]:
        return self.found(tree.fuzz_inputs_are_of_a_target)

    def test_each_target_has_some_and_each_is_a_targets(self) -> None:
        self.file("src/test/tablestore/fuzz/fuzz_label.cc")
        self.file("src/test/objectstore/tablestore/fuzz/fuzz_onode.cc")
        self.committed(f"label/{self.INPUT}")
        self.committed(f"onode/bug-{self.INPUT[:8]}")
        self.assertEqual(self.breaches(), [])

    def test_a_target_without_is_a_breach(self) -> None:
        self.file("src/test/tablestore/fuzz/fuzz_label.cc")
        (self.root / tree.FUZZ_INPUTS / "label").mkdir(parents=True)
        self.assertEqual(self.breaches(), [
            f"src/test/tablestore/fuzz/fuzz_label.cc:1: {tree.FUZZ_INPUTS} has no inputs of this "
            "target"])

    def test_inputs_of_a_former_target_are_a_breach(self) -> None:
        self.committed(f"shared_slot/{self.INPUT}")
        self.assertEqual(self.breaches(), [
            f"{tree.FUZZ_INPUTS}/shared_slot:1: there is no target fuzz_shared_slot.cc: nothing "
            "runs these"])

    def test_an_input_that_was_changed_is_a_breach(self) -> None:
        self.file("src/test/tablestore/fuzz/fuzz_label.cc")
        self.committed("label/5aae6c35c94fcfb4")
        self.committed("label/bug-2aa")
        self.assertEqual(self.breaches(), [
            f"{tree.FUZZ_INPUTS}/label/{name}:1: is not the input that it was: its name begins "
            "another SHA-1" for name in ("5aae6c35c94fcfb4", "bug-2aa")])


class Unused(Tree):
    PROGRAM = """
namespace tablestore {
struct Part {
  Part();
  virtual ~Part();
  virtual void through_the_table();
  void called();
  void only_by_tests();
};
Part::Part() {}
Part::~Part() {}
void Part::through_the_table() { called(); }
__attribute__((noinline)) void Part::called() { asm volatile(""); }
void Part::only_by_tests() {}
}
void not_ours() {}
"""
    CALLER = """
namespace tablestore { struct Part { Part(); virtual ~Part(); }; }
int main() { tablestore::Part part; }
"""

    @unittest.skipUnless(shutil.which("g++"), "no compiler here")
    def test_functions_that_no_object_refers_to(self) -> None:
        objects = []
        for name, text in (("part", self.PROGRAM), ("caller", self.CALLER)):
            self.file(f"{name}.cc", text)
            objects.append(self.root / f"{name}.o")
            subprocess.run(["g++", "-O2", "-fPIC", "-c", str(self.root / f"{name}.cc"), "-o",
                            str(objects[-1])], check=True)
        count, found = unused.unused_functions(objects)
        self.assertEqual(found, ["tablestore::Part::only_by_tests()"])
        # A constructor or destructor has two names at one place, a deleting one is its own.
        self.assertEqual(count, 6)

    def test_names_that_nothing_else_names(self) -> None:
        self.source("rows/keys.h", text="struct Keys {\n  int used = 0;\n  int read_only = 0;\n"
                                        "  bool idle() const { return true; }\n"
                                        "  bool of_a_base(int,\n       int) override;\n"
                                        "  bool for_ceph();\n  int bits : 20 = 0;\n};")
        self.source("rows/keys.cc", "rows/keys.h", text="int f(Keys k) { return k.used; }  // idle")
        self.file("patches/20.2/1.patch", "+  keys.for_ceph();")
        self.assertEqual(self.of_store(unused.declared_names_are_used), [
            "rows/keys.h:3: nothing uses read_only", "rows/keys.h:4: nothing uses idle",
            "rows/keys.h:8: nothing uses bits"])


def main() -> int:
    result = unittest.TextTestRunner(sys.stdout, verbosity=2).run(
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
