"""A client process that writes by the model and notes what was acknowledged.

Run as `python3 -m cephcluster.writer`; each line that it appends to its log is
"b NAME NUMBER" before a step is sent or "a NAME NUMBER" after the OSD has
acknowledged it. It may be killed at any moment: the log is complete up to there.
SIGTERM ends it after the steps in flight."""
from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

import rados

from .client import Client
from .model import RUN, VERSION, step


def names_of(thread: int, objects: int, threads: int) -> list[str]:
    return [f"object_{number}" for number in range(thread, objects, threads)]


def send(io: rados.Ioctx, name: str, number: int) -> None:
    """One step as one transaction: data, attribute and omap together."""
    what = step(name, number)
    if what.kind == "remove":
        io.remove_object(name)
        return
    stamp = str(number).encode()
    with rados.WriteOpCtx() as operation:
        if what.kind == "full":
            operation.write_full(what.data)
        elif what.kind == "append":
            operation.append(what.data)
        elif what.kind == "truncate":
            operation.truncate(what.offset)
        else:
            operation.write(what.data, what.offset)
        if what.kind == "zero":
            operation.zero(*what.hole())
        operation.set_xattr(VERSION, stamp)
        io.set_omap(operation, (VERSION,), (stamp,))
        io.operate_write_op(operation, name)


def write(io: rados.Ioctx, names: list[str], run: int, note: Callable[[str], None],
          stop: threading.Event) -> None:
    """Round after round over one thread's own objects, one step in flight."""
    for number in count(run * RUN):
        for name in names:
            if stop.is_set():
                return
            note(f"b {name} {number}\n")
            send(io, name, number)
            note(f"a {name} {number}\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--conf", type=Path, required=True)
    parser.add_argument("--pool", required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--run", type=int, required=True)
    parser.add_argument("--objects", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()

    client = Client(options.conf)
    client.wait_connected()
    log = os.open(options.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    stop = threading.Event()
    failures: list[str] = []

    def note(line: str) -> None:
        os.write(log, line.encode())

    def work(thread: int) -> None:
        io = client.open_pool(options.pool)
        try:
            write(io, names_of(thread, options.objects, options.threads), options.run, note, stop)
        except rados.Error as error:
            failures.append(f"thread {thread}: {error}")
            stop.set()

    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    threads = [threading.Thread(target=work, args=(number,))
               for number in range(options.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit("\n".join(failures) if failures else 0)


if __name__ == "__main__":
    main()
