"""How many tokens a text takes, estimated: no tokenizer is needed, and every model has its own.

Pieces of a text are counted as byte-pair tokenizers cut them: words by eight letters, digits by
three, marks two to a token but for single ones, a line break with the indent behind it as one.
Held against a public 65k-entry BPE vocabulary over our prompts, templates and Python sources, it
gives 0.96 to 1.08 times its count for texts of some length, mostly more; vocabularies twice that
size cut code into fewer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from os.path import commonprefix

from kopt.ports import Message

WORD = 8
DIGITS = 3
TOKENS_OF_A_MARK = 0.6
"""Of one that stands beside others."""
OTHER = 2
"""Tokens of a character beyond ASCII."""
MESSAGE = 4
"""Tokens of a chat template round each message."""
_PLAIN = re.compile(rf"[A-Za-z]{{1,{WORD}}}|[0-9]{{1,{DIGITS}}}|\n\s*+")
_MARKS = re.compile(r"[!-/:-@\[-`{-~]+")
_OTHER = re.compile(r"[^\x00-\x7f]")
_PARAGRAPH = "\n\n"
MAX_KEPT = 10_000
"""Characters of a paragraph whose count is kept: a prompt is mostly what earlier ones were."""


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text takes; linear in its length."""
    paragraphs = text.split(_PARAGRAPH)
    count = sum(_kept_count(each) if len(each) <= MAX_KEPT else _count(each) for each in paragraphs)
    return round(count + len(paragraphs) - 1)


def _count(text: str) -> float:
    runs = [len(run) for run in _MARKS.findall(text)]
    alone = runs.count(1)
    beside = sum(runs) - alone
    plain, other = len(_PLAIN.findall(text)), len(_OTHER.findall(text))
    return plain + alone + TOKENS_OF_A_MARK * beside + OTHER * other


_kept_count = lru_cache(maxsize=4_096)(_count)


def prompt_tokens(messages: Sequence[Message]) -> int:
    """Return about how many tokens a prompt takes."""
    return sum(MESSAGE + estimated_tokens(text) for _, text in messages)


def shared_prefix(one: Sequence[Message], other: Sequence[Message]) -> tuple[Message, ...]:
    """Return what two prompts begin with alike, to the character: what a prefix cache can keep."""
    shared: list[Message] = []
    for (role, text), (other_role, other_text) in zip(one, other, strict=False):
        if role != other_role:
            break
        # Of characters, not of paths.
        shared.append(Message(role, commonprefix([text, other_text])))  # noqa: RUF071
        if text != other_text:
            break
    return tuple(shared)
