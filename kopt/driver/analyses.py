"""Profiles condensed by a model (KernelPro's profiling agent): once for each node optimised."""

from __future__ import annotations

from dataclasses import replace

from kopt.data.finding_json import analysis_from_json, analysis_to_json
from kopt.data.fold import ProfileState
from kopt.driver.limits import Spent
from kopt.driver.shared import SharedResults
from kopt.driver.task import SearchTask
from kopt.errors import ProgrammerUnavailable
from kopt.events import CandidateMade, ProfileAnalysed
from kopt.identity import canonical_json, derived_seed
from kopt.ports import AnalysisRequest, Analyst, Attempt, EventSink, Target, Telling


class Analyses:
    """Asks the model, and keeps what it said before it is used."""

    def __init__(
        self,
        analyst: Analyst,
        *,
        sink: EventSink,
        target: Target,
        spent: Spent,
        telling: Telling,
    ) -> None:
        """Take the parts.

        Args:
            analyst: condenses a profile.
            sink: where every event goes.
            target: that candidates are written for.
            spent: counts what it costs.
            telling: what of a profile it is told.
        """
        self._analyst = analyst
        self._sink = sink
        self._target = target
        self._spent = spent
        self._telling = telling
        # By search, not by problem: each arm and seed is an experiment of its own.
        self._under_way: SharedResults[ProfileAnalysed] = SharedResults()
        self._num_asked = 0
        self._num_lacking = 0

    async def add(
        self, attempt: Attempt, *, task: SearchTask, made: CandidateMade, state: ProfileState
    ) -> Attempt:
        """Return the attempt with its analysis; as it is where the model gave none.

        Raises:
            StoreError: the journal cannot be written.
        """
        if state.analysis is None:
            try:
                state.analysis, _ = await self._under_way.get(
                    (task.spec.name, made.candidate),
                    lambda: self._analyse(attempt, task=task, made=made),
                )
            except ProgrammerUnavailable:
                self._num_lacking += 1  # whoever writes says why, if it lasts
                return attempt
        if state.analysis.analysis is None:
            return attempt
        return replace(attempt, analysis=analysis_from_json(state.analysis.analysis))

    def report(self) -> str:
        """Return one line on analyses that came to nothing; empty where all came."""
        if not self._num_lacking:
            return ""
        return f"{self._num_lacking} of {self._num_asked} analyses of a profile came to nothing"

    async def _analyse(
        self, attempt: Attempt, *, task: SearchTask, made: CandidateMade
    ) -> ProfileAnalysed:
        self._num_asked += 1
        answer = await self._analyst.analyse(
            AnalysisRequest(
                problem=task.spec.problem,
                target=self._target,
                attempt=attempt,
                seed=derived_seed(task.spec.seed, made.expansion, made.index),
                telling=self._telling,
            )
        )
        said = answer.completion
        event = ProfileAnalysed(
            candidate=made.candidate,
            expansion=made.expansion,
            index=made.index,
            messages=self._sink.put_text(canonical_json(answer.messages)),
            sampling=dict(answer.sampling),
            text=self._sink.put_text(said.text) if said.text else None,
            analysis=None if answer.analysis is None else analysis_to_json(answer.analysis),
            fault=said.fault,
            tokens_in=said.usage.tokens_in,
            tokens_out=said.usage.tokens_out,
            cost_usd=said.usage.cost_usd,
        )
        self._num_lacking += answer.analysis is None
        self._sink.append(task.spec.name, event)
        self._spent.add(said.usage)
        return event
