"""The supervisor's side of a release page: lets a child's queued block go, and times it.

What passes from the release until the device says that it is done is what the device needed, by our
clock, to a microsecond: no message, no thread of the child and no pause is in it. What the child
does after that before it answers is looked at too: a device that said so too early has work left.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from kopt.actors.child.host_memory import OF_THIS_SIZE
from kopt.actors.child.release import DONE, GO, KEY, LAST, PAGE_BYTES, QUEUED

LOOK_US = 100.0
"""Between two looks whether the child has answered."""
SPIN_S = 0.05
"""So long we look all the time: what takes longer may be found done a moment late."""
PAUSE_S = 50e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A block that was let go."""

    went_ns: int
    """When, by our clock."""
    done_ns: int
    """When the device said that it was done; when the child answered, or was given up, if it said
    nothing."""
    last: int
    """The digest that came with it."""
    was_queued: bool
    """Whether all of it was queued before it went."""

    @property
    def wall_us(self) -> float:
        """What passed between the two."""
        return (self.done_ns - self.went_ns) / 1e3


class Gate:
    """Of one child. Not for several threads."""

    def __init__(self) -> None:
        """Make the page."""
        self.fd = os.memfd_create("release", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        """To be passed to the child."""
        os.ftruncate(self.fd, PAGE_BYTES)
        # Who made it shorter would end whoever looks at it.
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, OF_THIS_SIZE | fcntl.F_SEAL_SEAL)
        self._page = mmap.mmap(self.fd, PAGE_BYTES)
        self._words = memoryview(self._page).cast("q")
        self._ticket = 0

    def next_ticket(self) -> int:
        """Return the ticket of the next block."""
        self._ticket += 1
        return self._ticket

    def release(
        self,
        *,
        key: int,
        patience_s: float,
        limit_s: float,
        has_answered: Callable[[], bool],
    ) -> Release:
        """Let the block of the last ticket go once it is queued, and wait until it is done.

        Args:
            key: that decides what its first call is given.
            patience_s: after which it goes though not all is queued: its calls wait for the device
                themselves, or are too many launches.
            limit_s: after which nobody waits any more.
            has_answered: whether the child has said something, or is gone.
        """
        words, ticket = self._words, self._ticket
        _watch(lambda: words[QUEUED // 8] >= ticket, has_answered, limit_s=patience_s)
        was_queued = words[QUEUED // 8] >= ticket
        went_ns = time.perf_counter_ns()  # before the key: who sees it begins
        words[KEY // 8] = key
        words[GO // 8] = ticket
        done_ns = _watch(lambda: words[DONE // 8] >= ticket, has_answered, limit_s=limit_s)
        return Release(
            went_ns=went_ns, done_ns=done_ns, last=words[LAST // 8], was_queued=was_queued
        )

    def close(self) -> None:
        """Give the page back; a second time does nothing."""
        if self.fd >= 0:
            self._words.release()
            self._page.close()
            os.close(self.fd)
            self.fd = -1


def _watch(is_so: Callable[[], bool], is_over: Callable[[], bool], *, limit_s: float) -> int:
    """Wait until a word says something, the child does, or time is up; return when, by our clock.

    This thread looks all the time: to be woken takes longer than a short block.
    """
    began_ns = now_ns = time.perf_counter_ns()
    look_ns = began_ns
    while not is_so():
        now_ns = time.perf_counter_ns()
        if now_ns < look_ns:
            continue
        if is_over() or now_ns - began_ns > limit_s * 1e9:
            break
        look_ns = now_ns + int(LOOK_US * 1e3)
        if now_ns - began_ns > SPIN_S * 1e9:
            time.sleep(PAUSE_S)
    return time.perf_counter_ns()
