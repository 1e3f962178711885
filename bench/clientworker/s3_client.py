"""Small objects by S3, over one connection that stays."""
from __future__ import annotations

import random
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

from .phase import Step
from .signature import Signer

DONE = (200, 204)


class Objects:
    """Of one process, in a bucket of all."""

    def __init__(self, settings: dict[str, Any]):
        self._number = settings["number"]
        self._size = settings["size"]
        self._bucket = settings["bucket"]
        self._connection = HTTPConnection(settings["host"], settings["port"], timeout=60)
        self._signer = Signer(f"{settings['host']}:{settings['port']}", settings["access_key"],
                              settings["secret_key"])
        self._random = random.Random(self._number)
        self._made = 0
        self._request("PUT", f"/{self._bucket}")

    def steps(self, wanted: dict[str, Any]) -> Iterator[Step]:
        return {"put": self._puts, "get": self._gets, "delete": self._deletions}[wanted["phase"]]()

    def finish(self) -> None:
        """Whatever was answered is on the OSDs' disks."""

    def close(self) -> None:
        self._connection.close()

    def _puts(self) -> Iterator[Step]:
        while True:
            yield self._put

    def _gets(self) -> Iterator[Step]:
        while self._made:
            yield self._get

    def _deletions(self) -> Iterator[Step]:
        return (lambda number=number: self._delete(number) for number in range(self._made))

    def _path(self, number: int) -> str:
        return f"/{self._bucket}/{self._number}/{number}"

    def _beginning(self, number: int) -> bytes:
        return f"{self._number} {number} ".encode()

    def _put(self) -> None:
        beginning = self._beginning(self._made)
        body = beginning + self._random.randbytes(self._size - len(beginning))
        self._request("PUT", self._path(self._made), body)
        self._made += 1

    def _get(self) -> None:
        number = self._random.randrange(self._made)
        body = self._request("GET", self._path(number))
        if len(body) != self._size or not body.startswith(self._beginning(number)):
            raise ValueError(f"GET {self._path(number)} returned other {len(body)} bytes")

    def _delete(self, number: int) -> None:
        self._request("DELETE", self._path(number))

    def _request(self, method: str, path: str, body: bytes = b"") -> bytes:
        headers = self._signer.headers(method, path, body)
        self._connection.request(method, path, body or None, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status not in DONE:
            raise ValueError(f"{method} {path}: {answer.status} {answer.reason}:"
                             f" {text[:300].decode(errors='replace')}")
        return text
