"""Python's cycle collector, kept from stopping the driver for long.

Reading an answer makes thousands of objects that refer to each other (its syntax tree), so the
collector runs often; with Ray and torch loaded, each full run walks a million objects that live as
long as the process: 0.2 s in which no answer is read and no worker is served.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS = 50_000
"""Objects more than at the last look at the youngest: the syntax tree of a long answer, several
times over. Python's own threshold is 700."""


@contextmanager
def calm_collector() -> Iterator[None]:
    """Leave out of collections what is there now, and collect less often, within the body."""
    young, *older = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)
        gc.unfreeze()
