"""Simple tables of reStructuredText, and blocks of a text that a program writes."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator


def simple_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A first cell must not be empty: the line would belong to the row above it."""
    every = [list(head), *(list(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*every)]
    rule = " ".join("=" * width for width in widths)
    lines = [" ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
             for row in every]
    return [rule, lines[0], rule, *lines[1:], rule]


def markdown_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(head)
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(row) + " |" for row in rows)]


# A block's first and last line, with a blank line next to each.
FORMS = {".rst": (".. begin: {}", ".. end: {}"), ".md": ("<!-- begin: {} -->", "<!-- end: {} -->")}


def block_pattern(ending: str, name: str) -> re.Pattern[str]:
    first, last = (re.escape(form.format(name)) for form in FORMS[ending])
    return re.compile(rf"(?<={first}\n\n)(.*?)(?=^{last}$)", re.S | re.M)


def block(text: str, ending: str, name: str) -> str:
    found = block_pattern(ending, name).search(text)
    if not found:
        raise ValueError(f"there is no block '{name}'")
    return found.group(1)


def with_block(text: str, ending: str, name: str, lines: Iterable[str]) -> str:
    block(text, ending, name)
    new = "\n".join(lines) + "\n\n"
    return block_pattern(ending, name).sub(lambda _: new, text)


def bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted else text


def bullets(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"* {line}"
