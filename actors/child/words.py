"""An exception in words: what an author needs of it, bounded."""

from __future__ import annotations

import traceback

LOG_CHARACTERS = 6_000


def words_of(error: BaseException) -> str:
    """Return the end of a traceback."""
    words = "".join(traceback.format_exception(error))[-LOG_CHARACTERS:]
    return words.encode(errors="replace").decode()
