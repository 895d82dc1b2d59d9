"""How a behaviour goes over the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from aiohttp import web

from kopt.testing.openai_server.authors import Author
from kopt.testing.openai_server.behaviour import Asked, Behaviour
from kopt.testing.openai_server.bodies import HTML, error_body, events, text_event, whole_body

ENDLESS_PIECE = "and so on " * 400
DRIP_CHARACTERS = 10
"""Of an answer that is sent slowly and not as a stream."""


async def send(
    request: web.Request, asked: Asked, behaviour: Behaviour, author: Author
) -> web.StreamResponse:
    """Do what the behaviour says; return the response, sent or to be sent."""
    if behaviour.kind == "hang":
        await asyncio.Event().wait()
    if behaviour.delay_s and behaviour.kind != "drip":
        await asyncio.sleep(behaviour.delay_s)
    is_stream = bool(asked.body.get("stream"))
    match behaviour.kind:
        case "drop":
            return _drop(request)
        case "status":
            body = error_body(behaviour.status, behaviour.error)
            return web.json_response(body, status=behaviour.status, headers=behaviour.headers)
        case "html":
            return web.Response(text=HTML, content_type="text/html")
        case "empty_body":
            return web.Response(body=b"", content_type="application/json")
    if is_stream:
        return await _stream(request, asked, behaviour, author)
    return await _whole(request, asked, behaviour, author)


async def _whole(
    request: web.Request, asked: Asked, behaviour: Behaviour, author: Author
) -> web.StreamResponse:
    if behaviour.kind == "error_in_body":
        return web.json_response(error_body(500, behaviour.error))
    text = json.dumps(whole_body(asked, behaviour, author))
    match behaviour.kind:
        case "wrong_json":
            text = text.replace('"choices"', "choices", 1)
        case "truncated":
            text = text[: len(text) // 2]
        case "endless":
            return await _endless_body(request)
        case "drop_within":
            headers = {"Content-Length": str(len(text)), "Content-Type": "application/json"}
            response = web.StreamResponse(headers=headers)
            await response.prepare(request)
            await response.write(text[: len(text) // 2].encode())
            return _drop(request)
        case "drip":
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            for start in range(0, len(text), DRIP_CHARACTERS):
                await response.write(text[start : start + DRIP_CHARACTERS].encode())
                await asyncio.sleep(behaviour.delay_s)
            return response
    return web.Response(text=text, content_type="application/json", headers=behaviour.headers)


async def _stream(
    request: web.Request, asked: Asked, behaviour: Behaviour, author: Author
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    if behaviour.kind == "endless":
        while True:
            await response.write(_event(text_event(asked, ENDLESS_PIECE)))
    if behaviour.kind == "error_in_body":
        await response.write(_event(json.dumps(error_body(500, behaviour.error))))
        return response
    planned = list(events(asked, behaviour, author))
    half = len(planned) // 2
    if behaviour.kind == "drip":
        for data in planned:
            await response.write(_event(data))
            await asyncio.sleep(behaviour.delay_s)
        return response
    if behaviour.kind in ("drop_within", "truncated", "wrong_json"):
        await response.write(_all(planned[:half]))
        if behaviour.kind == "drop_within":
            return _drop(request)
        if behaviour.kind == "wrong_json":
            await response.write(_event('{"choices": [') + _all(planned[half:]))
        return response
    await response.write(_all(planned))
    return response


async def _endless_body(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"choices": [{"index": 0, "message": {"content": "')
    while True:
        await response.write(ENDLESS_PIECE.encode())


def _event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def _all(datas: Iterable[str]) -> bytes:
    return b"".join(map(_event, datas))


def _drop(request: web.Request) -> web.Response:
    """Cut the connection; what is returned reaches nobody."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
