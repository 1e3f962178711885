#!/usr/bin/env python3
"""Makes of the manifests what 'podman kube play' takes, which knows no StatefulSet.

    pods.py MANIFESTS ORDINAL IMAGE VOLUME ADDRESS FSID MON_HOST BOOTSTRAP_KEYRING

Scripts, commands, users, capabilities and probes stay as they are. The rest is what a kubelet would
fill in, and the secrets of Rook."""
from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where the pod is."""

    ordinal: str
    image: str
    volume: str
    address: str

    def field(self, path: str) -> str:
        return {"status.podIP": self.address, "spec.nodeName": f"node-{self.ordinal}",
                "metadata.name": self.name()}[path]

    def name(self) -> str:
        return f"tablestore-osd-{self.ordinal}"


def secret(name: str, values: dict[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": values}


def as_bytes(quantity: str) -> int:
    assert quantity.endswith("Gi"), quantity
    return int(quantity.removesuffix("Gi")) << 30


def fill_in(container: Manifest, place: Place) -> None:
    """podman knows few fields, and there are no control groups here that could limit anything."""
    limits = container.pop("resources", {}).get("limits", {})
    container["image"] = place.image
    for each in container["env"]:
        source = each.get("valueFrom", {})
        if "fieldRef" in source:
            each["value"] = place.field(source["fieldRef"]["fieldPath"])
        elif "resourceFieldRef" in source:
            assert source["resourceFieldRef"]["resource"] == "limits.memory"
            each["value"] = str(as_bytes(limits["memory"]))
        else:
            continue
        del each["valueFrom"]


def pod(the_set: Manifest, place: Place) -> Manifest:
    template = the_set["spec"]["template"]
    spec = template["spec"]
    claim, = the_set["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["volumeMode"] == "Filesystem"
    spec["volumes"].append({"name": claim["metadata"]["name"],
                            "hostPath": {"path": place.volume, "type": "Directory"}})
    del spec["topologySpreadConstraints"]
    spec["hostNetwork"] = True
    for container in spec["initContainers"] + spec["containers"]:
        fill_in(container, place)
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": template["metadata"] | {"name": place.name()}, "spec": spec}


def main() -> None:
    path, ordinal, image, volume, address, fsid, mon_host, keyring = sys.argv[1:]
    manifests = list(yaml.safe_load_all(Path(path).read_text()))
    the_set, = (each for each in manifests if each["kind"] == "StatefulSet")
    made = [each for each in manifests if each["kind"] == "ConfigMap"]
    made += [secret("rook-ceph-mon", {"fsid": fsid}),
             secret("rook-ceph-config", {"mon_host": mon_host}),
             secret("tablestore-bootstrap-osd", {"keyring": Path(keyring).read_text()}),
             pod(the_set, Place(ordinal, image, volume, address))]
    yaml.safe_dump_all(made, sys.stdout)


if __name__ == "__main__":
    main()
