"""The Programmer port over a mailbox."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from kopt.actors.programmers.config import MailboxConfig
from kopt.actors.programmers.cutlass_manual import Manual, find_library
from kopt.actors.programmers.postbox.folder import MailFolder, Refusal
from kopt.actors.programmers.postbox.guide import guide_text
from kopt.actors.programmers.postbox.letter import (
    call_id,
    call_text,
    letter_text,
    messages_of,
    prompt_id,
)
from kopt.actors.programmers.postbox.postman import NotAnswered, Postman, Reader
from kopt.actors.programmers.postbox.reply import PROGRAMMER, Reply, read_reply, read_words
from kopt.actors.programmers.registry import PROGRAMMERS, Workplace
from kopt.agent_call import AgentCall, AgentReply
from kopt.data.rundir import RunDir
from kopt.environment import cache_dir
from kopt.errors import ConfigError, ProgrammerUnavailable, StoreError
from kopt.ports import Answer, Completion, Message, WriteRequest
from kopt.prompts import build
from kopt.prompts.builder import reference_is_cut


@PROGRAMMERS.register("mailbox")
class MailboxProgrammer:
    """Whoever answers the files. As many prompts are open as the driver has in flight."""

    name = PROGRAMMER

    def __init__(self, config: MailboxConfig, workplace: Workplace) -> None:
        """Make the folder, and say where it is.

        Raises:
            ConfigError: the folder cannot be made, or the checkout of CUTLASS is none.
            StoreError: the run's manifest is damaged.
        """
        path = config.place(workplace.run_dir)
        self._folder = MailFolder(path)
        self._run = RunDir(workplace.run_dir).identity()
        self._deadline_s = config.deadline_s
        try:
            self._folder.prepare(guide_text(settle_s=config.settle_s))
        except (OSError, StoreError) as error:
            raise ConfigError(f"programmer.folder: {error}") from error
        library = find_library(
            config.cutlass, key="programmer.cutlass", device=workplace.cluster.device
        )
        self._warn = workplace.warn
        self._cut: set[str] = set()
        """Problems whose reference is too long for a prompt."""
        self._manual = Manual(library, cache_dir=cache_dir(), has_tools=False)
        self._postman = Postman(
            self._folder,
            poll_s=config.poll_s,
            settle_s=config.settle_s,
            wait_s=config.wait_s,
            warn=workplace.warn,
        )
        workplace.warn(f"mailbox: {path}/prompts is to be answered; {path}/README.md says how")

    async def write(self, request: WriteRequest) -> Answer:
        """Lay the prompt out and wait for its answer (the Programmer port).

        A prompt that lies there since an earlier sitting stands as it is: what is answered, and
        journalled, is what was read, whatever would be written now.
        """
        request = replace(request, manual=await self._manual.lines(request.target))
        messages = build(request, form="file")
        self._note_cut(request, messages)
        letter_id = prompt_id(request, run=self._run)
        text = letter_text(letter_id, request, messages)
        reader = partial(read_reply, prompt_id=letter_id, request=request)
        reply, refusals, standing = await self._ask(letter_id, text, reader)
        messages = standing or messages
        return _answer(reply, refusals, messages, letter_id=letter_id, request=request)

    async def say(self, call: AgentCall) -> AgentReply:
        """Lay an agent's prompt out and wait for its answer (the Talker port)."""
        letter_id = call_id(call, run=self._run)
        reader = partial(read_words, prompt_id=letter_id)
        reply, _, _ = await self._ask(letter_id, call_text(letter_id, call), reader)
        fault = "" if reply.declined is None else f"declined: {reply.declined}"
        return AgentReply(
            completion=Completion(text=reply.text, fault=fault), sampling={"prompt": letter_id}
        )

    async def _ask(
        self, letter_id: str, text: str, read: Reader
    ) -> tuple[Reply, list[Refusal], tuple[Message, ...]]:
        """Return the reply to a letter, what was refused before it, and the letter that stood.

        Raises:
            ProgrammerUnavailable: no usable answer came in time, or the folder cannot be used.
            AnswerAwaited: it comes in a later sitting.
        """
        try:
            standing = await asyncio.to_thread(self._folder.prompt, letter_id)
            reply = await self._postman.ask(letter_id, text, read=read, deadline_s=self._deadline_s)
            refusals = self._folder.refusals(letter_id)
        except NotAnswered:
            why = f"prompt {letter_id} had no usable answer within {self._deadline_s:g} s"
            raise ProgrammerUnavailable(self.name, why) from None
        except (OSError, StoreError) as error:
            raise ProgrammerUnavailable(self.name, str(error)) from error
        stood = standing is not None and standing != text
        return reply, refusals, messages_of(standing or "") if stood else ()

    def _note_cut(self, request: WriteRequest, messages: tuple[Message, ...]) -> None:
        name = request.problem.name
        if name not in self._cut and reference_is_cut(messages):
            self._cut.add(name)
            self._warn(f"mailbox: prompts of {name} leave out a part of its reference")

    async def close(self) -> None:
        """Stop looking; open prompts stay, for a resumed run to find."""
        await self._postman.close()


def _answer(
    reply: Reply,
    refusals: list[Refusal],
    messages: tuple[Message, ...],
    *,
    letter_id: str,
    request: WriteRequest,
) -> Answer:
    """Return a reply as the driver takes it, the answers refused before it included."""
    wanted, got = request.expansion.num_candidates, len(reply.candidates)
    note = "" if got == wanted else f"{got} of {wanted} answered"
    fault = ""
    if reply.declined is not None:
        note = fault = f"declined: {reply.declined}"
    faulty = [Completion(text=refusal.text, fault=refusal.reason) for refusal in refusals]
    return Answer(
        candidates=reply.candidates,
        exhausted=reply.closes_node,
        messages=messages,
        sampling={"prompt": letter_id},
        completions=(*faulty, Completion(text=reply.text, fault=fault)),
        note=note,
    )
