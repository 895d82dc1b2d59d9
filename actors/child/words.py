"""An exception in words: what an author needs of it, bounded."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

LOG_CHARACTERS = 6_000
_OURS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def words_of(error: BaseException) -> str:
    """Return the end of a traceback that begins where our own calls end; its last line at least."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        each.__traceback__ = _beyond_ours(each.__traceback__)
        each = each.__cause__ or each.__context__
    words = "".join(traceback.format_exception(error))[-LOG_CHARACTERS:]
    return words.encode(errors="replace").decode()


def _beyond_ours(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS):
        trace = trace.tb_next
    return trace
