#!/usr/bin/env python3
"""Holds manifests against the schemas of every Kubernetes that has what they use, in their strict
form, which refuses names that it does not know: manifests.py FILE. The last line is the count."""
from __future__ import annotations

import importlib.resources
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

sys.path.append("/downloads/kubernetes-validate")   # where ./run has put it
# The package asks for the backport of what Python has had for long.
sys.modules.setdefault("importlib_resources", importlib.resources)
import kubernetes_validate  # noqa: E402

OLDEST = (1, 27)     # persistentVolumeClaimRetentionPolicy

Manifest = dict[str, Any]


def versions() -> list[str]:
    known = dict.fromkeys(".".join(each.split(".")[:2])
                          for each in kubernetes_validate.utils.all_versions())
    return [each for each in known if tuple(map(int, each.split("."))) >= OLDEST]


def wrong_ones(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """So that it is seen that the schemas would notice."""
    the_set, = (each for each in manifests if each["kind"] == "StatefulSet")
    unknown = deepcopy(the_set)
    unknown["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    yield "a name that is not known", unknown
    number = deepcopy(the_set)
    number["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = 0
    yield "a number where text is wanted", number
    lacking = deepcopy(the_set)
    del lacking["spec"]["selector"]
    yield "a lack of what is required", lacking


def error_of(manifest: Manifest, version: str) -> str:
    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{manifest['kind']}: {error.message[:200]}"
    return ""


def main() -> int:
    manifests = list(yaml.safe_load_all(Path(sys.argv[1]).read_text()))
    failed = 0
    for version in versions():
        errors = [error for each in manifests if (error := error_of(each, version))]
        failed += bool(errors)
        print(f"{'FAIL' if errors else 'ok  '} Kubernetes {version} takes all {len(manifests)}",
              *errors, sep="\n  ")
    cases = list(wrong_ones(manifests))
    for what, manifest in cases:
        noticed = error_of(manifest, versions()[-1])
        failed += not noticed
        print(f"{'ok  ' if noticed else 'FAIL'} {what} is noticed")
    count = len(versions()) + len(cases)
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
