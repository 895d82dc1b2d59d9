"""A seat of the pool: the place of one replica, whoever sits in it just now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import openai

from kopt.actors.programmers.vllm.figures import Figures
from kopt.actors.programmers.vllm.replica import Down, Up


class Post(Protocol):
    """A replica as the pool sees it: on a node of the cluster, or here."""

    async def start(self) -> Up | Down:
        """Start its server."""
        ...

    async def wait(self) -> Down:
        """Wait until its server has ended."""
        ...

    async def is_well(self) -> bool:
        """Return whether its server says that it is well."""
        ...

    async def figures(self) -> Figures | None:
        """Return its servers' figures so far; None where they cannot be had."""
        ...

    async def stop(self, grace_s: float) -> Figures | None:
        """End its server."""
        ...

    @property
    def is_lost(self) -> bool:
        """Whether its process is gone, so that another has to take its place."""
        ...

    def discard(self) -> None:
        """Let its process go."""
        ...


@dataclass(slots=True, kw_only=True)
class Seat:
    """What the pool knows of one replica."""

    number: int
    post: Post
    up: Up | None = None
    """Its server; None while there is none."""
    client: openai.AsyncOpenAI | None = None
    """Speaks to that server."""
    is_suspect: bool = False
    """Whether a request met trouble that may be its end; no further ones are sent until it is
    known to be well."""
    is_retiring: bool = False
    """Whether it is to go: it answers what it has, and is sent no more."""
    load: int = 0
    """Requests under way."""
    sent: int = 0
    """Requests sent, over all its servers."""
    starts: int = 0
    """Servers that came up in it."""
    first_up: Up | None = None
    lost: str = ""
    """Why there will be no server in it any more; empty while there may."""
    past: Figures = field(default_factory=Figures)
    """Of posts whose process is gone, as last seen."""
    now: Figures = field(default_factory=Figures)
    """Of its post, as last seen."""

    @property
    def is_open(self) -> bool:
        """Whether requests are sent to it."""
        return self.up is not None and not self.is_suspect and not self.is_retiring

    @property
    def figures(self) -> Figures:
        """Return the figures of all that ever sat in it."""
        return self.past.plus(self.now)

    def to_json(self) -> dict[str, Any]:
        """Return what a run's record keeps of it."""
        first = self.first_up
        return {
            "replica": self.number,
            "servers": self.starts,
            "requests": self.sent,
            "healthy_s": None if first is None else round(first.healthy_s, 3),
            "first_token_s": None if first is None else round(first.first_token_s, 3),
            "lost": self.lost or None,
            **self.figures.to_json(),
        }
