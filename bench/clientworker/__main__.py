"""A client process, run as `python3 -m clientworker SETTINGS` with SETTINGS as JSON. It says
{"ready": true} when it is connected. Each line that it reads is then a phase, {"phase": NAME,
"at": when to begin by the monotonic clock, "seconds": how long at most, ...}, each line that it
writes what it did in it. It ends when its input does."""
from __future__ import annotations

import json
import sys
from typing import Any

from .phase import run_phase


def client_of(settings: dict[str, Any]) -> Any:
    """Only what is asked for is imported: not every host has both."""
    if settings["kind"] == "cephfs":
        from .cephfs_client import Files
        return Files(settings)
    from .s3_client import Objects
    return Objects(settings)


def say(what: dict[str, Any]) -> None:
    print(json.dumps(what, separators=(",", ":")), flush=True)


def main() -> None:
    client = client_of(json.loads(sys.argv[1]))
    say({"ready": True})
    for line in sys.stdin:
        wanted = json.loads(line)
        say(run_phase(client.steps(wanted), client.finish, wanted["at"], wanted["seconds"]))
    client.close()


if __name__ == "__main__":
    main()
