"""The postman: one task that looks at the answers for all who wait, and sorts them.

Nothing is watched but the folder's listing, so that network file systems will do; whether a file
has settled is told by our own clock from when it was last seen to change, never by its times.
An answer is kept in `taken/` before anyone hears of it: a driver that dies is told it again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from kopt.actors.programmers.postbox.folder import SUFFIX, Found, MailFolder, Signature
from kopt.actors.programmers.postbox.reply import Reply
from kopt.errors import AnswerAwaited, StoreError


class NotAnswered(Exception):
    """Nothing usable came before the deadline; the prompt is closed."""


Reader = Callable[[bytes], Reply]
"""Reads the content of an answer to one prompt."""


@dataclass(slots=True, kw_only=True)
class _Waiter:
    read: Reader
    reply: asyncio.Future[Reply]
    since_s: float


@dataclass(slots=True, kw_only=True)
class _Sight:
    """When a file was last seen to change."""

    signature: Signature
    since_s: float
    is_looked_at: bool = field(default=False)
    """Whether it was read as it is now, and was not whole."""


class Postman:
    """Brings prompts out and answers in. Belongs to one event loop."""

    def __init__(
        self,
        folder: MailFolder,
        *,
        poll_s: float,
        settle_s: float,
        wait_s: float | None = None,
        warn: Callable[[str], None],
    ) -> None:
        """Take up the work; nothing is looked at before somebody waits.

        Args:
            folder: that is prepared.
            poll_s: seconds between two looks.
            settle_s: seconds after which a file that does not change is as it will be.
            wait_s: seconds after which a prompt is left for a later sitting, once every file in
                `answers/` has settled; None waits on.
            warn: shows one line to the user.
        """
        self._folder = folder
        self._poll_s = poll_s
        self._settle_s = settle_s
        self._wait_s = wait_s
        self._warn = warn
        self._waiters: dict[str, _Waiter] = {}
        self._sights: dict[str, _Sight] = {}
        self._said: set[str] = set()
        self._round: asyncio.Task[None] | None = None

    async def ask(
        self, prompt_id: str, text: str, *, read: Reader, deadline_s: float | None
    ) -> Reply:
        """Lay a prompt out and return the reply; one that was taken before is returned at once.

        Args:
            prompt_id: names the files.
            text: of the prompt's file.
            read: reads an answer's content.
            deadline_s: seconds to wait; None waits for ever.

        Raises:
            NotAnswered: the deadline has passed.
            AnswerAwaited: nobody answered so far; the prompt stays open.
            StoreError: the folder cannot be written.
            OSError: or read.
        """
        earlier = await asyncio.to_thread(self._folder.taken, prompt_id)
        if earlier is not None:
            reply = read(earlier)
            if not reply.fault:
                return reply
        is_new = await asyncio.to_thread(self._folder.lay_out, prompt_id, text)
        self._warn(f"mailbox: prompt {prompt_id} is {'open' if is_new else 'still open'}")
        loop = asyncio.get_running_loop()
        waiter = _Waiter(read=read, reply=loop.create_future(), since_s=loop.time())
        self._waiters[prompt_id] = waiter
        if self._round is None:
            self._round = asyncio.create_task(self._go_round())
            self._round.add_done_callback(self._fell_ill)
        try:
            return await asyncio.wait_for(waiter.reply, deadline_s)
        except TimeoutError:
            await asyncio.to_thread(self._folder.expire, prompt_id)
            raise NotAnswered(prompt_id) from None
        finally:
            del self._waiters[prompt_id]

    async def close(self) -> None:
        """Stop looking. Open prompts stay where they are."""
        if self._round is not None:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)
            self._round = None

    async def _go_round(self) -> None:
        while True:
            try:
                found = await asyncio.to_thread(self._folder.look)
                now_s = asyncio.get_running_loop().time()
                self._sights = {each.name: self._sight(each, now_s) for each in found}
                for name, sight in self._sights.items():
                    is_settled = now_s - sight.since_s >= self._settle_s
                    await self._sort(name, sight, is_settled=is_settled)
                self._leave_for_later(now_s)
            except (OSError, StoreError) as error:
                self._say_once(f"mailbox: {error}")  # a network folder may come back
            await asyncio.sleep(self._poll_s)

    def _sight(self, found: Found, now_s: float) -> _Sight:
        known = self._sights.get(found.name)
        if known is not None and known.signature == found.signature:
            return known
        return _Sight(signature=found.signature, since_s=now_s)

    async def _sort(self, name: str, sight: _Sight, *, is_settled: bool) -> None:
        """Take one file in, refuse it, or leave it for now."""
        prompt_id = name.removesuffix(SUFFIX)
        waiter = self._waiters.get(prompt_id) if name.endswith(SUFFIX) else None
        if waiter is None:
            if is_settled:
                await self._put_aside(name, prompt_id)
            return
        if waiter.reply.done() or (sight.is_looked_at and not is_settled):
            return
        answer = await asyncio.to_thread(self._folder.read, prompt_id)
        if answer is None or (answer.signature != sight.signature and not answer.fault):
            return  # it changes under our eyes: the next round sees
        reply = Reply(text="", fault=answer.fault) if answer.fault else waiter.read(answer.content)
        sight.is_looked_at = True
        if reply.is_whole or (is_settled and not reply.fault):
            await asyncio.to_thread(self._folder.take, prompt_id, answer)
            if not waiter.reply.done():
                waiter.reply.set_result(reply)
        elif is_settled:
            moved = await asyncio.to_thread(self._folder.refuse, prompt_id, reply.fault)
            self._warn(
                f"mailbox: answer {name} is refused ({reply.fault}); it is {moved} now, "
                "and its prompt is open"
            )

    def _leave_for_later(self, now_s: float) -> None:
        """Let go of prompts that were waited for long enough."""
        if self._wait_s is None:
            return
        # What came a moment ago may be an answer yet, or deserve a word on why it is none.
        newest_s = max((sight.since_s for sight in self._sights.values()), default=-math.inf)
        if now_s - newest_s < self._settle_s:
            return
        for prompt_id, waiter in self._waiters.items():
            if not waiter.reply.done() and now_s - waiter.since_s >= self._wait_s:
                waiter.reply.set_exception(AnswerAwaited(f"prompt {prompt_id}"))

    async def _put_aside(self, name: str, prompt_id: str) -> None:
        """Do what is to be done with a file that nobody waits for."""
        if name.endswith(SUFFIX):
            if await asyncio.to_thread(self._folder.is_open, prompt_id):
                return  # of another run, or its search has not come to it yet
            reason = await asyncio.to_thread(self._folder.closed_as, prompt_id)
            if reason is not None:
                await self._put_aside_late(prompt_id, reason)
                return
        self._say_once(f"mailbox: {name!r} in answers/ has no prompt's name; it is left alone")

    async def _put_aside_late(self, prompt_id: str, reason: str) -> None:
        answer = await asyncio.to_thread(self._folder.read, prompt_id)
        if answer is None:
            return
        if answer.content == await asyncio.to_thread(self._folder.taken, prompt_id):
            await asyncio.to_thread(self._folder.remove, prompt_id)  # a crash left it, or a retry
            return
        moved = await asyncio.to_thread(self._folder.refuse, prompt_id, reason)
        self._warn(f"mailbox: answer {prompt_id}{SUFFIX} comes late ({reason}); it is {moved} now")

    def _say_once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._warn(line)

    def _fell_ill(self, round_: asyncio.Task[None]) -> None:
        """Nobody would answer those who wait: they hear what happened."""
        error = None if round_.cancelled() else round_.exception()
        if error is not None:
            self._round = None
        for waiter in self._waiters.values():
            if error is not None and not waiter.reply.done():
                waiter.reply.set_exception(error)
