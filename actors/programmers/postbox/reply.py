"""A reply: what a person or an agent wrote, read as untrusted text. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from kopt.candidate import Candidate
from kopt.ports import WriteRequest
from kopt.prompts.answer import read_answer

PROGRAMMER = "mailbox"
MAX_LINE = 1_000
"""Characters of a first line that are looked at."""
MAX_SHOWN = 60
"""Characters of somebody's words in a line of ours."""

_MARKUP = r"[\s#>*_`-]*"
_PROMPT_LINE = re.compile(rf"{_MARKUP}prompt[*_`]*\s*:\s*{_MARKUP}(?P<id>[^\s*`]*)", re.IGNORECASE)
_DECLINE_LINE = re.compile(
    rf"{_MARKUP}decline(?P<node>\s+node)?[*_`]*\s*:(?P<why>.*)", re.IGNORECASE
)
_CLOSING_FENCE = re.compile(r"`{3,}|~{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What an answer file says: candidates, or that there will be none, or why it says nothing."""

    text: str
    candidates: tuple[Candidate, ...] = ()
    declined: str | None = None
    """Why its writer declines; None where they do not."""
    closes_node: bool = False
    """Declined for this node altogether."""
    is_whole: bool = False
    """Whether nothing more can be meant to come: as many candidates as wanted, the last block
    closed. Of anything else, more may be on its way."""
    fault: str = ""
    """Why it cannot be used, in one line; empty where it can."""


def read_reply(content: bytes, *, prompt_id: str, request: WriteRequest) -> Reply:
    """Read an answer file.

    Args:
        content: of the file.
        prompt_id: of the prompt that the file's name says it answers.
        request: what was asked.
    """
    opened = _opened(content, prompt_id=prompt_id)
    if isinstance(opened, Reply):
        return opened
    text, rest = opened
    reading = read_answer(
        rest,
        request=request,
        programmer=PROGRAMMER,
        max_candidates=request.expansion.num_candidates,
    )
    return Reply(
        text=text,
        candidates=reading.candidates,
        fault=reading.fault,
        is_whole=len(reading.candidates) == request.expansion.num_candidates
        and _CLOSING_FENCE.fullmatch(rest.rstrip().rpartition("\n")[2].strip()) is not None,
    )


def read_words(content: bytes, *, prompt_id: str) -> Reply:
    """Read an answer file of words, such as a plan: all of it after the first line.

    Args:
        content: of the file.
        prompt_id: of the prompt that the file's name says it answers.
    """
    opened = _opened(content, prompt_id=prompt_id)
    if isinstance(opened, Reply):
        return opened
    _, rest = opened
    words = rest.strip()
    if not words:
        return Reply(text="", fault="it says nothing after its first line")
    last = words.rpartition("\n")[2].strip()
    is_whole = _CLOSING_FENCE.fullmatch(last) is not None or _is_object(words)
    return Reply(text=words, is_whole=is_whole)


def _opened(content: bytes, *, prompt_id: str) -> Reply | tuple[str, str]:
    """Return the text and what follows its first line; a reply that declines, or a fault."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        shown = content.decode("utf-8", errors="replace")
        return Reply(text=shown, fault=f"not UTF-8 text (byte {error.start})")
    first, rest = _first_line(text)
    declined = _DECLINE_LINE.fullmatch(first)
    if declined is None:
        named = _PROMPT_LINE.match(first)
        if named is None or not named["id"]:
            return Reply(text=text, fault=f"its first line must be `prompt: {prompt_id}`")
        if named["id"].removesuffix(".md") != prompt_id:
            other = _shown(named["id"])
            return Reply(
                text=text, fault=f"it answers prompt {other}, and its name says {prompt_id}"
            )
        declined = _DECLINE_LINE.fullmatch(_first_line(rest)[0])
    if declined is not None:
        why = declined["why"].strip(" \t*_`")
        why = _shown(why) if why else "no reason given"
        return Reply(text=text, declined=why, closes_node=declined["node"] is not None)
    return text, rest


def _is_object(words: str) -> bool:
    try:
        return isinstance(json.loads(words), dict)
    except (ValueError, RecursionError):
        return False


def _first_line(text: str) -> tuple[str, str]:
    """Return the first line that is not blank, and what comes after it."""
    line, _, rest = text.lstrip().partition("\n")
    return line[:MAX_LINE].rstrip(), rest


def _shown(words: str) -> str:
    """Return somebody's words fit for a line of ours."""
    plain = "".join(c if c.isprintable() else "?" for c in words)
    return plain if len(plain) <= MAX_SHOWN else f"{plain[:MAX_SHOWN]}…"
