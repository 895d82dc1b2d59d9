"""Excerpts: long texts cut to their section's size, visibly, and set in fences of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from itertools import islice
from os.path import commonprefix

MAX_LINE = 600
"""Characters of one line."""
MAX_ERRORS = 6
"""Lines about an error that are kept of what a log's end leaves out."""
_ERROR = re.compile(r"\berror\b", re.IGNORECASE)
CUT = "It is too long for this prompt:"
"""Begins the line above a program that is cut."""
_FENCES = re.compile(r"`{3,}")


def fenced(text: str, *, info: str = "") -> str:
    """Return a text as a fenced block; the fence is longer than any within."""
    longest = max((len(match) for match in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{text.strip(chr(10))}\n{fence}"


def source_block(source: str, *, max_characters: int) -> str:
    """Return a program as a fenced block; one that is cut stands under a line that says how much.

    Args:
        source: the whole of it.
        max_characters: of what is shown, about.
    """
    shown = middle_out(source, max_characters=max_characters)
    block = fenced(shown, info="python")
    if shown == source:
        return block
    head = len(commonprefix([source, shown]))  # noqa: RUF071 - of characters, not of paths
    tail = len(commonprefix([source[:head:-1], shown[:head:-1]]))  # noqa: RUF071 - likewise
    left_out = source[head : len(source) - tail]
    return (
        f"{CUT} {len(left_out):,} of its {len(source):,} characters ({_lines_of(left_out):,} of "
        f"{_lines_of(source):,} lines) are left out, where the block says so.\n\n{block}"
    )


def middle_out(text: str, *, max_characters: int) -> str:
    """Return a text with lines of its middle left out, so that about so many characters stay.

    Three quarters of what stays are its head. The place says how many lines were left out.
    """
    if len(text) <= max_characters:
        return text
    lines = text.split("\n")
    shown = partial(short_line, max_characters=max_characters // 2)
    head = _fitting(map(shown, lines), max_characters * 3 // 4)
    rest = lines[head:]
    tail = _fitting(map(shown, reversed(rest)), max_characters - max_characters * 3 // 4)
    if tail >= len(rest):
        return "\n".join(map(shown, lines))
    left_out = len(rest) - tail
    return "\n".join([*map(shown, lines[:head]), _left_out(left_out), *map(shown, rest[left_out:])])


def last_lines(text: str, *, max_characters: int) -> str:
    """Return the last lines of a log, at most about so many characters of them, long lines cut.

    Of the lines left out, the first few that name an error are kept: a compiler's own last words
    are often about what followed from it.
    """
    lines = text.strip("\n").split("\n")
    kept = _fitting(map(short_line, reversed(lines)), max_characters)
    if kept >= len(lines):
        return "\n".join(map(short_line, lines))
    left_out = lines[: len(lines) - kept]
    errors = list(islice(filter(_ERROR.search, map(short_line, left_out)), MAX_ERRORS))
    last = map(short_line, lines[len(left_out) :])
    return "\n".join([*errors, _left_out(len(left_out) - len(errors)), *last])


def short_line(line: str, *, max_characters: int = MAX_LINE) -> str:
    """Return a line, its end cut where that makes it shorter: the notice takes room too."""
    left_out = len(line) - max_characters
    notice = f" … {left_out} characters left out …"
    return line if left_out <= len(notice) else line[:max_characters] + notice


def _fitting(lines: Iterable[str], max_characters: int) -> int:
    """Return how many of the first lines fit; no more of them are looked at than that."""
    used = number = 0
    for line in lines:
        used += len(line) + 1
        if used > max_characters:
            break
        number += 1
    return number


def _lines_of(text: str) -> int:
    return len(text.splitlines())


def _left_out(lines: int) -> str:
    return f"… {lines} lines left out …" if lines != 1 else "… 1 line left out …"
