"""Keeps other work off the cores while a CPU is timed; does nothing for a GPU.

On the `cpu` device the build and programmer lanes share the cores that are timed. They work beside
each other, and the device alone, each in the order asked.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AsyncExitStack


class Quiet:
    """A lock that work shares and timing has alone; for one event loop."""

    def __init__(self, device: str) -> None:
        """Make the lock; only `cpu` needs it."""
        self.is_needed = device == "cpu"
        """Whether anything waits for anything here."""
        self._num_sharing = 0
        self._is_alone = False
        self._queue: deque[tuple[asyncio.Future[None], bool]] = deque()

    async def hold(self, stack: AsyncExitStack) -> None:
        """Work beside others that work, and beside no timing, until the stack closes."""
        await self._enter(stack, alone=False)

    async def hold_alone(self, stack: AsyncExitStack) -> None:
        """Have the cores alone until the stack closes."""
        await self._enter(stack, alone=True)

    async def _enter(self, stack: AsyncExitStack, *, alone: bool) -> None:
        if not self.is_needed:
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((turn, alone))
        self._advance()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(alone=alone)
            else:
                self._queue = deque(each for each in self._queue if each[0] is not turn)
                self._advance()
            raise
        stack.callback(self._leave, alone=alone)

    def _leave(self, *, alone: bool) -> None:
        if alone:
            self._is_alone = False
        else:
            self._num_sharing -= 1
        self._advance()

    def _advance(self) -> None:
        """Let those in whose turn it is."""
        while self._queue and not self._is_alone:
            turn, alone = self._queue[0]
            if alone and self._num_sharing:
                return
            self._queue.popleft()
            if turn.cancelled():
                continue
            if alone:
                self._is_alone = True
            else:
                self._num_sharing += 1
            turn.set_result(None)
