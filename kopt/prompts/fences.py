"""Fenced blocks of an answer, read as a person would: by Markdown's rules, and past its traps.

A program may hold fences of its own (in a docstring), and a model may forget to close one. Which
fence ends a block is left open here: a block knows its possible ends, and whoever can tell a whole
program from half of one chooses. Every step is linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

MAX_FENCES = 4_096
"""Lines with a fence that are looked at; an answer with more of them is no answer."""
MAX_ENDS = 6
"""Fences that are considered as a block's end."""
_LOOKED_AT = 64
"""Fences that are looked at to find them."""
_FENCE = re.compile(
    r"^(?P<indent>[ \t]{0,12}+)(?P<fence>`{3,200}+|~{3,200}+)(?P<info>[^`\n]*)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A line that may open a block, close one, or both."""

    start: int
    """Offset of its line."""
    end: int
    """Offset after its line."""
    indent: int
    char: str
    length: int
    info: str
    """What stands behind the fence: the language, as a rule. A closing fence has none."""

    def can_close(self, opening: Fence) -> bool:
        """Whether it may end the block that `opening` began."""
        return self.char == opening.char and self.length >= opening.length and not self.info


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One place where a block may end."""

    offset: int
    """Of the end of its content."""
    next_fence: int
    """Index of the first fence behind it."""
    is_closed: bool
    """Whether a fence closes it there; False where the text ends, or another block begins."""


def fences_of(text: str) -> list[Fence]:
    """Return the fences of a text, in order, at most MAX_FENCES."""
    return [
        Fence(
            start=match.start(),
            end=min(match.end() + 1, len(text)),
            indent=len(match["indent"]),
            char=match["fence"][0],
            length=len(match["fence"]),
            info=match["info"].strip(),
        )
        for match in islice(_FENCE.finditer(text), MAX_FENCES)
    ]


def endings(text: str, fences: list[Fence], opening: int) -> list[Ending]:
    """Return where the block that a fence opens may end, nearest first, at least one place.

    Those are the fences that can close it, the place where a further block begins, and the end of
    the text.

    Args:
        text: the answer.
        fences: all of them.
        opening: index of the one that opens the block.
    """
    found: list[Ending] = []
    is_cut = False
    for index in range(opening + 1, min(opening + 1 + _LOOKED_AT, len(fences))):
        fence = fences[index]
        if fence.can_close(fences[opening]):
            found.append(Ending(offset=fence.start, next_fence=index + 1, is_closed=True))
        elif fence.info and not is_cut:
            is_cut = True
            found.append(Ending(offset=fence.start, next_fence=index, is_closed=False))
        if len(found) == MAX_ENDS:
            return found
    return [*found, Ending(offset=len(text), next_fence=len(fences), is_closed=False)]


def content(text: str, opening: Fence, offset: int) -> str:
    """Return a block's lines, without the indent that its fence has."""
    lines = text[opening.end : max(offset, opening.end)]
    if not opening.indent:
        return lines
    return re.sub(rf"^[ \t]{{1,{opening.indent}}}", "", lines, flags=re.MULTILINE)
