"""librados with deadlines: commands as JSON, pools, I/O contexts."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rados

from .errors import ClusterError
from .wait import wait_until

COMMAND_SECONDS = 30
MON_SECONDS = 60
OPERATION_SECONDS = 240     # longer than any wait for an OSD to come back


class Client:
    """One connection to a cluster. Owned by one thread; the I/O contexts that
    it opens may be used from several."""

    def __init__(self, conf: Path):
        options = {"client_mount_timeout": "5", "rados_mon_op_timeout": str(COMMAND_SECONDS),
                   # Without it, librados waits for an OSD without end, and nobody is told for what.
                   "rados_osd_op_timeout": str(OPERATION_SECONDS),
                   # A client that waits for a restarted OSD asks the mon where
                   # it is after 10 s by default.
                   "objecter_timeout": "1", "objecter_tick_interval": "1"}
        self._make_handle = lambda: rados.Rados(conffile=str(conf), conf=options)
        self._rados = self._make_handle()

    def connect(self) -> bool:
        """False when no mon answers yet."""
        try:
            self._rados.connect(timeout=5)
            return True
        except rados.Error:
            # A handle that timed out says EINPROGRESS ever after (RadosClient::connect).
            self._rados.shutdown()
            self._rados = self._make_handle()
            return False

    def wait_connected(self, still: Callable[[], None] = lambda: None,
                       explain: Callable[[], list[str]] = lambda: []) -> None:
        """`still` throws where waiting is of no use."""
        def connected() -> bool:
            still()
            return self.connect()

        wait_until("the mon to answer", connected, MON_SECONDS, explain=explain)

    def close(self) -> None:
        self._rados.shutdown()

    def _command(self, send: Any, prefix: str, arguments: dict[str, Any]) -> Any:
        request = json.dumps({"prefix": prefix, "format": "json", **arguments})
        code, answer, message = send(request, b"", timeout=COMMAND_SECONDS)
        if code != 0:
            raise ClusterError(f"'{prefix}' failed ({code}): {message}")
        return json.loads(answer) if answer and answer.strip() else None

    def mon(self, prefix: str, **arguments: Any) -> Any:
        return self._command(self._rados.mon_command, prefix, arguments)

    def mgr(self, prefix: str, **arguments: Any) -> Any:
        return self._command(self._rados.mgr_command, prefix, arguments)

    def wait_for_map(self) -> None:
        """What is sent from now on goes by the newest map; an OSD waits until it has that."""
        self._rados.wait_for_latest_osdmap()

    def open_pool(self, pool: str) -> rados.Ioctx:
        return self._rados.open_ioctx(pool)
