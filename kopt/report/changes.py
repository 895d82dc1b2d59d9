"""What a candidate changed of its parent, as lines of a unified diff."""

from __future__ import annotations

import difflib

CONTEXT = 3
"""Lines around a change."""
MAX_LINES = 600
"""Lines of a diff that are kept."""


def changes(before: str, after: str, *, names: tuple[str, str]) -> list[str]:
    """Return the diff from one source to another; [] where they are the same.

    Args:
        before: the parent's source.
        after: the candidate's.
        names: of the two, for the head of the diff.
    """
    lines = list(
        difflib.unified_diff(
            before.splitlines(), after.splitlines(), *names, lineterm="", n=CONTEXT
        )
    )
    hidden = len(lines) - MAX_LINES
    return lines if hidden <= 0 else [*lines[:MAX_LINES], f"@@ … and {hidden} more lines @@"]
