"""The scripted server itself: chat completions, models, `/health`, `/metrics`, `/served`."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from kopt.identity import canonical_json, derived_seed, text_id
from kopt.testing.openai_server.authors import Author, stock_author
from kopt.testing.openai_server.behaviour import Asked, Behaviour, Script, always_answer
from kopt.testing.openai_server.bodies import error_body
from kopt.testing.openai_server.forms import CHARACTERS_OF_A_TOKEN
from kopt.testing.openai_server.sending import send
from kopt.testing.openai_server.served import Served
from kopt.testing.openai_server.vllm_fields import metrics_page

MAX_REQUEST_BYTES = 64_000_000
STOP_S = 0.2
"""Requests that are still held when the server stops are cancelled after so long."""


class ScriptedServer:
    """A server in this loop: `async with ScriptedServer(script) as server: server.url`."""

    def __init__(
        self,
        script: Script = always_answer,
        *,
        author: Author = stock_author,
        models: tuple[str, ...] = ("scripted",),
        key: str | None = None,
        context_tokens: int | None = None,
        seed: int = 0,
        is_well: bool = True,
    ) -> None:
        """Prepare a server.

        Args:
            script: chooses what is done with each request for completions.
            author: writes the texts of answers.
            models: that it has; a request for another is refused.
            key: that requests must carry; None takes any.
            context_tokens: longer prompts are refused; None takes any.
            seed: of everything that is drawn.
            is_well: what `/health` says.
        """
        self._script = script
        self._author = author
        self._models = models
        self._key = key
        self._context_tokens = context_tokens
        self._seed = seed
        self._is_well = is_well
        self._asked: Counter[str] = Counter()
        self._number = 0
        self._runner: web.AppRunner | None = None
        self.served: list[Served] = []
        """What became of each request for completions, in the order they ended."""
        self.bodies: list[dict[str, Any]] = []
        """What was asked for, in order."""
        self.url = ""
        """Base URL, once started."""

    async def start(self, *, port: int = 0) -> None:
        """Listen on 127.0.0.1; port 0 takes a free one."""
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_get("/health", self._health)
        app.router.add_get("/served", self._count)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=STOP_S, handler_cancellation=True
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, backlog=1024)
        await site.start()
        host, bound = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{bound}/v1"

    async def stop(self) -> None:
        """Stop listening and end what is held."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _health(self, request: web.Request) -> web.Response:
        del request
        return web.json_response({"status": "ok"}, status=200 if self._is_well else 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        del request
        return web.Response(text=metrics_page(self.bodies))

    async def _count(self, request: web.Request) -> web.Response:
        del request
        return web.json_response([each.to_json() for each in self.served])

    async def _list_models(self, request: web.Request) -> web.Response:
        if not self._knows(request):
            return _wrong_key()
        listed = [{"id": name, "object": "model", "owned_by": "kopt"} for name in self._models]
        return web.json_response({"object": "list", "data": listed})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        began_s = time.monotonic()
        try:
            body = await request.json()
        except json.JSONDecodeError:
            return web.json_response(error_body(400, {"message": "no JSON"}), status=400)
        asked = self._take(body)
        refused = self._refusal(request, asked)
        behaviour = Behaviour(kind="status") if refused is not None else self._script(asked)
        finished = False
        try:
            if refused is not None:
                return refused
            response = await send(request, asked, behaviour, self._author)
            finished = True
            return response
        except ConnectionError:  # the client has heard enough
            return web.Response()
        finally:
            self.served.append(
                Served(
                    kind="refused" if refused is not None else behaviour.kind,
                    status=behaviour.status if behaviour.kind == "status" else 200,
                    attempt=asked.attempt,
                    seed=body.get("seed"),
                    held_s=time.monotonic() - began_s,
                    finished=finished,
                )
            )

    def _take(self, body: dict[str, Any]) -> Asked:
        name = text_id(canonical_json(body))
        attempt, number = self._asked[name], self._number
        self._asked[name] += 1
        self._number += 1
        self.bodies.append(body)
        rng = random.Random(derived_seed(self._seed, name, attempt))
        return Asked(body=body, number=number, attempt=attempt, rng=rng)

    def _knows(self, request: web.Request) -> bool:
        return self._key is None or request.headers.get("Authorization") == f"Bearer {self._key}"

    def _refusal(self, request: web.Request, asked: Asked) -> web.Response | None:
        """What a real server refuses before it looks at a model."""
        if not self._knows(request):
            return _wrong_key()
        model = asked.body.get("model")
        if model not in self._models:
            error = {
                "message": f"The model `{model}` does not exist or you do not have access to it.",
                "type": "invalid_request_error",
                "param": None,
                "code": "model_not_found",
            }
            return web.json_response(error_body(404, error), status=404)
        tokens = len(asked.prompt) // CHARACTERS_OF_A_TOKEN
        if self._context_tokens is not None and tokens > self._context_tokens:
            error = {
                "message": f"This model's maximum context length is {self._context_tokens} tokens. "
                f"However, your messages resulted in {tokens} tokens.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
            return web.json_response(error_body(400, error), status=400)
        return None


def _wrong_key() -> web.Response:
    error = {
        "message": "Incorrect API key provided.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    }
    return web.json_response(error_body(401, error), status=401)
