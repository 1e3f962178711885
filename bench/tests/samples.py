"""Results as ./run bench writes them, made up for the tests."""
from __future__ import annotations

from typing import Any

from storebench.variants import VARIANTS

SESSION = {"started": "now", "level": "quick", "rounds": 1, "seconds": 2, "machine": {
    "cores": 2, "processor": "P<&>", "memory_bytes": 1 << 30, "kernel": "k", "file_system": {},
    "tablestore_commit": "abc"}}


def phase(**changes: Any) -> dict[str, Any]:
    usage = {"user_seconds": 1.0, "system_seconds": 1.0, "disk_flushes": 500, "write_bytes": 9000,
             "disk_write_bytes": 12000, "context_switches": 10, "machine_busy_seconds": 4.0}
    return {"name": "new", "depth": 16, "seconds": 2.0, "operations": 1000, "payload_bytes": 4000,
            "latency_us": {"mean": 10, "p50": 8, "p99": 30, "p99_9": 60, "max": 99},
            "interval_ms": 100, "interval_operations": [50] * 20, "usage": usage,
            "usage_settled": usage | {"disk_write_bytes": 16000}, "counters": {},
            "peak_memory_bytes": 5_000_000} | changes


def run(variant: str, number: int, operations: int, cell: str = "new-4K-qd16",
        **changes: Any) -> dict[str, Any]:
    store = VARIANTS[variant].store
    return {"cell": cell, "variant": variant, "round": number,
            "result": {"options": {"store": store},
                       "phases": [phase(operations=operations, **changes)]}}
