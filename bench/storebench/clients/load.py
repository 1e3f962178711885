"""What a cell asks of the clients."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    osds: int
    depth: int              # operations in flight, of all client processes together
    seconds: float
    size: int               # bytes of an object or write
    store_bytes: int        # of each OSD
