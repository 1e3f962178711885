#!/usr/bin/env python3
"""Functions of the store that nothing calls but tests, told by what the compiler made.

    python3 src/test/tablestore/lint/unused.py [OBJECT or ARCHIVE ...]

Reads the objects of Ceph's build (libos.a and those of tools; or others, all of which are taken as
one program), in a second. A function is used when any of the objects refers to it, a table of
virtual functions included. Ends with a line of counts in the format of the other suites, as one
test; `./run test store` runs it.
What has no symbol, a constant or an inline function, is judged by its name: a rule of lint.py.
"""
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import tree

BUILD = Path("/ceph/build")
LIBRARY = BUILD / "lib/libos.a"
# Programs of operators, which are what some functions are for.
PROGRAMS = ("src/tools/tablestore/CMakeFiles/ceph-tablestore-tool.dir/*.o",
            "src/tools/CMakeFiles/ceph-kvstore-tool.dir/*.o")
OURS = re.compile(r"(?:tablestore::|TableStore::)")

# What may go unused: the beginning of a function, without its arguments, or a name: why.
KEPT = {
    "known_compat": "feature bits that need no check; says which bits there are",
    "tablestore::ReferenceMaps::count": "what is in memory, for tests of what is forgotten",
}


def symbols_and_references(text: str) -> tuple[dict[tuple[str, str, str], set[str]], set[str]]:
    """Of what `readelf -rsW` prints: functions by their place (one function can have several
    names there), and all names that something refers to."""
    functions: dict[tuple[str, str, str], set[str]] = {}
    references: set[str] = set()
    member, is_for_no_call = "", False
    for line in text.splitlines():
        words = line.split()
        if line.startswith("File: "):
            member = words[1]
        elif line.startswith("Relocation section"):
            is_for_no_call = ".eh_frame" in line or ".debug_" in line
        elif len(words) >= 5 and words[2].startswith("R_") and not is_for_no_call:
            references.add(words[4])
        elif len(words) == 8 and words[3:5] == ["FUNC", "GLOBAL"] and words[6] != "UND":
            functions.setdefault((member, words[6], words[1]), set()).add(words[7])
    return functions, references


def demangled(names: Iterable[str]) -> list[str]:
    return subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True,
                          text=True).stdout.splitlines()


def unused_functions(files: Iterable[Path]) -> tuple[int, list[str]]:
    """How many functions are ours, and which of them nothing refers to."""
    text = "\n".join(
        f"File: {file}\n" + subprocess.run(["readelf", "-rsW", str(file)], check=True,
                                           capture_output=True, text=True).stdout
        for file in files)
    functions, references = symbols_and_references(text)
    places = [(names, whole) for names, whole in
              zip(functions.values(), demangled(min(names) for names in functions.values()))
              if OURS.match(whole)]
    unused = sorted({whole for names, whole in places if not names & references})
    return len(places), [each for each in unused if not each.startswith(tuple(KEPT))]


def declared_names_are_used(root: Path) -> Iterator[tree.Breach]:
    """What a header of the store declares, and nothing else in the store or a patch names."""
    places: dict[str, list[tuple[Path, int]]] = {}
    declared: dict[str, tuple[Path, int]] = {}
    declaration = re.compile(r"\s*(?:class|struct|enum class|enum) (\w+)(?![\w;])|"
                             r"\s*(?:[\w:]+(?:<.*>)?[\s&*]+)+([A-Za-z_]\w*)(?:\s*:\s*\d+)?"
                             r"\s*(?:[;({\[]|=[^=])")
    for path in tree.sources(root):
        lines = tree.code_lines(path)
        for number, line in enumerate(lines, 1):
            if line.lstrip().startswith("#"):
                continue
            for name in re.findall(r"[A-Za-z_]\w*", line):
                places.setdefault(name, []).append((path, number))
            found = declaration.match(line)
            if found and path.suffix == ".h" and not re.match(r"\s*(?:return|throw)\b", line):
                whole = re.match(r"[^;{]*", "\n".join(lines[number - 1:]))
                if whole and not re.search(r"\boverride\b|= delete", whole[0]):
                    declared[found[1] or found[2]] = (path, number)
    patched = set(re.findall(r"\w+", "\n".join(
        line for patch in (root / "patches").rglob("*.patch")
        for line in patch.read_text(encoding="utf-8").splitlines() if line.startswith("+"))))
    for name, (path, number) in declared.items():
        if len(places[name]) == 1 and name not in patched and name not in KEPT:
            yield path, number, f"nothing uses {name}"


def main(files: list[Path]) -> int:
    if missing := [str(file) for file in files if not file.exists()]:
        sys.exit(f"not built: {' '.join(missing)}")
    count, unused = unused_functions(files)
    for each in unused:
        print(f"nothing but tests, if anything, calls {each}")
    if not count:
        print("no function of the store in these objects")
    failed = bool(unused) or not count
    print(f"{count} functions looked at")
    print(f"{int(not failed)} passed, {int(failed)} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main([Path(each) for each in sys.argv[1:]] or
                  [LIBRARY, *(each for program in PROGRAMS for each in BUILD.glob(program))]))
