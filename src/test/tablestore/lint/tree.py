"""What the folders of the store are, and which may know which: the rules of the tree.

`FLOORS` is the plan of src/os/tablestore, from the top: a file includes files of its own room and
of the floors below it. Rooms of one floor do not know each other. Every rule takes the root of a
checkout, so that the tests can show it a made-up tree; it yields each breach with its place.
"""
import hashlib
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

Breach = tuple[Path, int, str]
Room = tuple[str, ...]  # patterns of files, below STORE

STORE = "src/os/tablestore"

# A pattern without "/" is of files in STORE itself; a folder stands for what is directly in it.
FLOORS: tuple[tuple[Room, ...], ...] = (
    # The face. No part includes it: only os/ObjectStore.cc, by a patch, and tests.
    (("TableStore*.h", "TableStore*.cc"),),
    # The parts of a mounted store, and the order in which they are made.
    (("mounted_store*.h", "mounted_store*.cc"),),
    (("check/",), ("operate/",)),
    (("compaction/",),),
    (("txn/",),),
    (("omap/",), ("memory/",)),
    (("object/",),),
    (("collection/",),),
    (("space/",),),
    (("home/",),),
    (("rows/",),),
    # The engine: how its rooms hang together.
    (("engine/engine.cc", "engine/txn.cc", "engine/recovery.*", "engine/salvage.*",
      "engine/log_dump.*"),),
    (("engine/commit/",), ("engine/space/",)),
    (("engine/table/",),),
    # The engine's face for the store. Its types (Txn, Family, Reporter) are those of the rooms
    # above, which hand transactions on; what is below does not know what a transaction is.
    (("engine/engine.h",),),
    (("engine/container/",), ("engine/log/",)),
    (("engine/counters.h",),),
    (("engine/format/",),),
    (("engine/io/",),),
    # Words for all: what an error is, what must hold, how threads run.
    (("engine/status.h", "engine/require.h", "engine/thread.*", "engine/threads.*",
      "engine/own_threads.*", "engine/troubles.h"),),
)

# (file, friend): why. Who is not here asks for a smaller interface instead. Ceph's FRIEND_MAKE_REF,
# which lets ceph::make_ref() call a private constructor, is none of these.
FRIENDS: dict[tuple[str, str], str] = {
    ("engine/engine.h", "Engine"): "puts a Txn's data writes into it; its client never sees them",
    ("engine/engine.h", "CommitLane"): "reads a Txn's rows, writes and frees, and numbers it",
    ("engine/engine.h", "Applier"): "takes a Txn's rows to the table",
}

# Folders that need no README: Ceph's own places, and generated inputs.
README_ROOTS = (STORE, "src/test/tablestore", "src/test/objectstore/tablestore",
                "src/tools/tablestore", "src/ceph-volume/plugin/tablestore", "env", "qa",
                "packaging", "bench", "patches", "doc")
NO_README = ("qa/objectstore", "qa/suites", "qa/suites/*", "src/test/tablestore/fuzz/corpus*",
             "bench/results", "patches/*", "doc/*", "packaging/debian", "*/__pycache__")

FUZZ = ("src/test/tablestore/fuzz", "src/test/objectstore/tablestore/fuzz")
FUZZ_INPUTS = "src/test/tablestore/fuzz/corpus"

CONTENTS = "doc/dev/tablestore.rst"
CONTENTS_TITLE = "Rooms"


def sources(root: Path) -> Iterator[Path]:
    yield from sorted(p for p in (root / STORE).rglob("*") if p.suffix in (".h", ".cc"))


def place_of(name: str) -> tuple[int, int] | None:
    """Floor (0 is the top) and room of a file, its name relative to STORE."""
    folder, _, file = name.rpartition("/")
    for floor, rooms in enumerate(FLOORS):
        for room, patterns in enumerate(rooms):
            for pattern in patterns:
                of_folder, _, of_file = pattern.rpartition("/")
                if folder == of_folder and fnmatch(file, of_file or "*"):
                    return floor, room
    return None


