#!/usr/bin/env python3
"""Fuzzes what reads bytes from the disk: runs the targets that env/build_fuzz.sh has built.

    fuzz.py [TARGET ...] [--minutes M]    searches, M minutes each; what it reaches is kept
    fuzz.py TARGET FILE                   one input, with all that the sanitizers say
    fuzz.py --fixed [TARGET ...]          the committed inputs, and fixed seeds: a test suite
    fuzz.py --fixed --seed N [TARGET ...] the same with another seed, a tenth of the runs
    fuzz.py --coverage [TARGET ...]       what the inputs of all kinds reach, by file
    fuzz.py --merge [TARGET ...]          makes the committed inputs anew of what was kept

Inputs come from three places: the seeds, which a program makes with the engine's and the store's
own encoders; the committed ones, in src/test/tablestore/fuzz/corpus, which reach what the seeds
alone do not; and what earlier searches have kept below /state/fuzz. Runs inside the environment.
"""
import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/tablestore")
CORPUS = ROOT / "src/test/tablestore/fuzz/corpus"
STATE = Path("/state/fuzz")
HOST_STATE = Path(os.environ.get("TABLESTORE_HOST_STATE", "/state")) / "fuzz"
PLACES = ("src/test/tablestore/fuzz", "src/test/objectstore/tablestore/fuzz")
DAMAGE = "damage"  # no target of libFuzzer's: random damage of whole stores, one seed each
# A target that says nothing else is fast. Whole stores are opened and read, that takes its time.
FIXED_RUNS = {"allocation": 3000, "log_chain": 5000, "store": 150, DAMAGE: 300}
FIXED_RUNS_USUAL = 20000
COMMITTED_BYTES_MAX = 200_000  # in all targets
LIMITS = ["-timeout=30", "-rss_limit_mb=2500", "-malloc_limit_mb=256"]
SANITIZERS = {
    # RocksDB and Ceph's libraries are not instrumented: their containers are not annotated.
    "ASAN_OPTIONS": "detect_container_overflow=0:detect_leaks=0:detect_odr_violation=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


@dataclass
class Outcome:
    ok: bool
    output: str

    def last(self, pattern: str) -> str:
        found = re.findall(pattern, self.output)
        return found[-1] if found else "-"


def build_tree(variant: str) -> Path:
    return Path("/unit") / variant


def programs(tree: Path) -> dict[str, Path]:
    found = {}
    for place in PLACES:
        for path in sorted((tree / place).glob("fuzz_*")):
            if path.is_file() and os.access(path, os.X_OK):
                found[path.name.removeprefix("fuzz_")] = path
    found[DAMAGE] = tree / "tablestore_damage"
    return found


def run(command: list[str], directory: Path, **more: str) -> Outcome:
    directory.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=directory, env=os.environ | SANITIZERS | more,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return Outcome(done.returncode == 0, done.stdout.decode(errors="replace"))


def make_seeds(tree: Path, directory: Path) -> None:
    for program in (tree / PLACES[0] / "tablestore_fuzz_seeds",
                    tree / PLACES[1] / "tablestore_store_fuzz_seeds"):
        made = run([str(program), str(directory)], directory)
        if not made.ok:
            sys.exit(f"{program.name} fails:\n{made.output}")


def inputs(target: str, *more: Path) -> list[str]:
    places = [*more, STATE / "seeds" / target, CORPUS / target]
    return [str(p) for p in places if p.is_dir()]


def kept(target: str) -> Path:
    directory = STATE / target / "corpus"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def search(target: str, program: Path, minutes: float) -> bool:
    where = STATE / target
    if target == DAMAGE:
        outcome = run([str(program), "--minutes", str(minutes), "--seed",
                       str(int.from_bytes(os.urandom(4), "little"))], where)
    else:
        outcome = run([str(program), *inputs(target, kept(target)), *LIMITS,
                       f"-max_total_time={round(minutes * 60)}", "-print_final_stats=1"], where)
    show(target, outcome)
    return outcome.ok


def show(target: str, outcome: Outcome) -> None:
    if target == DAMAGE:
        print(f"{target}: {outcome.output.strip()}" if outcome.ok else outcome.output, flush=True)
        return
    runs = outcome.last(r"stat::number_of_executed_units: (\d+)")
    print(f"{target:12} {runs:>12} runs  cov {outcome.last(r'cov: ([0-9]+)'):>5}  "
          f"inputs {outcome.last(r'corp: ([0-9]+)'):>5}  {'clean' if outcome.ok else 'FAILS'}",
          flush=True)
    if outcome.ok:
        return
    print(outcome.output[-6000:])
    artifact = outcome.last(r"Test unit written to \./(\S+)")
    if artifact != "-":
        print(f"replay: ./run fuzz {target} {HOST_STATE / target / artifact}")


def replay(target: str, program: Path, path: str) -> bool:
    outcome = run([str(program), *LIMITS, path], STATE / target)
    print(outcome.output)
    return outcome.ok


def fixed(target: str, program: Path, seed: int | None) -> bool:
    runs = FIXED_RUNS.get(target, FIXED_RUNS_USUAL)
    if seed is not None:
        runs = max(1, runs // 10)
    where = STATE / f"fixed.{os.getpid()}" / target
    if target == DAMAGE:
        command = [str(program), "--seeds", str(runs), "--seed", str(seed or 1)]
    else:
        command = [str(program), *inputs(target), *LIMITS, f"-seed={seed or 1}", f"-runs={runs}",
                   "-print_final_stats=1"]
    outcome = run(command, where)
    show(target, outcome)
    if outcome.ok:
        subprocess.run(["rm", "-rf", str(where)], check=True)
    return outcome.ok


def merge(targets: dict[str, Path]) -> bool:
    """Of what was kept, the inputs that reach more than the seeds do, small ones first."""
    left = COMMITTED_BYTES_MAX
    for target, program in targets.items():
        if target == DAMAGE:
            continue
        seeds, committed = STATE / "seeds" / target, CORPUS / target
        chosen = STATE / target / "chosen"
        subprocess.run(["rm", "-rf", str(chosen)], check=True)
        chosen.mkdir(parents=True)
        for seed in seeds.iterdir():
            (chosen / f"seed-{seed.name}").write_bytes(seed.read_bytes())
        places = [str(p) for p in (committed, kept(target)) if p.is_dir()]
        # What is reached counts, not how often: few files.
        outcome = run([str(program), "-merge=1", "-use_counters=0", *LIMITS, str(chosen), *places],
                      STATE / target)
        if not outcome.ok:
            print(outcome.output)
            return False
        committed.mkdir(parents=True, exist_ok=True)
        for old in committed.iterdir():
            if not old.name.startswith("bug-"):
                old.unlink()
        share = left // (len(targets) - list(targets).index(target))
        for path in sorted(chosen.iterdir(), key=lambda p: p.stat().st_size):
            size = path.stat().st_size
            if path.name.startswith("seed-") or size > share:
                continue
            share -= size
            left -= size
            (committed / path.name[:16]).write_bytes(path.read_bytes())
        print(f"{target}: {len(list(committed.iterdir()))} inputs")
    return True


def coverage(targets: dict[str, Path], tree: Path) -> bool:
    work = STATE / "coverage"
    subprocess.run(["rm", "-rf", str(work)], check=True)
    for target, program in targets.items():
        profile = {"LLVM_PROFILE_FILE": str(work / f"{target}.profraw")}
        command = ([str(program), "--seeds", str(FIXED_RUNS[DAMAGE])] if target == DAMAGE else
                   [str(program), *inputs(target, kept(target)), *LIMITS, "-runs=0"])
        if not (outcome := run(command, work, **profile)).ok:
            print(outcome.output)
            return False
    merged = work / "all.profdata"
    subprocess.run(["llvm-profdata", "merge", "-o", str(merged),
                    *map(str, sorted(work.glob("*.profraw")))], check=True)
    objects = [word for program in targets.values() for word in ("-object", str(program))]
    sources = [str(ROOT / "src/os/tablestore")]
    subprocess.run(["llvm-cov", "report", f"-instr-profile={merged}", "-show-branch-summary=false",
                    *objects[1:], *sources], check=True)
    missed = work / "lines.txt"
    with missed.open("w") as out:
        subprocess.run(["llvm-cov", "show", f"-instr-profile={merged}", *objects[1:], *sources],
                       stdout=out, check=True)
    print(f"line by line: {HOST_STATE / 'coverage' / missed.name}")
    return True


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run fuzz", description=__doc__.split("\n", 1)[0])
    parser.add_argument("words", nargs="*", metavar="TARGET",
                        help="all of them by default; or one, and a file to replay")
    parser.add_argument("--minutes", type=float, default=1, help="of each target")
    parser.add_argument("--fixed", action="store_true", help="the suite: fixed seeds")
    parser.add_argument("--seed", type=int, help="of the suite: another one than in all runs")
    parser.add_argument("--coverage", action="store_true", help="what the inputs reach")
    parser.add_argument("--merge", action="store_true", help="makes the committed inputs anew")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    tree = build_tree("fuzz-coverage" if arguments.coverage else "fuzz")
    known = programs(tree)
    words = arguments.words
    if len(words) == 2 and words[0] in known and Path(words[1]).is_file():
        return not replay(words[0], known[words[0]], words[1])
    if unknown := [w for w in words if w not in known]:
        sys.exit(f"no such target: {' '.join(unknown)}; there are {' '.join(known)}")
    targets = {name: known[name] for name in words or known}
    make_seeds(tree, STATE / "seeds")
    if arguments.merge:
        return not merge(targets)
    if arguments.coverage:
        return not coverage(targets, tree)
    if arguments.fixed:
        results = [fixed(name, program, arguments.seed) for name, program in targets.items()]
    else:
        results = [search(name, program, arguments.minutes) for name, program in targets.items()]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
