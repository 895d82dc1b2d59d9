"""The programmer `ensemble`: one of several models writes each expansion, drawn by their weights.

The draw depends on the expansion's seed alone: the same in a run that goes on, whatever the order
of the answers. A model that cannot write is stood in for by the others, in the order drawn, so that
one endpoint that is down does not end a search.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from kopt.actors.programmers.ensemble_config import EnsembleConfig
from kopt.actors.programmers.registry import PROGRAMMERS, Workplace, create_programmer
from kopt.agent_call import AgentCall, AgentReply, Talker
from kopt.errors import ConfigError, ProgrammerRefused, ProgrammerUnavailable, WorkerLost
from kopt.identity import derived_seed
from kopt.ports import (
    AnalysisAnswer,
    AnalysisRequest,
    Analyst,
    Answer,
    ExtractionAnswer,
    ExtractionRequest,
    Extractor,
    Programmer,
    WriteRequest,
)

T = TypeVar("T")
_SEEDS = float(1 << 63)
"""Seeds are below it (kopt.identity.derived_seed)."""


@PROGRAMMERS.register("ensemble")
class EnsembleProgrammer:
    """Several models behind the ports of one."""

    name = "ensemble"

    def __init__(self, config: EnsembleConfig, workplace: Workplace) -> None:
        """Set every member up; nothing is asked yet.

        Raises:
            ConfigError: a member cannot be set up as its section says.
        """
        self._members: list[Programmer] = []
        for number, member in enumerate(config.members):
            try:
                self._members.append(create_programmer(member.programmer, workplace))
            except ConfigError as error:
                raise ConfigError(f"programmer.members.{number}: {error}") from error
        self._weights = [member.weight for member in config.members]
        self._labels = [
            f"{number} ({member.programmer.model or member.programmer.kind})"
            for number, member in enumerate(config.members)
        ]
        self._lead = config.lead
        self._warn = workplace.warn
        self._written: Counter[int] = Counter()
        self._lacking: Counter[int] = Counter()
        self._refused: dict[int, ProgrammerRefused] = {}

    async def write(self, request: WriteRequest) -> Answer:
        """Write candidates (the Programmer port).

        Raises:
            ProgrammerRefused: no member will ever write.
            ProgrammerUnavailable: none can write now.
            WorkerLost: the member drawn lost its worker, and no other can write.
        """
        return await self._first_of(request.expansion.seed, lambda each: each.write(request))

    async def say(self, call: AgentCall) -> AgentReply:
        """Answer one call of an agent, all of an expansion by one member (the Talker port).

        Raises:
            ProgrammerRefused: no member will ever answer.
            ProgrammerUnavailable: none can answer now.
            WorkerLost: the member drawn lost its worker, and no other can answer.
        """

        async def said_by(member: Programmer) -> AgentReply:
            assert isinstance(member, Talker), "every model does"
            return await member.say(call)

        return await self._first_of(call.draw, said_by)

    async def _first_of(self, seed: int, ask: Callable[[Programmer], Awaitable[T]]) -> T:
        """Return what the member drawn gives, or who stands in for it."""
        first: ProgrammerUnavailable | WorkerLost | None = None
        for number in drawn(self._weights, seed=seed):
            if number in self._refused:
                continue
            try:
                given = await ask(self._members[number])
            except ProgrammerRefused as error:
                self._refused[number] = error
                self._warn(f"programmer ensemble: member {self._labels[number]} is out: {error}")
            except (ProgrammerUnavailable, WorkerLost) as error:
                self._lacking[number] += 1
                first = first or error
            else:
                self._written[number] += 1
                return given
        raise first or next(iter(self._refused.values()))

    async def analyse(self, request: AnalysisRequest) -> AnalysisAnswer:
        """Condense a profile (the Analyst port)."""
        lead = self._members[self._lead]
        assert isinstance(lead, Analyst), "every model does"
        return await lead.analyse(request)

    async def extract(self, request: ExtractionRequest) -> ExtractionAnswer:
        """Draw lessons from an iteration (the Extractor port)."""
        lead = self._members[self._lead]
        assert isinstance(lead, Extractor), "every model does"
        return await lead.extract(request)

    async def close(self) -> None:
        """Close every member, and say who wrote how much."""
        await asyncio.gather(*(member.close() for member in self._members))
        shares = ", ".join(
            f"{label} {self._written[number]}"
            + (f" ({self._lacking[number]} failed)" if self._lacking[number] else "")
            for number, label in enumerate(self._labels)
        )
        self._warn(f"programmer ensemble: answered by member {shares}")


def drawn(weights: Sequence[float], *, seed: int) -> list[int]:
    """Return the indices in a random order, the first of which is i with weights[i] / sum.

    Exponential races (Efraimidis and Spirakis 2006): index i arrives at -ln(u_i) / weights[i].

    Args:
        weights: > 0.
        seed: of the draw.
    """
    arrivals = []
    for number, weight in enumerate(weights):
        uniform = (derived_seed(seed, "member", number) + 1) / _SEEDS  # in (0, 1]
        arrivals.append((-math.log(uniform) / weight, number))
    return [number for _, number in sorted(arrivals)]
