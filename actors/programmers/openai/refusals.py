"""Why an endpoint will never answer as it is set up, in one line that says what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from openai import AsyncOpenAI

from kopt.actors.programmers.openai.transport import list_models
from kopt.actors.programmers.openai.trouble import Trouble
from kopt.actors.programmers.openai_access import Access
from kopt.errors import ProgrammerRefused

MAX_MODELS_NAMED = 8
"""Of those that an endpoint lists."""
LISTING_S = 10.0
"""A list that only explains an error is not waited for longer."""


async def refusal(
    trouble: Trouble, *, access: Access, client: AsyncOpenAI, programmer: str
) -> ProgrammerRefused:
    """Return the error of a trouble that asking again would not mend, without any secret."""
    why = f"{access.url} refuses the request ({trouble.reason})"
    if trouble.kind == "key":
        why = _of_key(trouble, access)
    elif trouble.kind == "no_model":
        why = f"{access.url} has no such model ({trouble.reason}){await _listed(client)}"
    return ProgrammerRefused(programmer, access.redact(why))


def _of_key(trouble: Trouble, access: Access) -> str:
    if not access.key:
        return f"{access.url} asks for a key ({trouble.label}): set {access.key_variable}"
    if trouble.label == "401":  # its words often hold part of the key
        return f"{access.url} does not take the key in {access.key_variable} (401)"
    return f"{access.url} forbids it with the key in {access.key_variable} ({trouble.reason})"


async def _listed(client: AsyncOpenAI) -> str:
    try:
        async with asyncio.timeout(LISTING_S):
            names = await list_models(client)
    except TimeoutError:
        return ""
    if isinstance(names, Trouble) or not names:
        return ""
    return f"; it lists {named_models(names)}"


def named_models(names: Sequence[str]) -> str:
    """Return the first models of a list, in words."""
    shown = ", ".join(names[:MAX_MODELS_NAMED])
    left = len(names) - MAX_MODELS_NAMED
    return f"{shown} and {left} more" if left > 0 else shown
