"""What an object must contain after a given series of steps.

A step is a pure function of the object's name and the step's number, so the
writer needs to tell only which steps it began and which were acknowledged;
whoever checks computes the rest."""
from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

# The steps of one run of the writer are numbered from a multiple of this.
RUN = 1_000_000

KINDS = ("full", "full", "overwrite", "overwrite", "append", "truncate", "zero", "remove")
SIZES = (1, 700, 4095, 4096, 4097, 16384, 65536, 100_000, 262_144, 300_001)

VERSION = "version"   # attribute and omap key that carry the step's number


@dataclass(frozen=True)
class Step:
    """`zero` writes its data and zeros the middle of that again, in one
    transaction: so the hole always ends before the object does (the OSD makes
    a truncate of one that reaches the end)."""

    kind: str
    offset: int
    data: bytes

    def hole(self) -> tuple[int, int]:
        """Offset and length of what `zero` zeros."""
        quarter = len(self.data) // 4
        return self.offset + quarter, len(self.data) - 2 * quarter


@dataclass(frozen=True)
class Contents:
    """An object: its bytes and the number of the step that made it so."""

    data: bytes
    number: int


def step(name: str, number: int) -> Step:
    """The first step of a run, and the one after a removal, write the whole
    object: so no step depends on whether its object exists."""
    kind = kind_of(name, number)
    dice = random.Random(f"{name}/{number}")
    offset = dice.randrange(0, 200_000) if kind in ("overwrite", "zero", "truncate") else 0
    if kind in ("overwrite", "zero") and dice.random() < 0.3:
        offset &= ~4095
    length = 0 if kind in ("truncate", "remove") else dice.choice(SIZES)
    if kind == "zero":
        length = max(length, 700)
    return Step(kind, offset, pattern(name, number, length))


def kind_of(name: str, number: int) -> str:
    if number % RUN == 0 or drawn(name, number - 1) == "remove":
        return "full"
    return drawn(name, number)


def drawn(name: str, number: int) -> str:
    return KINDS[hashlib.blake2b(f"{name}/{number}".encode(), digest_size=1).digest()[0]
                 % len(KINDS)]


def pattern(name: str, number: int, length: int) -> bytes:
    return hashlib.shake_128(f"{name}/{number}".encode()).digest(length)


def apply(before: Contents | None, name: str, number: int) -> Contents | None:
    """None is an object that does not exist."""
    what = step(name, number)
    if what.kind == "remove":
        return None
    if what.kind == "full":
        return Contents(what.data, number)
    data = before.data if before else b""
    if what.kind == "append":
        data += what.data
    elif what.kind == "truncate":
        data = data[:what.offset].ljust(what.offset, b"\0")
    else:
        data = patched(data, what.offset, what.data)
    if what.kind == "zero":
        offset, length = what.hole()
        data = patched(data, offset, bytes(length))
    return Contents(data, number)


def patched(data: bytes, offset: int, patch: bytes) -> bytes:
    return data[:offset].ljust(offset, b"\0") + patch + data[offset + len(patch):]
