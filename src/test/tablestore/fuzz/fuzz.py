#!/usr/bin/env python3
"""Fuzzes what reads bytes from the disk: runs the targets that env/build_fuzz.sh has built, or, for
CI, those that env/build_unit.sh has built without libFuzzer.

    fuzz.py [TARGET ...] [--minutes M]    searches, M minutes each; what it reaches is kept
    fuzz.py TARGET FILE                   one input, with all that the sanitizers say
    fuzz.py --fixed [TARGET ...]          the committed inputs, and fixed seeds: a test suite
    fuzz.py --fixed --seed N [TARGET ...] the same with another seed, a tenth of the runs
    fuzz.py --driver PART --seed N        a part of CI, without libFuzzer (driver_main.cc): the same
                                          for the targets of the engine, or of the store
    fuzz.py --coverage [TARGET ...]       what the inputs of all kinds reach, by file
    fuzz.py --merge [TARGET ...]          makes the committed inputs anew of what was kept

Inputs come from three places: the seeds, which a program makes with the engine's and the store's
own encoders; the committed ones, in src/test/tablestore/fuzz/corpus, which reach what the seeds
alone do not; and what earlier searches have kept below /state/fuzz. A suite fails where a target
has no inputs of the first or the second kind. Runs inside the environment.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/tablestore")
CORPUS = ROOT / "src/test/tablestore/fuzz/corpus"
STATE = Path("/state/fuzz")
SEEDS = STATE / "seeds"
HOST_STATE = Path(os.environ.get("TABLESTORE_HOST_STATE", "/state")) / "fuzz"
PARTS = {"engine": "src/test/tablestore/fuzz", "store": "src/test/objectstore/tablestore/fuzz"}
SEED_PROGRAMS = {"engine": "tablestore_fuzz_seeds", "store": "tablestore_store_fuzz_seeds"}
DAMAGE = "damage"  # no target of libFuzzer's: random damage of whole stores, one seed each
DAMAGE_PROGRAM = "tablestore_damage"
# A target that says nothing else is fast. Whole stores are opened and read, that takes its time.
FIXED_RUNS = {"allocation": 3000, "log_chain": 5000, "store": 150, DAMAGE: 300}
FIXED_RUNS_USUAL = 20000
COMMITTED_BYTES_MAX = 200_000  # in all targets
# Of the driver, so that all targets together take less than a minute of a processor.
DRIVER_RUNS = {"allocation": 2000, "log_chain": 20000, "store": 100}
DRIVER_RUNS_USUAL = 50000
TIMEOUT = "-timeout=30"
LIMITS = [TIMEOUT, "-rss_limit_mb=2500"]
SANITIZERS = {
    # RocksDB and Ceph's libraries are not instrumented: their containers are not annotated.
    "ASAN_OPTIONS": "detect_container_overflow=0:detect_leaks=0:detect_odr_violation=0:"
                    "max_allocation_size_mb=256",
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


def programs(tree: Path, parts: tuple[str, ...]) -> dict[str, Path]:
    """Of the targets that the source has: one that is not built is missed, and fails."""
    return {source.stem.removeprefix("fuzz_"): tree / PARTS[part] / source.stem
            for part in parts for source in sorted((ROOT / PARTS[part]).glob("fuzz_*.cc"))}


def run(command: list[str], directory: Path, **more: str) -> Outcome:
    directory.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=directory, env=os.environ | SANITIZERS | more,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    if done.returncode < 0:
        output += f"\nended by {signal.Signals(-done.returncode).name}\n"
    return Outcome(done.returncode == 0, output)


def make_seeds(tree: Path, parts: tuple[str, ...], directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    for part in parts:
        program = tree / PARTS[part] / SEED_PROGRAMS[part]
        made = run([str(program), str(directory)], directory)
        if not made.ok:
            sys.exit(f"{program.name} fails:\n{made.output}")
    if stale := {p.name for p in directory.iterdir()} - set(programs(tree, parts)):
        sys.exit(f"there are seeds, and no target, of {' '.join(sorted(stale))}")


def inputs(target: str, seeds: Path, *more: Path) -> list[str]:
    return [str(p) for p in (*more, seeds / target, CORPUS / target) if p.is_dir()]


def without_inputs(target: str, seeds: Path) -> list[str]:
    """Of the directories that every target has, those that have nothing."""
    return [str(p) for p in (seeds / target, CORPUS / target)
            if not p.is_dir() or not any(p.iterdir())]


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
        outcome = run([str(program), *inputs(target, SEEDS, kept(target)), *LIMITS,
                       f"-max_total_time={round(minutes * 60)}", "-print_final_stats=1"], where)
    show(target, outcome, where)
    return outcome.ok


def show(target: str, outcome: Outcome, where: Path) -> None:
    if target == DAMAGE:
        print(f"{target}: {outcome.output.strip()}" if outcome.ok else outcome.output, flush=True)
        return
    runs = outcome.last(r"stat::number_of_executed_units: (\d+)")
    print(f"{target:14} {runs:>10} runs  cov {outcome.last(r'cov: ([0-9]+)'):>5}  "
          f"inputs {outcome.last(r'corp: ([0-9]+)'):>5}  {'clean' if outcome.ok else 'FAILS'}",
          flush=True)
    if outcome.ok:
        return
    print(outcome.output[-6000:])
    artifact = where / outcome.last(r"Test unit written to \./(\S+)")
    for path in (artifact, where / "input"):  # libFuzzer's, the driver's
        if path.is_file():
            print(f"replay: ./run fuzz {target} {HOST_STATE / path.relative_to(STATE)}")


def replay(target: str, program: Path, path: str) -> bool:
    outcome = run([str(program), *LIMITS, path], STATE / target)
    print(outcome.output)
    return outcome.ok


def fixed(target: str, program: Path, seeds: Path, seed: int | None) -> bool:
    runs = FIXED_RUNS.get(target, FIXED_RUNS_USUAL)
    if seed is not None:
        runs = max(1, runs // 10)
    if target == DAMAGE:
        outcome = run([str(program), "--seeds", str(runs), "--seed", str(seed or 1)], seeds.parent)
        show(target, outcome, seeds.parent)
        return outcome.ok
    return judge(target, seeds, [str(program), *inputs(target, seeds), *LIMITS,
                                 f"-seed={seed or 1}", f"-runs={runs}", "-print_final_stats=1"])


def driven(target: str, program: Path, seeds: Path, seed: int) -> bool:
    runs = DRIVER_RUNS.get(target, DRIVER_RUNS_USUAL)
    return judge(target, seeds, [str(program), *inputs(target, seeds), TIMEOUT, f"-seed={seed}",
                                 f"-runs={runs}"])


def judge(target: str, seeds: Path, command: list[str]) -> bool:
    if empty := without_inputs(target, seeds):
        print(f"{target:14} FAILS: no inputs in {' '.join(empty)}", flush=True)
        return False
    where = seeds.parent / target
    outcome = run(command, where)
    show(target, outcome, where)
    return outcome.ok


def merge(targets: dict[str, Path]) -> bool:
    """Of what was kept, the inputs that reach more than the seeds do, small ones first."""
    left = COMMITTED_BYTES_MAX
    for target, program in targets.items():
        if target == DAMAGE:
            continue
        seeds, committed = SEEDS / target, CORPUS / target
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
                   [str(program), *inputs(target, SEEDS, kept(target)), *LIMITS, "-runs=0"])
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
    parser.add_argument("--driver", choices=PARTS, help="the suite without libFuzzer, of a part")
    parser.add_argument("--coverage", action="store_true", help="what the inputs reach")
    parser.add_argument("--merge", action="store_true", help="makes the committed inputs anew")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    if arguments.driver:
        tree, parts = build_tree("address"), (arguments.driver,)
    else:
        tree, parts = build_tree("fuzz-coverage" if arguments.coverage else "fuzz"), tuple(PARTS)
    known = programs(tree, parts)
    if not arguments.driver:
        known[DAMAGE] = tree / DAMAGE_PROGRAM
    words = arguments.words
    if len(words) == 2 and words[0] in known and Path(words[1]).is_file():
        return not replay(words[0], known[words[0]], words[1])
    if unknown := [w for w in words if w not in known]:
        sys.exit(f"no such target: {' '.join(unknown)}; there are {' '.join(known)}")
    targets = {name: known[name] for name in words or known}
    suite = STATE / f"suite.{os.getpid()}"
    seeds = suite / "seeds" if arguments.fixed or arguments.driver else SEEDS
    make_seeds(tree, parts, seeds)
    if arguments.merge:
        return not merge(targets)
    if arguments.coverage:
        return not coverage(targets, tree)
    if arguments.driver:
        results = [driven(name, program, seeds, arguments.seed or 1)
                   for name, program in targets.items()]
    elif arguments.fixed:
        results = [fixed(name, program, seeds, arguments.seed)
                   for name, program in targets.items()]
    else:
        results = [search(name, program, arguments.minutes) for name, program in targets.items()]
    if all(results):
        shutil.rmtree(suite, ignore_errors=True)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
