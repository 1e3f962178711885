"""On a virtual machine the host's other guests take processors away, and a
figure is theirs as much as the store's. The guest's kernel counts that time."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

Result = dict[str, Any]
MOST_STOLEN = 0.05      # that leaves a figure of worth


def stolen_share(usages: list[dict[str, float]]) -> float:
    """Of the time for which there was work for a processor, the part in which
    the host had none for this machine."""
    stolen = sum(usage.get("machine_stolen_seconds", 0) for usage in usages)
    wanted = stolen + sum(usage["machine_busy_seconds"] for usage in usages)
    return stolen / wanted if wanted else 0


def calmest(run: Callable[[], Result], tries: int) -> Result:
    """Runs until no more than MOST_STOLEN was stolen, at most so often. The
    calmest counts; its "stolen_shares" are those of all tries."""
    best: Result = {}
    shares: list[float] = []
    while not shares or (min(shares) > MOST_STOLEN and len(shares) < tries):
        result = run()
        # A restart has no phases.
        share = stolen_share([phase["usage"] for phase in result["phases"]]
                             or [result["usage"]])
        shares.append(round(share, 4))
        if shares[-1] == min(shares):
            best = result
    return best | {"stolen_shares": shares}


def is_calm(run: dict[str, Any]) -> bool:
    return min(run["result"].get("stolen_shares", [0])) <= MOST_STOLEN


def key_of(run: dict[str, Any]) -> tuple[str, str]:
    return run["cell"], run["variant"]


def undisturbed(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where a workload has a calm run on a store, only its calm ones."""
    with_calm = {key_of(run) for run in runs if is_calm(run)}
    return [run for run in runs if is_calm(run) or key_of(run) not in with_calm]


def never_calm(runs: list[dict[str, Any]]) -> list[str]:
    """What has no calm run at all: figures worth little."""
    return list(dict.fromkeys(f"{run['cell']} on {run['variant']}" for run in undisturbed(runs)
                              if not is_calm(run)))
