"""The scripted server as a command: prints its URL and serves until it is interrupted.

Usage: python -m kopt.testing.openai_server [port=0] [seed=0] [model=scripted] [key=…]
           [author=reference|stock|long|roles] [errors=0.05] [first_errors=0] [faulty=0.0]
           [delay_s=1.0] [spread=0.3]
           [context_tokens=…]

With author=reference, `kopt run programmer=openai programmer.base_url=URL` runs whole without a
model: each candidate is the reference itself. author=roles plays the parts of pipeline=agents.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress

from kopt.testing.openai_server.known_authors import AUTHORS
from kopt.testing.openai_server.mixture import Mixture
from kopt.testing.openai_server.server import ScriptedServer

DEFAULTS = {
    "port": "0",
    "seed": "0",
    "model": "scripted",
    "key": "",
    "author": "reference",
    "errors": "0",
    "first_errors": "0",
    "faulty": "0",
    "delay_s": "0",
    "spread": "0",
    "context_tokens": "",
}


async def main(words: list[str]) -> None:
    """Serve."""
    if {"-h", "--help"} & set(words):
        sys.stdout.write(__doc__ or "")
        return
    given = dict(word.partition("=")[::2] for word in words)
    unknown = set(given) - set(DEFAULTS)
    if unknown:
        sys.exit(f"unknown {', '.join(sorted(unknown))}; there are: {', '.join(DEFAULTS)}")
    options = DEFAULTS | given
    if options["author"] not in AUTHORS:
        sys.exit(f"no author {options['author']!r}; there are: {', '.join(AUTHORS)}")
    server = ScriptedServer(
        Mixture(
            errors=float(options["errors"]),
            first_errors=int(options["first_errors"]),
            faulty=float(options["faulty"]),
            delay_s=float(options["delay_s"]),
            spread=float(options["spread"]),
        ),
        author=AUTHORS[options["author"]],
        models=(options["model"],),
        key=options["key"] or None,
        context_tokens=int(options["context_tokens"]) if options["context_tokens"] else None,
        seed=int(options["seed"]),
    )
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        await server.start(port=int(options["port"]))
    except OSError as error:
        sys.exit(f"cannot listen on port {options['port']}: {error.strerror or error}")
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    await stopped.wait()
    await server.stop()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1:]))
