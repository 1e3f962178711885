#!/usr/bin/env python3
"""The first process of a test's namespaces: what it starts ends with it.

usage: inside.py DIRECTORY COMMAND...
Gives the command a loopback interface, a /proc and a /tmp of its own, runs it in DIRECTORY, reaps
the daemons that it leaves, writes down how much processor time all of them took, and ends as it
ended."""
import fcntl
import os
import resource
import socket
import struct
import subprocess
import sys
from pathlib import Path

PROCESSOR_SECONDS = "processor_seconds"     # a file in DIRECTORY

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sH22x", b"lo", 0))
        flags, = struct.unpack_from("H", request, 16)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | IFF_UP))


def main() -> None:
    directory, command = sys.argv[1], sys.argv[2:]
    start_loopback()
    for kind, place in (("proc", "/proc"), ("tmpfs", "/tmp")):
        subprocess.run(["mount", "-t", kind, kind, place], check=True)
    child = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL)
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            Path(directory, PROCESSOR_SECONDS).write_text(f"{used.ru_utime + used.ru_stime:.0f}")
            sys.exit(os.waitstatus_to_exitcode(status) & 0xff)


if __name__ == "__main__":
    main()
