"""Aligned columns of text: the first to the left, the others to the right; nothing is cut."""

from __future__ import annotations

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], *, left: int = 1, gap: int = 2) -> list[str]:
    """Return a line for each row.

    Args:
        rows: of one length each; the first may be a heading.
        left: columns, from the first, that are aligned to the left.
        gap: blanks between columns.
    """
    if not rows:
        return []
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        (" " * gap)
        .join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        .rstrip()
        for row in rows
    ]
