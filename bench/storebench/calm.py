"""On a virtual machine the host's other guests take processors away, and a
figure is theirs as much as the store's. The guest's kernel counts that time."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

Result = dict[str, Any]


def stolen_share(usages: list[dict[str, float]]) -> float:
    """Of the time for which there was work for a processor, the part in which
    the host had none for this machine."""
    stolen = sum(usage.get("machine_stolen_seconds", 0) for usage in usages)
    wanted = stolen + sum(usage["machine_busy_seconds"] for usage in usages)
    return stolen / wanted if wanted else 0


def calmest(run: Callable[[], Result], most_stolen: float, tries: int) -> Result:
    """Runs until no more than `most_stolen` was stolen, at most so often. The
    calmest counts; its "stolen_shares" are those of all tries."""
    best: Result = {}
    shares: list[float] = []
    while not shares or (min(shares) > most_stolen and len(shares) < tries):
        result = run()
        share = stolen_share([phase["usage"] for phase in result["phases"]])
        shares.append(round(share, 4))
        if shares[-1] == min(shares):
            best = result
    return best | {"stolen_shares": shares}
