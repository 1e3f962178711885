"""The label of a store as doc/dev/tablestore-format.rst describes it, for tests."""
from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

COPIES = (0, 4096)
CRC_AT = 4092
INCOMPAT_AT, RELEASES_AT = 56, 104


class Releases(NamedTuple):
    made_by: str
    opened_by: str


def label_of(path: Path) -> Releases:
    numbers = struct.unpack_from("<II", path.read_bytes(), RELEASES_AT)
    return Releases(*(f"{number >> 16}.{number & 0xffff}" for number in numbers))


def set_unknown_feature(path: Path, bit: int, opened_by: tuple[int, int]) -> None:
    """As a later release would: both copies, with right checksums."""
    data = bytearray(path.read_bytes())
    for copy in COPIES:
        incompat, = struct.unpack_from("<Q", data, copy + INCOMPAT_AT)
        struct.pack_into("<Q", data, copy + INCOMPAT_AT, incompat | 1 << bit)
        struct.pack_into("<I", data, copy + RELEASES_AT + 4, opened_by[0] << 16 | opened_by[1])
        struct.pack_into("<I", data, copy + CRC_AT, crc32c(data[copy:copy + CRC_AT]))
    path.write_bytes(data)


def crc32c(data: bytes) -> int:
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff
