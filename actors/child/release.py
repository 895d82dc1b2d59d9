"""The page of host memory by which a supervisor releases queued calls of a GPU, and times them.

A child queues a block of calls behind a wait for a word of this page, and a write of another behind
them. The supervisor writes the first when all is queued, and sees the second written: between the
two, the device does what was queued, and nothing else. The key that decides what the first call is
given comes with the release, and the digest of the last call's output with the end.

Words are tickets: a block's own number, so that nothing has to be reset between blocks.
"""

from __future__ import annotations

PAGE_BYTES = 4_096
GO, KEY, QUEUED, DONE, LAST = (64 * line for line in range(5))
"""Where each word of eight bytes lies: lines of their own, written by one side each.

`GO` and `KEY` are the supervisor's. `QUEUED`: all is queued, by the child. `DONE` and `LAST`, the
digest of the last output, by the device."""