def included(path: Path, root: Path) -> Iterator[tuple[int, str]]:
    """The files below STORE that a file includes, with the line; names relative to STORE."""
    store = root / STORE
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if found := re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line):
            for place in (root / "src" / found[1], path.parent / found[1]):
                if place.resolve().is_relative_to(store.resolve()) and place.is_file():
                    yield number, place.resolve().relative_to(store.resolve()).as_posix()
                    break


def includes_go_down_only(root: Path) -> Iterator[Breach]:
    for path in sources(root):
        name = path.relative_to(root / STORE).as_posix()
        here = place_of(name)
        if here is None:
            yield path, 1, "is on no floor: FLOORS in tree.py says which files there are"
            continue
        for number, other in included(path, root):
            there = place_of(other)
            if there is None or here == there or there[0] > here[0]:
                continue
            relation = "beside it" if there[0] == here[0] else "above it"
            yield path, number, f"includes {other}, which is {relation}"


def code_lines(path: Path) -> list[str]:
    """The lines without comments and without what is in quotes."""
    text = path.read_text(encoding="utf-8")

    def blank(found: re.Match[str]) -> str:
        return '""' if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0])

    return re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', blank, text, flags=re.S).splitlines()


def parts_have_no_friends(root: Path) -> Iterator[Breach]:
    met = set()
    for path in sources(root):
        name = path.relative_to(root / STORE).as_posix()
        for number, line in enumerate(code_lines(path), 1):
            if found := re.search(r"\bfriend\b\s*(?:class\b|struct\b)?\s*([\w:]*)", line):
                friend = found[1].rpartition("::")[2]
                met.add((name, friend))
                if (name, friend) not in FRIENDS:
                    yield path, number, f"friend {friend}: it needs a smaller interface instead"
    for name, friend in sorted(set(FRIENDS) - met):
        if (root / STORE / name).exists():
            yield root / STORE / name, 1, f"has no friend {friend} any more: not an exception"


def folders(root: Path, *below: str) -> Iterator[Path]:
    for each in below:
        if (root / each).is_dir():
            yield root / each
            yield from sorted(p for p in (root / each).rglob("*") if p.is_dir())


def folders_have_a_readme(root: Path) -> Iterator[Breach]:
    for folder in folders(root, *README_ROOTS):
        name = folder.relative_to(root).as_posix()
        if any(fnmatch(name, pattern) for pattern in NO_README):
            continue
        package = folder / "__init__.py"
        if package.is_file() and '"""' in package.read_text(encoding="utf-8"):
            continue  # a package of Python says there what it is for
        if not (folder / "README.md").is_file():
            yield folder, 1, "has no README.md"


def section(text: str, title: str) -> Iterator[tuple[int, str]]:
    """The lines of a section of a document, up to the next heading of its rank."""
    rows = text.splitlines()
    for at, row in enumerate(rows[:-1]):
        if row == title and re.fullmatch(r"([=\-~])\1{2,}", rows[at + 1]):
            mark = rows[at + 1][0]
            for number in range(at + 2, len(rows)):
                if re.fullmatch(re.escape(mark) + "{3,}", rows[number]):
                    return
                yield number + 1, rows[number]
            return


def contents_name_the_folders(root: Path) -> Iterator[Breach]:
    """The table of contents: literal blocks that begin with a folder's path and then name what is
    in it, each folder with a "/" at the beginning of its line."""
    document = root / CONTENTS
    here = {p.relative_to(root).as_posix() for p in folders(root, STORE)} - {STORE}
    named: dict[str, int] = {}
    base = ""
    rows = list(section(document.read_text(encoding="utf-8"), CONTENTS_TITLE))
    for number, row in rows:
        if not row.startswith(" "):
            base = base if not row else ""
        elif found := re.match(r"\s+(src/os/tablestore(?:/\w+)*)/\s*$", row):
            base = found[1]
        elif base:
            first = re.match(r"\s+((?:\w+/\s+)*)", row + " ")
            for folder in re.findall(r"\w+", first[1] if first else ""):
                named[f"{base}/{folder}"] = number
    if not rows:
        yield document, 1, f"has no section '{CONTENTS_TITLE}', which names the folders of {STORE}"
        return
    for name in sorted(here - set(named)):
        yield document, rows[0][0], f"'{CONTENTS_TITLE}' does not name {name}"
    for name in sorted(set(named) - here):
        yield document, named[name], f"there is no folder {name}"


