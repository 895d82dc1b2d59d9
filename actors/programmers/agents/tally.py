"""What each role asked and cost, counted over a sitting; what the journal had costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kopt.agent_call import AGENTS, Agent, AgentReply


@dataclass(slots=True, kw_only=True)
class RoleFigures:
    """One role's calls."""

    calls: int = 0
    known: int = 0
    """Calls that the journal had: not asked again, and not in the other figures."""
    faulty: int = 0
    """Calls that brought no words."""
    cut_references: int = 0
    """Calls whose prompt left out a part of the reference."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0


class AgentTally:
    """Counts calls by role."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._figures: dict[Agent, RoleFigures] = {}

    def add(self, agent: Agent, reply: AgentReply, *, reference_is_cut: bool = False) -> None:
        """Count one reply.

        Args:
            agent: the role.
            reply: to it.
            reference_is_cut: whether its prompt left out a part of the reference.
        """
        figures = self._figures.setdefault(agent, RoleFigures())
        if reply.is_known:
            figures.known += 1
            return
        usage = reply.completion.usage
        figures.calls += 1
        figures.faulty += bool(reply.completion.fault)
        figures.cut_references += reference_is_cut
        figures.tokens_in += usage.tokens_in
        figures.tokens_out += usage.tokens_out
        figures.cost_usd += usage.cost_usd

    def to_json(self) -> dict[str, Any]:
        """Return the figures of each role that was asked, as plain values."""
        return {agent: asdict(self._figures[agent]) for agent in AGENTS if agent in self._figures}

    def lines(self) -> Iterator[str]:
        """Yield a line for each role that was asked."""
        for agent in AGENTS:
            figures = self._figures.get(agent)
            if figures is None:
                continue
            extras = [
                f"{count} {what}"
                for count, what in (
                    (figures.faulty, "without words"),
                    (figures.cut_references, "with a part of the reference left out"),
                    (figures.known, "more known from the journal"),
                )
                if count
            ]
            beside = f" ({', '.join(extras)})" if extras else ""
            yield (
                f"{agent}: {figures.calls} calls{beside}, "
                f"{figures.tokens_in:,} tokens in, {figures.tokens_out:,} out, "
                f"{figures.cost_usd:.4f} USD"
            )
