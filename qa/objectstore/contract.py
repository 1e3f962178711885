"""Which of Ceph's contract tests say something of tablestore.

    python3 qa/objectstore/contract.py

ceph_test_objectstore makes an instance of every test for every store, `NAME/3` for tablestore. Many
tests are of BlueStore's own inside: their first statement returns for every other store, and gtest
counts them as passed. This reads the source for them, and prints two lines: how many there are, and
the filter of gtest that takes the others. Instances whose name begins with BlueStore/ are of
BlueStore whatever their number says, and are not among either.
"""
import re
from pathlib import Path

SOURCE = Path("/ceph/src/test/objectstore/store_test.cc")
PREFIX, INSTANCE = "ObjectStore/", "/3"
STORE = "tablestore"
TEST = re.compile(r"^TEST_P\((\w+),\s*(\w+)\)\s*\{(.*?)^\}", re.MULTILINE | re.DOTALL)
# Declarations may come before it.
RETURNS = re.compile(r"(?:[^;{}()]*;)*\s*if\s*\(([^;{}]*GetParam\(\)[^;{}]*)\)\s*"
                     r"(?:\{[^;{}]*;?\s*)?return;")


def is_empty_for(store: str, body: str) -> bool:
    """Whether the test returns at once where it is given this store."""
    statement = RETURNS.match(body)
    if not statement:
        return False
    others = re.findall(r'!=\s*"(\w+)"', statement.group(1))
    return bool(others) and store not in others


def main() -> None:
    tests = [(f"{suite}.{name}", body) for suite, name, body in TEST.findall(
        SOURCE.read_text(encoding="utf-8"))]
    empty = [name for name, body in tests if is_empty_for(STORE, body)]
    print(len(empty))
    print(f"{PREFIX}*{INSTANCE}-" + ":".join(f"{PREFIX}{name}{INSTANCE}" for name in empty))


if __name__ == "__main__":
    main()