def documents(root: Path) -> Iterator[Path]:
    """What people read: documents, and the scripts and programs that name other files."""
    for pattern in ("*.md", ".ci/run", "run", "CMakeLists.txt", "env/**/*", "qa/**/*", "bench/**/*",
                    "doc/**/*", "patches/README.md", "src/**/*.md", "src/**/*.py",
                    "src/**/CMakeLists.txt"):
        yield from sorted(p for p in root.glob(pattern) if p.is_file() and p.suffix in (
            ".md", ".rst", ".py", ".sh", ".txt", "") and p.parent.name != "__pycache__")


def named_files_exist(root: Path) -> Iterator[Breach]:
    """A path of ours in a document or script; in a README also the mere name of a file."""
    ours = re.compile(r"(?<![\w./$}-])(?:/tablestore/)?"
                      r"((?:env|qa|bench|patches|doc|src/os/tablestore|src/test/tablestore|"
                      r"src/test/objectstore/tablestore)/[\w./-]*\w)")
    named = re.compile(r"`([\w-]+\.(?:h|cc|py|sh|cmake|md))`")
    names = {p.name for folder in README_ROOTS for p in (root / folder).rglob("*.*")}
    for path in documents(root):
        if path.name == "test_lint.py":
            continue  # made-up trees
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for found in ours.finditer(line):
                rest = line[found.end():found.end() + 1]
                if rest not in ("*", "{", "<", "$", "_") and not (root / found[1]).exists():
                    yield path, number, f"there is no {found[1]}"
            for name in named.findall(line) if path.name == "README.md" else ():
                if name not in names:
                    yield path, number, f"there is no {name} in any of our folders"


def results_are_cited(root: Path) -> Iterator[Breach]:
    """bench/results has the raw figures that a document names, and nothing that a program makes
    of them."""
    documents = [*(root / "doc").rglob("*.rst"), root / "README.md", root / "bench/README.md",
                 root / "bench/NOTES.md"]
    text = "".join(p.read_text(encoding="utf-8") for p in documents if p.is_file())
    results = root / "bench/results"
    for path in sorted(results.iterdir()) if results.is_dir() else ():
        if path.suffix != ".json":
            yield path, 1, "is not a raw result: bench/report makes pages of these at any time"
        elif path.stem not in text:
            yield path, 1, "no document cites it"
    for name in sorted(set(re.findall(r"\b\d{4}-\d\d-\d\dT\d{4}-[a-z]+\b", text))):
        if not (results / f"{name}.json").is_file():
            yield results, 1, f"a document cites {name}.json, which is not here"


def fuzz_inputs_are_of_a_target(root: Path) -> Iterator[Breach]:
    """Each fuzz target has committed inputs, and no others are there: nothing would run them. An
    input has the name that libFuzzer gave it, the beginning of its SHA-1: it is as it was found."""
    targets = {path.stem.removeprefix("fuzz_"): path
               for folder in FUZZ for path in (root / folder).glob("fuzz_*.cc")}
    here = {path.parent.name for path in (root / FUZZ_INPUTS).glob("*/*")}
    for name in sorted(set(targets) - here):
        yield targets[name], 1, f"{FUZZ_INPUTS} has no inputs of this target"
    for name in sorted(here - set(targets)):
        yield root / FUZZ_INPUTS / name, 1, f"there is no target fuzz_{name}.cc: nothing runs these"
    for path in sorted((root / FUZZ_INPUTS).glob("*/*")):
        name = path.name.removeprefix("bug-")
        if len(name) < 8 or not hashlib.sha1(path.read_bytes()).hexdigest().startswith(name):
            yield path, 1, "is not the input that it was: its name begins another SHA-1"


RULES = (includes_go_down_only, parts_have_no_friends, folders_have_a_readme,
         contents_name_the_folders, named_files_exist, results_are_cited,
         fuzz_inputs_are_of_a_target)
