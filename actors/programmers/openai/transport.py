"""One exchange with the endpoint: a request out, a response read within bounds, or a trouble.

Bodies are read as bytes and not by the client's models: they are untrusted, may have no end, and
what is wrong with one is to be counted rather than raised.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from importlib import import_module
from typing import Any, TypeVar, cast

import openai
from openai import AsyncAPIResponse, AsyncOpenAI

from kopt.actors.programmers.openai.reply import Reply, model_names, reply_from_body
from kopt.actors.programmers.openai.stream import read_stream
from kopt.actors.programmers.openai.trouble import Trouble, trouble_of
from kopt.actors.programmers.openai.words import one_line

BYTES_OF_A_BODY = 8
"""A body may be so many times as long as its answers: escapes, and reasoning beside them."""
BYTES_WITH_LOGPROBS = 80
"""The same where each token comes with an object of its own."""
MAX_LISTING_BYTES = 8_000_000
"""Of a list of models: gateways list hundreds, with a page about each."""
EVENTS = "text/event-stream"

T = TypeVar("T")


def _lost_connection_errors() -> tuple[type[Exception], ...]:
    """Return what reading a body may raise; which library that is depends on the client's age."""
    library = import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])
    errors: list[type[Exception]] = [OSError, library.HTTPError, library.StreamError]
    with suppress(ImportError):  # where it is installed, `endpoint` takes it
        errors.append(import_module("aiohttp").ClientError)
    return tuple(errors)


LOST_CONNECTION: tuple[type[Exception], ...] = (
    openai.APIConnectionError,
    *_lost_connection_errors(),
)


async def exchange(
    client: AsyncOpenAI, body: Mapping[str, Any], *, max_answer_bytes: int
) -> Reply | Trouble:
    """Ask for completions once.

    Args:
        client: of the endpoint.
        body: of the request, as JSON values; `n` is 1 where it is absent.
        max_answer_bytes: of one completion.
    """
    num_choices = body.get("n", 1)

    async def send() -> Reply | Trouble:
        create = client.chat.completions.with_streaming_response.create
        # The body goes out as it is journalled: it takes the place of the client's parameters.
        async with create(model=body["model"], messages=[], extra_body=body) as response:
            if response.headers.get("content-type", "").startswith(EVENTS):
                async with _chunks(response) as chunks:
                    return await read_stream(
                        chunks, num_choices=num_choices, max_answer_bytes=max_answer_bytes
                    )
            each_bytes = BYTES_WITH_LOGPROBS if body.get("logprobs") else BYTES_OF_A_BODY
            limit_bytes = each_bytes * num_choices * max_answer_bytes
            data, cut = await _read_body(response, limit_bytes=limit_bytes)
            return reply_from_body(
                data, cut=cut, num_choices=num_choices, max_answer_bytes=max_answer_bytes
            )

    return await _try(send)


async def list_models(client: AsyncOpenAI) -> tuple[str, ...] | Trouble:
    """Ask once for the names of the endpoint's models, in its order."""

    async def send() -> tuple[str, ...] | Trouble:
        async with client.models.with_streaming_response.list() as response:
            data, _ = await _read_body(response, limit_bytes=MAX_LISTING_BYTES)
            return model_names(data)

    return await _try(send)


async def _try(send: Callable[[], Awaitable[T | Trouble]]) -> T | Trouble:
    """Turn what the client raises into a trouble."""
    try:
        return await send()
    except openai.APIStatusError as error:
        return trouble_of(error.status_code, error.body, headers=error.response.headers)
    except LOST_CONNECTION as error:
        reason = f"connection lost ({_innermost_words(error)})"
        return Trouble(kind="retry", reason=reason, label="connection")


def _chunks(response: AsyncAPIResponse[Any]) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
    """Return the bytes of a body as they come; closed with the context, read to its end or not."""
    return aclosing(cast("AsyncGenerator[bytes, None]", response.iter_bytes()))


async def _read_body(response: AsyncAPIResponse[Any], *, limit_bytes: int) -> tuple[bytes, bool]:
    """Return a body's bytes, and whether it was cut off at the limit."""
    data = bytearray()
    async with _chunks(response) as chunks:
        async for chunk in chunks:
            data += chunk
            if len(data) > limit_bytes:
                return bytes(data[:limit_bytes]), True
    return bytes(data), False


def _innermost_words(error: BaseException) -> str:
    """Return what the first of a chain of errors said; the outer ones only say that it failed."""
    words = type(error).__name__
    link: BaseException | None = error
    while link is not None:
        if text := str(link):
            words = f"{type(link).__name__}: {text}"
        link = link.__cause__ or link.__context__
    return one_line(words)
