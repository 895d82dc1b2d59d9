"""A programmer that is told what the problem is in numbers.

The first prompt waits for the numbers: its author should know what it has to beat. What the
evaluator does for them its first candidate would need too, and a reference that does not run is
found before anybody is paid for words about it.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from kopt.errors import WorkerLost
from kopt.ports import Answer, Programmer, Surveyor, WriteRequest

_LOG = logging.getLogger(__name__)


class SurveyedProgrammer:
    """A Programmer whose requests have a survey."""

    def __init__(self, inner: Programmer, surveyor: Surveyor, *, timed: bool = True) -> None:
        """Stand before a programmer that reads words.

        Args:
            inner: that programmer.
            surveyor: who looks.
            timed: whether times are told; a deterministic fleet's first prompts may not depend on
                the clock.
        """
        self.name = inner.name
        self._timed = timed
        self._inner = inner
        self._surveyor = surveyor

    async def write(self, request: WriteRequest) -> Answer:
        """Add the survey, and have it written (the port); without it where a worker was lost.

        Raises:
            ProblemError: the reference itself breaks its contract or cannot run here.
            Whatever the inner programmer raises.
        """
        if request.survey is None:
            try:
                survey = await self._surveyor.survey(request.problem)
                request = replace(request, survey=survey if self._timed else survey.untimed())
            except WorkerLost as error:
                _LOG.info("%s is written for unsurveyed: %s", request.problem.name, error)
        return await self._inner.write(request)

    async def close(self) -> None:
        """Close the programmer behind."""
        await self._inner.close()
