"""Other programs, and errors that an operator reads."""
from __future__ import annotations

from ceph_volume import process


class Refusal(Exception):
    """One line: what is wrong, and what to do."""


def run(*command: object, stdin: str | None = None, show: bool = True, secret: bool = False
        ) -> list[str]:
    """The lines that it printed; a Refusal with its last words when it fails."""
    words = [str(word) for word in command]
    code, output, errors = attempt(*words, stdin=stdin, show=show, secret=secret)
    if code != 0:
        said = [line.strip() for line in errors + output if line.strip()]
        raise Refusal(f"{words[0]} failed ({code}): {said[-1] if said else 'it said nothing'}")
    return output


def attempt(*command: object, stdin: str | None = None, show: bool = False, secret: bool = False
            ) -> tuple[int, list[str], list[str]]:
    """Exit code, output and errors of a program that may fail. What is sent, and with `secret` what
    comes, is kept out of ceph-volume's log. It is always sent something:
    otherwise process.call() reads one of its pipes to the end before the other, and a ceph-osd that
    aborts, and says all that it remembers, waits for ever for somebody to read the other."""
    output, errors, code = process.call([str(word) for word in command], stdin=stdin or "\n",
                                        show_command=show, verbose_on_failure=False,
                                        logfile_verbose=stdin is None and not secret)
    return code, output, errors
