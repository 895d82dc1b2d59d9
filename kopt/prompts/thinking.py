"""Reasoning that a model writes before it answers: left out, whatever code it holds.

Servers mostly keep it apart; where they do not, it stands between tags such as `<think>` and
`</think>`. A chat template may have opened the first section, so that only its end is in the text.
"""

from __future__ import annotations

import re

_NAMES = r"(?:\w{1,20}:)?(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"
_TAG = re.compile(rf"[<\[◁](?P<end>/?){_NAMES}[>\]▷]", re.IGNORECASE)
_MARGIN = 16
"""Characters before a tag in which its line may begin."""


def without_thinking(text: str) -> tuple[str, bool]:
    """Return what is left of an answer, and whether it ended while it was still reasoning.

    An opening tag counts at the start of a line, a closing one beside a line's end or start: the
    words of a program are no tags. A section ends with its first closing tag; a further closing
    tag, which nothing opened, ends a section that began with the text.
    """
    kept: list[str] = []
    start = 0  # of what is outside a section
    inside = False
    for tag in _TAG.finditer(text):
        if not tag["end"]:
            if not inside and _starts_line(text, tag.start()):
                kept.append(text[start : tag.start()])
                inside = True
        elif inside:
            inside, start = False, tag.end()
        elif _starts_line(text, tag.start()) or _ends_line(text, tag.end()):
            kept, start = [], tag.end()
    if not inside:
        kept.append(text[start:])
    return "".join(kept), inside


def _starts_line(text: str, at: int) -> bool:
    window = max(0, at - _MARGIN)
    begins = text.rfind("\n", window, at) + 1
    return (begins > 0 or window == 0) and not text[begins:at].strip()


def _ends_line(text: str, at: int) -> bool:
    return text[at : at + 1] in ("", "\n")
