"""Inside the environment: builds the store and a part of its own tests with a sanitizer.

    python3 /tablestore/env/build_store.py address|thread

Only what is ours is compiled anew, the engine included: with Ceph's own flags, -O1 and the
sanitizer, a room to a compilation, since most of the time goes into Ceph's headers. The rest is
linked as Ceph's build has made it, without instrumentation. The program is
/unit/store-VARIANT/ceph_test_tablestore; qa/README.md says what is suppressed of the rest.
"""
import re
import shlex
import subprocess
import sys
from pathlib import Path

BUILD = Path("/ceph/build")
CEPH = Path("/ceph/src")
SOURCE = Path("/tablestore/src")
STORE = SOURCE / "os/tablestore"
TESTS = SOURCE / "test/objectstore/tablestore"
TARGET = "bin/ceph_test_tablestore"
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize=vptr",
                "-fno-sanitize-recover=undefined"],
    "thread": ["-fsanitize=thread"],
}
# What has threads, and memory that is shared; and errors in the middle of something, which take
# the thread sanitizer too long.
WITH_THREADS = ("test_alerts", "test_collections", "test_commit_here", "test_concurrency",
                "test_counters", "test_data_cache", "test_deep_reads", "test_failed_transaction",
                "test_omap", "test_read_helpers", "test_read_your_writes")
TEST_FILES = {"thread": WITH_THREADS,
              "address": (*WITH_THREADS, "test_damage", "test_damaged_changes",
                          "test_damaged_objects", "test_damaged_store_rows", "test_fsck",
                          "test_momentary_errors", "test_rotten_table_file", "test_scrub_reads")}
TEST_HELPERS = ("main", "store_fixture", "object_data_fixture", "collection_model",
                "child_program", "flaky_disk")
# Of Ceph itself: what counts the references to what the store's threads share, or hands it from
# one of them to the other. The thread sanitizer sees that only where it is instrumented. They are
# linked before Ceph's libraries, which then use them, too.
CEPH_FILES = {"address": (),
              "thread": ("common/buffer.cc", "common/Finisher.cc", "common/RefCountedObj.cc",
                         "common/Throttle.cc")}
# Names at file scope that another file of the room has too.
ALONE = frozenset({"object/reference_maps.cc", "engine/table/file_rows.cc"})
BEFORE_EACH = "#undef dout_subsys\n#undef dout_context\n#undef dout_prefix\n" \
              "#define dout_prefix *_dout\n"


def commands() -> list[str]:
    """What Ceph's build would run for the program; asking changes nothing of the build."""
    return subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", TARGET], check=True,
                          capture_output=True, text=True).stdout.splitlines()


def flags_of(lines: list[str], pattern: str) -> list[str]:
    line = next(each for each in lines if re.search(pattern, each))
    words = [word for word in shlex.split(line) if "ccache" not in word and word != "-MD"]
    for option in ("-MT", "-MF", "-o", "-c"):
        at = words.index(option)
        del words[at:at + 2]
    return [f"-I{SOURCE}", *words[1:]]


def rooms(variant: str) -> dict[str, list[Path]]:
    """What is compiled together, by a name."""
    found: dict[str, list[Path]] = {}
    for path in sorted(STORE.rglob("*.cc")):
        room = str(path.relative_to(STORE).parent).replace("/", "_").strip(".") or "face"
        alone = str(path.relative_to(STORE)) in ALONE
        found.setdefault(f"{room}_{path.stem}" if alone else room, []).append(path)
    for stem in TEST_FILES[variant] + TEST_HELPERS:
        found[f"tests_{stem}"] = [TESTS / f"{stem}.cc"]
    for name in CEPH_FILES[variant]:
        found[f"ceph_{Path(name).stem}"] = [CEPH / name]
    return found


def write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def link_command(lines: list[str], program: Path) -> str:
    line = next(each for each in reversed(lines) if f" -o {TARGET} " in each)
    line = re.sub(r"-Wl,--dependency-file=\S+", "", line)
    line = re.sub(r"\S*CMakeFiles/ceph_test_tablestore\.dir/\S*tablestore\S*\.o", "", line)
    # The archive's own version of what is compiled here is never asked for. Ours come first: of an
    # inline function that several objects have, the linker takes the first.
    line = line.replace(f" -o {TARGET} ", f" -o {program} ")
    return re.sub(r"(/usr/bin/(?:c|g)\+\+) ", r"\1 $sanitizers $in ", line, count=1)


def main() -> int:
    variant = sys.argv[1]
    sanitizers = SANITIZERS[variant]
    out = Path("/unit") / f"store-{variant}"
    out.mkdir(parents=True, exist_ok=True)
    lines = commands()
    ours = flags_of(lines, r"-c /ceph/src/os/tablestore/TableStore\.cc$")
    tests = flags_of(lines, r"-c /ceph/src/test/objectstore/tablestore/\S+\.cc$")
    # Fortified calls pass by the sanitizers' own versions of the functions.
    more = [*sanitizers, "-U_FORTIFY_SOURCE", "-O1", "-g1", "-fno-omit-frame-pointer"]
    program = out / "ceph_test_tablestore"
    # In Ninja's own words a dollar is two.
    link = link_command(lines, program).replace("$", "$$").replace("$$sanitizers", "$sanitizers")
    text = [
        f"sanitizers = {shlex.join(sanitizers)}",
        f"store_flags = {shlex.join(ours + more)}",
        f"test_flags = {shlex.join(tests + more)}",
        "rule cc\n  command = ccache g++ $flags -MD -MF $out.d -o $out -c $in\n"
        "  depfile = $out.d\n  deps = gcc\n  description = CC $in",
        f"rule link\n  command = cd {BUILD} && bash -c '{link.replace('$$in', '$in')}'",
    ]
    objects = []
    for name, files in rooms(variant).items():
        unit = out / f"{name}.cc"
        includes = "".join(f'{BEFORE_EACH}#include "{path}"\n' for path in files)
        write_if_changed(unit, includes)
        flags = "test_flags" if name.startswith("tests_") else "store_flags"
        objects.append(f"{out}/{name}.o")
        text.append(f"build {objects[-1]}: cc {unit}\n  flags = ${flags}")
    text.append(f"build {program}: link {' '.join(objects)}")
    write_if_changed(out / "build.ninja", "\n".join(text) + "\n")
    return subprocess.run(["ninja", "-C", str(out), *sys.argv[2:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
