"""S3's signature, version 4."""
from __future__ import annotations

import hashlib
import hmac
import time

REGION = "default"
ALGORITHM = "AWS4-HMAC-SHA256"
SIGNED = "host;x-amz-content-sha256;x-amz-date"


def keyed(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


class Signer:
    """Of one user. The key of a day is made once."""

    def __init__(self, host: str, access_key: str, secret_key: str, region: str = REGION):
        self._host = host
        self._access_key = access_key
        self._secret_key = secret_key
        self._region = region
        self._day = ""
        self._day_key = b""

    def headers(self, method: str, path: str, body: bytes, query: str = "",
                now: time.struct_time | None = None) -> dict[str, str]:
        """`path` as it is sent, of characters that need no escape; `query` in canonical form."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", now or time.gmtime())
        content = hashlib.sha256(body).hexdigest()
        request = (f"{method}\n{path}\n{query}\nhost:{self._host}\nx-amz-content-sha256:{content}\n"
                   f"x-amz-date:{stamp}\n\n{SIGNED}\n{content}")
        scope = f"{stamp[:8]}/{self._region}/s3/aws4_request"
        text = f"{ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = keyed(self._key_of(stamp[:8]), text).hex()
        return {"Host": self._host, "x-amz-date": stamp, "x-amz-content-sha256": content,
                "Authorization": f"{ALGORITHM} Credential={self._access_key}/{scope},"
                                 f" SignedHeaders={SIGNED}, Signature={signature}"}

    def _key_of(self, day: str) -> bytes:
        if day != self._day:
            key = f"AWS4{self._secret_key}".encode()
            for each in (day, self._region, "s3", "aws4_request"):
                key = keyed(key, each)
            self._day, self._day_key = day, key
        return self._day_key
