#!/usr/bin/env python3
"""In a machine: a deep scrub of all placement groups, which must find nothing."""
from __future__ import annotations

import json
import subprocess
import sys
import time

SECONDS = 240


def ceph(*words: str) -> object:
    done = subprocess.run(["ceph", "--connect-timeout", "30", *words, "-f", "json"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout) if done.stdout.strip() else None


def groups() -> dict[str, dict[str, str]]:
    return {group["pgid"]: group for group in ceph("pg", "dump", "pgs")["pg_stats"]}


def main() -> None:
    before = groups()
    until = time.monotonic() + SECONDS
    left = set(before)
    asked = 0.0
    while left:
        if time.monotonic() > until:
            sys.exit(f"not scrubbed within {SECONDS} s: {sorted(left)}")
        if time.monotonic() > asked + 20:
            for group in left:
                ceph("pg", "deep-scrub", group)
            asked = time.monotonic()
        time.sleep(1)
        left = {name for name, group in groups().items()
                if group["last_deep_scrub_stamp"] == before[name]["last_deep_scrub_stamp"]}
    wrong = [name for name, group in groups().items() if "inconsistent" in group["state"]]
    if wrong:
        sys.exit(f"inconsistent: {wrong}")
    print(f"{len(before)} placement groups scrubbed: all replicas are the same")


if __name__ == "__main__":
    main()
