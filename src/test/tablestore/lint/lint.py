#!/usr/bin/env python3
"""The rules of the code's style that a program can check, as one more test suite.

    python3 src/test/tablestore/lint/lint.py

Says where a rule is broken, one line each, and ends with a line of counts in the format of the
other suites: every rule is a test. What the rules are for is in CONTRIBUTING.md; those of the
tree, what may include what, are in tree.py, and what nothing uses is told by unused.py.
"""
import fnmatch
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
SIMULATORS = (ROOT / "src/test/tablestore/sim", ROOT / "src/test/objectstore/tablestore/sim")
sys.path[:0] = map(str, SIMULATORS)
sys.dont_write_bytecode = True

import mutants  # noqa: E402
import store_mutants  # noqa: E402
import tree  # noqa: E402
import unused  # noqa: E402

ENGINE = ROOT / "src/os/tablestore/engine"
CODE = [ROOT / each for each in ("src/os/tablestore", "src/test/tablestore",
                                 "src/test/objectstore/tablestore", "src/tools/tablestore")]
MAX_LINES = 1000
MAX_COLUMNS = 100

Breach = tuple[Path, int, str]


def files(*roots: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    for root in roots:
        yield from sorted(p for p in root.rglob("*") if p.suffix in endings and p.is_file())


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def cplusplus() -> Iterator[Path]:
    return files(*CODE, endings=(".h", ".cc"))


def headers() -> Iterator[Path]:
    return files(*CODE, endings=(".h",))


def checked() -> Iterator[Path]:
    yield from cplusplus()
    yield from files(ROOT / "env", ROOT / "bench", ROOT / "qa", ROOT / "packaging",
                     ROOT / "src/ceph-volume/plugin/tablestore", *CODE, endings=(".py",))


def files_are_short() -> Iterator[Breach]:
    for path in checked():
        count = len(lines(path))
        if count > MAX_LINES:
            yield path, count, f"{count} lines, at most {MAX_LINES}: split it by concept"


def lines_are_short() -> Iterator[Breach]:
    for path in checked():
        for number, line in enumerate(lines(path), 1):
            if len(line) > MAX_COLUMNS:
                yield path, number, f"{len(line)} columns, at most {MAX_COLUMNS}"


def engine_knows_no_ceph() -> Iterator[Breach]:
    include = re.compile(r'#include "(?!os/tablestore/engine/|rocksdb/)([^"]*)"')
    for path in files(ENGINE, endings=(".h", ".cc")):
        for number, line in enumerate(lines(path), 1):
            if found := include.match(line):
                yield path, number, f"the engine includes {found[1]}"


def nothing_is_left_to_do() -> Iterator[Breach]:
    marker = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    for path in checked():
        if path == Path(__file__).resolve():
            continue
        for number, line in enumerate(lines(path), 1):
            if found := marker.search(line):
                yield path, number, f"{found[1]}: do it, or open an issue"


def headers_use_no_namespace() -> Iterator[Breach]:
    for path in headers():
        for number, line in enumerate(lines(path), 1):
            if re.match(r"\s*using namespace\b", line):
                yield path, number, "'using namespace' in a header"


def headers_say_what_they_are_for() -> Iterator[Breach]:
    passed_over = re.compile(r"(// -\*-|// vim:|#|$|namespace\b|using\b|}|extern\b|"
                             r"(class|struct|enum) [^{]*;)")
    for path in headers():
        head = [line for line in lines(path) if not passed_over.match(line)]
        if not head or not head[0].lstrip().startswith(("//", "/*")):
            yield path, 1, "no comment says what this header is for"


def types_have_one_definition() -> Iterator[Breach]:
    # Two of one name in one namespace: the linker takes the functions of either for both.
    definition = re.compile(r"(?:class|struct|enum class) (?:alignas\(\d+\) )?(\w+)(?!\w|::)[^;]*$")
    first: dict[tuple[str, str], Path] = {}
    for path in headers():
        inside = ""
        for number, line in enumerate(lines(path), 1):
            if found := re.match(r"(?:inline )?namespace ([\w:]+) {", line):
                inside = found[1]
            elif found := definition.match(line):
                other = first.setdefault((inside, found[1]), path)
                if other != path:
                    yield path, number, f"{inside}::{found[1]} is defined in {other.name} as well"


def no_paths_of_a_machine() -> Iterator[Breach]:
    path_of_machine = re.compile(r"(?<![\w./-])/(root|work|home)/\w")
    everything = files(ROOT / "env", ROOT / "src", ROOT / "doc", ROOT / "qa", ROOT / "patches",
                       ROOT / "packaging",
                       endings=(".py", ".sh", ".h", ".cc", ".rst", ".yaml", ".in", ".patch"))
    for path in (*everything, *ROOT.glob("*.md"), ROOT / "run", ROOT / "CMakeLists.txt"):
        if path.suffix == ".patch":
            text = [line if line.startswith("+") else "" for line in lines(path)]
        else:
            text = lines(path)
        for number, line in enumerate(text, 1):
            if found := path_of_machine.search(line):
                yield path, number, f"a path of one machine: {found[0]}"


def places_of_mutants(path: Path) -> dict[str, int]:
    return {found[1]: number for number, line in enumerate(lines(path), 1)
            if (found := re.match(r'\s*mutant\("(\w+)"', line))}


def mutants_fit_the_source() -> Iterator[Breach]:
    """A mutant whose text is not there any more breaks nothing, and is only told when it is tried,
    which takes long."""
    for module, sources in ((mutants, ENGINE), (store_mutants, ENGINE.parent)):
        path = Path(module.__file__)
        heads = places_of_mutants(path)
        for each in module.MUTANTS:
            changed: dict[str, str] = {}
            for edit in each.edits:
                source = sources / edit.path
                text = changed.get(edit.path) or (
                    source.read_text(encoding="utf-8") if source.is_file() else "")
                if text.count(edit.before) != 1:
                    yield path, heads.get(each.name, 1), (
                        f"{each.name}: found {text.count(edit.before)} times in {edit.path}: "
                        f"{edit.before.strip()[:60]!r}")
                if not edit.path.endswith(".cc"):
                    yield path, heads.get(each.name, 1), (
                        f"{each.name}: {edit.path} is not compiled by itself: what includes it "
                        "would stay as it is")
                changed[edit.path] = text.replace(edit.before, edit.after)


def mutants_have_their_tests() -> Iterator[Breach]:
    """The same of the tests that are to find it. Inputs of parsers have no names."""
    names = {f"{suite}.{name}" for path in cplusplus() for suite, name in
             re.findall(r"\bTEST(?:_F|_P)?\((\w+), (\w+)\)", path.read_text(encoding="utf-8"))}
    names |= {f"{prefix}{name}/0" for name in names for prefix in ("", "/")}
    for module in (mutants, store_mutants):
        path = Path(module.__file__)
        for each in module.MUTANTS:
            for pattern in filter(None, (each.tests or "").split(":")):
                if not pattern.startswith("fuzz_") and not fnmatch.filter(names, pattern):
                    yield path, places_of_mutants(path).get(each.name, 1), (
                        f"{each.name}: there is no test {pattern}")


def every_option_is_documented() -> Iterator[Breach]:
    options = ROOT / "src/common/options/tablestore.yaml.in"
    reference = ROOT / "doc/rados/configuration/tablestore-config-ref.rst"
    known = set(re.findall(r"^- name: (\w+)", options.read_text(encoding="utf-8"), re.M))
    documented = set(re.findall(r"^\.\. confval:: (\w+)", reference.read_text(encoding="utf-8"),
                                re.M))
    for name in sorted(known - documented):
        yield options, 1, f"{name} is not in {reference.name}"
    for name in sorted(documented - known):
        yield reference, 1, f"there is no option {name}"


def tests_named_in_the_docs_exist() -> Iterator[Breach]:
    defined = set()
    for path in cplusplus():
        defined |= {".".join(found) for found in
                    re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)",
                               path.read_text(encoding="utf-8"), re.M)}
    for path in files(ROOT / "doc", endings=(".rst",)):
        for number, line in enumerate(lines(path), 1):
            for name in re.findall(r"``([A-Z]\w+\.[A-Z]\w+)``", line):
                if name not in defined:
                    yield path, number, f"there is no test {name}"


RULES = (files_are_short, lines_are_short, engine_knows_no_ceph, nothing_is_left_to_do,
         headers_use_no_namespace, headers_say_what_they_are_for, types_have_one_definition,
         no_paths_of_a_machine, mutants_fit_the_source, mutants_have_their_tests,
         every_option_is_documented, tests_named_in_the_docs_exist)


def rules() -> Iterator[tuple[str, Callable[[], Iterator[Breach]]]]:
    for rule in RULES:
        yield rule.__name__, rule
    for of_tree in (*tree.RULES, unused.declared_names_are_used):
        yield of_tree.__name__, partial(of_tree, ROOT)


def main() -> int:
    failed = passed = 0
    for name, rule in rules():
        breaches = list(rule())
        for path, number, what in breaches:
            print(f"{path.relative_to(ROOT)}:{number}: {what}")
        passed += not breaches
        failed += bool(breaches)
        if breaches:
            print(f"[  FAILED  ] lint: {name.replace('_', ' ')}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
