"""A programmer that goes first: its ideas are ROOT's first ones, and another goes on from there.

A model's tree begins with what the rewriter writes without one. Which of those ideas is the best is
not said beforehand: they are judged as all others are, and the search goes on from the best.
"""

from __future__ import annotations

from dataclasses import replace

from kopt.candidate import Candidate
from kopt.driver.seeds import SeededProgrammer
from kopt.ports import Answer, Programmer, WriteRequest
from kopt.search.base import ROOT

LEAD = 3
"""Ideas at most that the leader gives a problem: of the rewriter those are its rules with kernels,
its rules alone, and kernels for the reference as it is."""


class LedProgrammer:
    """A Programmer whose first ideas from ROOT are another programmer's."""

    def __init__(self, inner: Programmer, leader: Programmer) -> None:
        """Stand before both.

        Args:
            inner: writes everything else; its own first idea is still its first.
            leader: asked once for each problem; must answer equal requests alike, so that a search
                that is resumed has the same slots.
        """
        self.name = inner.name
        self._inner = inner
        self._leader = leader
        self._led: dict[str, Answer] = {}

    async def write(self, request: WriteRequest) -> Answer:
        """Give the leader's ideas in the first slots of ROOT, and have the rest written."""
        if request.expansion.parent_node != ROOT:
            return await self._inner.write(request)
        lead = await self._lead(request)
        given: tuple[Candidate, ...] = lead.candidates[:LEAD]
        seeded = SeededProgrammer(self._inner, {request.problem.problem_id: given})
        answer = await seeded.write(request)
        is_short = len(given) < LEAD and request.expansion.first_child == 0
        notes = [lead.note if is_short else "", answer.note]
        return replace(answer, note="; ".join(filter(None, notes)))

    async def close(self) -> None:
        """Close both."""
        await self._leader.close()
        await self._inner.close()

    async def _lead(self, request: WriteRequest) -> Answer:
        key = request.problem.problem_id
        if key not in self._led:
            first = replace(request.expansion, num_candidates=LEAD, first_child=0)
            self._led[key] = await self._leader.write(replace(request, expansion=first))
        return self._led[key]
