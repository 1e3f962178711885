#!/usr/bin/env python3
"""All tests of ./run bench; ends with the line of counts of the other suites."""
import sys
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH), str(BENCH.parent / "qa/cluster")]
sys.dont_write_bytecode = True


def main() -> None:
    patterns = sys.argv[1:] or None
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{pattern}*" for pattern in patterns] if patterns else None
    result = unittest.TextTestRunner(sys.stdout, verbosity=2).run(
        loader.discover(str(BENCH / "tests")))
    # One test can fail in several of its parts: those count as one.
    bad = len({str(test).split(" (")[0] + test.id().split(" ")[0]
               for test, _ in result.failures + result.errors})
    skipped = len(result.skipped)
    print(f"{result.testsRun - bad - skipped} passed, {bad} failed, {skipped} skipped")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
