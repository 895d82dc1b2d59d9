"""The evaluator of a recording: what was judged then is not judged again.

A run that was recorded on a GPU replays on a host without one: its verdicts, and the device they
name, are the recording's. What the recording has no verdict for is judged here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kopt.candidate import Candidate
from kopt.data.manifest import target_of
from kopt.data.recording import Recording
from kopt.errors import StoreError
from kopt.evaluation import Evaluation
from kopt.ports import Target
from kopt.problem import Problem
from kopt.survey import Survey


class JudgingEvaluator(Protocol):
    """An Evaluator that knows its device, and what problems are on it."""

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        """Judge (the Evaluator port)."""
        ...

    async def survey(self, problem: Problem) -> Survey:
        """Say what a problem is in numbers (the Surveyor port)."""
        ...

    async def target(self) -> Target:
        """Return the device that it judges on."""
        ...


class RecordedEvaluator:
    """Gives recorded verdicts, and has the rest judged.

    A candidate that the recording gave up without a verdict (its worker was lost, its reference
    broke) is given up again in the same words, with or without `verdicts`.
    """

    def __init__(
        self,
        inner: JudgingEvaluator,
        recording: Recording,
        *,
        verdicts: bool,
        warn: Callable[[str], None],
    ) -> None:
        """Wrap an evaluator.

        Args:
            inner: judges what is not recorded.
            recording: opened with the same `verdicts`.
            verdicts: whether to give its verdicts.
            warn: told once of the first candidate that is judged here among recorded ones.
        """
        self._inner = inner
        self._recording = recording
        self._verdicts = verdicts
        self._warn = warn
        self._judges_here = False

    async def target(self) -> Target:
        """Return the device that the verdicts name: the recording's, where they are given."""
        here = await self._inner.target()
        if not self._verdicts:
            return here
        return recorded_target(self._recording) or here

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        """Give the recorded verdict, or judge (the Evaluator port).

        Raises:
            WorkerLost: the recording lost this candidate; or as the inner evaluator.
            ProblemError: the recording's search ended by it; or as the inner evaluator.
        """
        key = problem.problem_id, candidate.candidate_id
        loss = self._recording.loss(*key)
        if loss is not None:
            raise loss
        evaluation = self._recording.evaluation(*key) if self._verdicts else None
        if evaluation is not None:
            return evaluation
        if self._verdicts and not self._judges_here:
            self._judges_here = True
            self._warn(
                f"{self._recording.run.path} has no verdict on a candidate of {problem.name}: "
                "it, and others like it, are judged here"
            )
        return await self._inner.evaluate(problem, candidate)


def recorded_target(recording: Recording) -> Target | None:
    """Return the device of the recording's verdicts; None where its manifest does not say."""
    try:
        return target_of(recording.run.read_manifest())
    except StoreError:
        return None
