"""Seeds as a programmer: what is given comes first, then whoever is asked goes on.

ROOT's idea slots 0 … S - 1 (an expansion's `first_child` + its index) are the S seeds, in
whatever order answers come in. The programmer behind writes the slots after them, and does not
know of them: its own first idea is still its first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kopt.candidate import Candidate
from kopt.errors import ProgrammerUnavailable, WorkerLost
from kopt.ports import Answer, Programmer, WriteRequest
from kopt.search.base import ROOT


class SeededProgrammer:
    """A Programmer whose first ideas from ROOT are given."""

    def __init__(self, inner: Programmer, seeds: Mapping[str, Sequence[Candidate]]) -> None:
        """Stand before a programmer.

        Args:
            inner: writes everything else.
            seeds: by problem id, in order.
        """
        self.name = inner.name
        self._inner = inner
        self._seeds = seeds

    async def write(self, request: WriteRequest) -> Answer:
        """Give the seeds of the slots asked for, and have the rest written (the port)."""
        expansion = request.expansion
        seeds = self._seeds.get(request.problem.problem_id, ())
        if expansion.parent_node != ROOT or not seeds:
            return await self._inner.write(request)
        first = expansion.first_child
        given = tuple(seeds[first : first + expansion.num_candidates])
        wanted = expansion.num_candidates - len(given)
        if not wanted:
            return Answer(candidates=given)
        rest = replace(expansion, num_candidates=wanted, first_child=max(0, first - len(seeds)))
        try:
            answer = await self._inner.write(replace(request, expansion=rest))
        except (ProgrammerUnavailable, WorkerLost) as error:
            if not given:
                raise
            # The slots do not come again: the seeds in them are judged, the rest is given up.
            return Answer(candidates=given, note=str(error))
        return replace(answer, candidates=(*given, *answer.candidates[:wanted]))

    async def close(self) -> None:
        """Close the programmer behind."""
        await self._inner.close()
