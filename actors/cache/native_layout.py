"""C++ and CUDA text in one layout: what is taken away can change nothing for the compiler.

Spaces at the ends of lines, empty lines, and the number of spaces between tokens. Spaces in
literals stay, and line breaks, which end directives. Where a text can see its own layout (raw
strings, line numbers) it stays as it is; where lines are continued (macros), what is between tokens
does.
"""

from __future__ import annotations

import re

_SEES_LAYOUT = re.compile(
    r'R"|__LINE__|source_location|__builtin_LINE|\?\?/'  # raw strings, line numbers, trigraphs
    r"|[0-9a-fA-F]'[0-9a-fA-F]"  # 1'000'000: its quotes begin no literal
    r"|\\[ \t\f\v\r]+\n"  # compilers differ on whether that continues a line
    r"|[\f\v\r]"
)
_CONTINUED = re.compile(r"\\\n")
_PART = re.compile(
    r"""(?P<kept>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<comment>//.*|/\*.*?(?:\*/|$))"""
    r"""|(?P<space>[ \t]+)|(?P<other>.)"""
)


def plain_layout(text: str) -> str:
    """Return the text in one layout; the text itself where its layout may matter."""
    if _SEES_LAYOUT.search(text):
        return text
    is_continued = _CONTINUED.search(text) is not None
    lines: list[str] = []
    in_comment = follows = False
    for line in text.split("\n"):
        if follows or line.endswith("\\"):
            # An empty line ends a macro whose last line is continued; and strings may be, too.
            lines.append(line)
            follows = line.endswith("\\")
            continue
        bare = line.strip(" \t")
        if not is_continued:
            bare, in_comment = _one_space(bare, in_comment=in_comment)
        if bare:
            lines.append(bare)
    return "\n".join(lines)


def _one_space(line: str, *, in_comment: bool) -> tuple[str, bool]:
    """Return a line with one space for several, and whether a comment goes on after it.

    A comment's own text is nobody's business: it is kept but for its spaces.
    """
    start = ""
    if in_comment:
        start, end, line = line.partition("*/")
        if not end:
            return " ".join(start.split()), True
        start = " ".join(start.split()) + end
    parts = []
    for part in _PART.finditer(line):
        if part["space"]:
            parts.append(" ")
        elif part["comment"]:
            text = part["comment"]
            in_comment = text.startswith("/*") and not (len(text) > 3 and text.endswith("*/"))
            parts.append(" ".join(text.split()))
            if in_comment:
                return start + "".join(parts), True
        else:
            parts.append(part[0])
    return start + "".join(parts), False
