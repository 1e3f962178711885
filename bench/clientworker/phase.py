"""One phase: operations one after the other, each timed, until they or the time are over."""
from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

INTERVAL_MS = 100

Step = Callable[[], None]       # one operation


def run_phase(steps: Iterator[Step], finish: Callable[[], None], at: float,
              seconds: float) -> dict[str, Any]:
    """`finish` belongs to the time: what an operation has left to be done later."""
    latencies: list[float] = []
    intervals: list[int] = []
    time.sleep(max(0.0, at - time.monotonic()))
    used = resource.getrusage(resource.RUSAGE_SELF)
    for step in steps:
        began = time.monotonic()
        if latencies and began - at >= seconds:     # even a late worker does one
            break
        step()
        ended = time.monotonic()
        latencies.append(round((ended - began) * 1e6))
        place = int((ended - at) * 1000 / INTERVAL_MS)
        intervals += [0] * (place + 1 - len(intervals))
        intervals[place] += 1
    finish()
    took = time.monotonic() - at
    now = resource.getrusage(resource.RUSAGE_SELF)
    return {"operations": len(latencies), "seconds": took, "latencies_us": latencies,
            "intervals": intervals, "user_seconds": now.ru_utime - used.ru_utime,
            "system_seconds": now.ru_stime - used.ru_stime}
