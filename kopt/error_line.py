"""The one line of a log that says what went wrong: the compiler's first error, or the exception.

The last line of a log seldom is it: below an error a compiler shows the place, and what followed
from it; an exception's message may go on for lines.
"""

from __future__ import annotations

import re

MAX_CHARACTERS = 300
"""Of the line; more is cut."""
KILLED = "the process ended: killed by"
"""Begins the last line of a log whose process a signal ended: what it printed before is no cause.
"""
_PLACE = r"^[^\s:()][^\n:()]*(?::\d+(?::\d+)?|\(\d+\))"
_COMPILER = re.compile(rf"{_PLACE}: (?:fatal |internal compiler )?error\b.*$", re.MULTILINE)
"""g++, clang, ptxas and linkers by `file:line:column:`, nvcc by `file(line):`."""
_LINKER = re.compile(r"^.*\b(?:undefined reference to|undefined symbol:|cannot find -l).*$", re.M)
_TRACEBACK = "Traceback (most recent call last):\n"
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Warning)(?::.*)?$",
    re.MULTILINE,
)


def error_line(log: str) -> str:
    """Return what went wrong, in at most MAX_CHARACTERS; empty for an empty log.

    The signal that ended the process; else the first error of a compiler or linker; else the line
    of the last exception that names it; else the last line that says something.
    """
    last = _last_line(log)
    if not last.startswith(KILLED):
        found = _COMPILER.search(log) or _LINKER.search(log)
        last = found[0] if found else _exception(log) or last
    return last.strip()[:MAX_CHARACTERS]


def _exception(log: str) -> str:
    """The line under the frames of the last traceback; empty where there is none."""
    before, mark, frames = log.rpartition(_TRACEBACK)
    if mark:
        # Frames and their source are indented, the exception is not.
        below = (line for line in frames.splitlines() if line.strip() and not line[0].isspace())
        line = next(below, "")
        if line:
            return line
    named = _EXCEPTION.findall(log if not mark else before)
    return str(named[-1]) if named else ""


def _last_line(log: str) -> str:
    return next((line for line in reversed(log.splitlines()) if line.strip()), "")
