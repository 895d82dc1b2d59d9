"""The client that speaks to an endpoint, with its pool of connections."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import openai

from kopt.actors.programmers.openai_access import Access

NO_KEY = "EMPTY"
"""What an endpoint that asks for no key is sent as one: the client insists on it."""
CONNECT_S = 20.0
"""A connection that takes longer to make is a lost one."""
KEPT_CONNECTION_S = 30.0
"""An idle connection is kept so long for the next request."""


def make_client(access: Access, *, connections: int) -> openai.AsyncOpenAI:
    """Return a client; nothing is sent yet.

    Args:
        access: where, and with what credentials.
        connections: as many as requests may be under way.
    """
    return openai.AsyncOpenAI(
        api_key=access.key or NO_KEY,
        base_url=access.url,
        max_retries=0,  # retries are counted, and bounded by the deadline, in `asking`
        default_headers=access.headers,
        http_client=_http_client(access, connections),
    )


def _http_client(access: Access, connections: int) -> openai.DefaultAsyncHttpxClient:
    """Return a client over aiohttp where it is installed.

    With 500 requests in flight it takes a third of the processor time of the default transport,
    whose pool looks through all connections for each request.
    """
    options: dict[str, Any] = {
        "limits": type(openai.DEFAULT_CONNECTION_LIMITS)(
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=KEPT_CONNECTION_S,
        ),
        "timeout": openai.Timeout(None, connect=CONNECT_S),  # the deadline bounds the rest
    }
    if access.is_local:  # no proxy of the environment stands between
        host = urlsplit(access.url).hostname or ""
        options["mounts"] = {f"all://[{host}]" if ":" in host else f"all://{host}": None}
    try:
        return openai.DefaultAioHttpClient(**options)
    except RuntimeError:  # aiohttp is not installed
        return openai.DefaultAsyncHttpxClient(**options)
