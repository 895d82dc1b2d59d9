"""Profiles of a fleet's candidates: when they are taken, journalled, and told to authors.

Invariants. A step that the journal has is not done again: evidence is taken once for each candidate
of a run, findings and analysis once for each search. Telling the tree waits for a profile only
where energy is part of the reward. With `energy=measure` authors are told what they would be told
without it: evidence that was taken for its energy alone reaches nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kopt.candidate import Candidate
from kopt.data.finding_json import findings_from_json, findings_to_json
from kopt.data.fold import ProfileState
from kopt.driver.analyses import Analyses
from kopt.driver.evidence_desk import EvidenceDesk, Taken
from kopt.driver.limits import Spent
from kopt.driver.profile_rule import DeviceShare, ProfileRule
from kopt.driver.reference import reference_candidate, reference_evaluation
from kopt.driver.shared import Key
from kopt.driver.task import SearchTask
from kopt.evaluation import Evaluation
from kopt.events import CandidateMade, EvidenceTaken, FindingsMade
from kopt.evidence import Evidence
from kopt.expansion import Expansion
from kopt.ports import Analyst, Attempt, Clock, EventSink, Profiler, Target
from kopt.tools.diagnosis import diagnose
from kopt.verdict import Correct


def _say_nothing(line: str) -> None:
    del line


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiling:
    """Who profiles, and by which rule."""

    profiler: Profiler | None = None
    """None: nothing is profiled."""
    analyst: Analyst | None = None
    """Condenses the profile of what is to be optimised; None: nobody does."""
    rule: ProfileRule = field(default_factory=ProfileRule)
    known: Mapping[Key, EvidenceTaken] = field(default_factory=dict)
    """Evidence of an earlier part of the run."""
    warn: Callable[[str], None] = _say_nothing
    """Shows one line to the user that stops nothing."""


class Profiles:
    """What the lives of expansions ask of the profile lane."""

    def __init__(
        self,
        profiling: Profiling,
        *,
        sink: EventSink,
        clock: Clock,
        target: Target,
        spent: Spent,
        is_capped: bool,
    ) -> None:
        """Take the parts.

        Args:
            profiling: who, and by which rule.
            sink: where every event goes.
            clock: tells how long a profile took.
            target: that candidates are written for.
            spent: counts what profiles take and analyses cost.
            is_capped: whether `rule.share` holds. A bound by the clock would make the prompts of a
                deterministic fleet depend on it.
        """
        self._rule = profiling.rule
        self._spent = spent
        self._sink = sink
        self._warn = profiling.warn
        share = profiling.rule.share if is_capped else None
        self._told_share = DeviceShare(share)
        self._energy_share = DeviceShare(share)
        self._analyses = None
        if profiling.analyst is not None:
            self._analyses = Analyses(
                profiling.analyst,
                sink=sink,
                target=target,
                spent=spent,
                telling=profiling.rule.telling,
            )
        self._desk = None
        if profiling.profiler is not None:
            self._desk = EvidenceDesk(
                profiling.profiler,
                rule=profiling.rule,
                sink=sink,
                clock=clock,
                known=profiling.known,
                warn=profiling.warn,
            )

    def evaluated(self, evaluation: Evaluation) -> None:
        """Take in what an evaluation took of the device."""
        self._told_share.evaluated(evaluation)
        self._energy_share.evaluated(evaluation)

    async def energy_reduction(
        self, task: SearchTask, candidate: Candidate, made: CandidateMade, evaluation: Evaluation
    ) -> float | None:
        """Return reference's energy ÷ candidate's before it is told; None where it does not count.

        Raises:
            StoreError: the journal cannot be written.
        """
        if self._rule.energy != "aware" or not isinstance(evaluation.verdict, Correct):
            return None
        # The reward needs it: the share bounds what is measured for nobody's sake.
        free = DeviceShare(None)
        state = await self._take(task, candidate, made, evaluation, share=free)
        own_pj = None if state is None else self._proxy_pj(state.evidence.ref)
        if own_pj is None:
            return None
        reference_pj = self._proxy_pj(await self._reference(task, made, evaluation, share=free))
        return None if reference_pj is None else reference_pj / own_pj

    async def after_telling(
        self, task: SearchTask, candidate: Candidate, made: CandidateMade, evaluation: Evaluation
    ) -> None:
        """Profile a candidate that the tree has heard of, where the rule asks for it.

        Raises:
            StoreError: the journal cannot be written.
        """
        if not isinstance(evaluation.verdict, Correct):
            return
        is_told = self._rule.when == "correct" or (
            self._rule.when == "best" and made.candidate in task.bests
        )
        if is_told:
            state = await self._take(task, candidate, made, evaluation, share=self._told_share)
            if state is not None:
                self._find(task, made, state)
        elif self._rule.energy != "off":
            await self._take(task, candidate, made, evaluation, share=self._energy_share)

    def owed(self, task: SearchTask) -> list[str]:
        """Return candidates that were told and have no profile, the latest first.

        An earlier driver died over it, or had no share of the device left for it.
        """
        if task.ended or self._desk is None:
            return []
        is_all = self._rule.when == "correct" or self._rule.energy != "off"
        wanted = task.made if is_all else task.bests if self._rule.when == "best" else {}
        return [
            each
            for each, evaluation in reversed(task.evaluations.items())
            if each in wanted
            and each not in task.profiles
            and isinstance(evaluation.verdict, Correct)
        ]

    async def catch_up(self, task: SearchTask) -> None:
        """Take the profiles that are owed, as `after_telling` would have.

        Raises:
            StoreError: the journal cannot be written, or an artefact is missing.
        """
        for each in self.owed(task):
            attempt = task.attempt(each, self._sink)
            assert attempt is not None
            made = task.made[each]
            await self.after_telling(task, attempt.candidate, made, attempt.evaluation)

    async def parent(self, task: SearchTask, expansion: Expansion) -> Attempt | None:
        """Return the node that is expanded, with what its author is told of its profile.

        Raises:
            StoreError: the journal cannot be written, or an artefact is missing.
        """
        attempt = task.attempt(expansion.parent, self._sink)
        if attempt is None or expansion.parent is None or expansion.mode != "optimize":
            return attempt
        made = task.made[expansion.parent]
        state: ProfileState | None = None
        if self._rule.when in ("correct", "expanded"):
            # With `correct` it is there or on its way, unless the share left it out.
            state = await self._take(
                task, attempt.candidate, made, attempt.evaluation, share=self._told_share
            )
        elif self._rule.when == "best" and expansion.parent in task.bests:
            state = task.profiles.get(expansion.parent)
        if state is None or state.evidence.ref is None or self._desk is None:
            return attempt
        self._find(task, made, state)
        attempt = _with_findings(attempt, state, evidence=self._desk.evidence(state.evidence.ref))
        if self._analyses is None:
            return attempt
        return await self._analyses.add(attempt, task=task, made=made, state=state)

    def close(self) -> None:
        """Say what was not profiled, if anything."""
        reports = [each.report() for each in (self._desk, self._analyses) if each is not None]
        for report in filter(None, reports):
            self._warn(report)

    async def _take(
        self,
        task: SearchTask,
        candidate: Candidate,
        made: CandidateMade,
        evaluation: Evaluation,
        *,
        share: DeviceShare,
    ) -> ProfileState | None:
        """Return the journalled profile of a candidate, taking it if there is none; None: not."""
        state = task.profiles.get(made.candidate)
        if state is not None or self._desk is None:
            return state
        outcome = await self._desk.take(task.spec.problem, candidate, evaluation, share=share)
        state = task.profiles.get(made.candidate)  # another expansion may have been first
        if state is not None or outcome is None:
            return state
        taken, was_known = outcome
        event = _event(made, taken, was_known=was_known)
        self._spent.used_device(event.profiled_s)
        self._sink.append(task.spec.name, event)
        task.profiles[made.candidate] = state = ProfileState(evidence=event)
        return state

    def _find(self, task: SearchTask, made: CandidateMade, state: ProfileState) -> None:
        """Have the tools read the evidence, once."""
        ref = state.evidence.ref
        if self._rule.telling.feedback != "tools" or state.findings is not None:
            return
        if ref is None or self._desk is None:
            return
        diagnosis = diagnose(self._desk.evidence(ref), max_findings=self._rule.telling.max_findings)
        state.findings = FindingsMade(
            candidate=made.candidate,
            expansion=made.expansion,
            index=made.index,
            findings=findings_to_json(diagnosis.findings),
            left_out=diagnosis.left_out,
            remarks=findings_to_json(diagnosis.remarks),
            energy_notes=findings_to_json(diagnosis.energy_notes),
            silent=[each.tool for each in diagnosis.silent],
        )
        self._sink.append(task.spec.name, state.findings)

    async def _reference(
        self, task: SearchTask, made: CandidateMade, evaluation: Evaluation, *, share: DeviceShare
    ) -> str | None:
        """Return the artefact of the reference's evidence, taking it once."""
        if task.reference is None and self._desk is not None:
            problem = task.spec.problem
            candidate = reference_candidate(problem)
            outcome = await self._desk.take(
                problem, candidate, reference_evaluation(evaluation, candidate), share=share
            )
            if task.reference is None and outcome is not None:
                taken, was_known = outcome
                event = _event(made, taken, was_known=was_known)
                self._spent.used_device(event.profiled_s)
                task.reference = replace(event, candidate=candidate.candidate_id, is_reference=True)
                self._sink.append(task.spec.name, task.reference)
        return None if task.reference is None else task.reference.ref

    def _proxy_pj(self, ref: str | None) -> float | None:
        """Energy of a call by the form that the rule names; None where it is unknown or nothing."""
        if ref is None or self._desk is None:
            return None
        energy = self._desk.evidence(ref).energy
        if energy is None:
            return None
        paper = self._rule.energy_proxy == "paper"
        return (energy.proxy_pj if paper else energy.corrected_pj) or None


def _with_findings(attempt: Attempt, state: ProfileState, *, evidence: Evidence) -> Attempt:
    attempt = replace(attempt, evidence=evidence)
    if state.findings is None:
        return attempt
    return replace(
        attempt,
        findings=findings_from_json(state.findings.findings),
        left_out=state.findings.left_out,
        remarks=findings_from_json(state.findings.remarks),
        energy_notes=findings_from_json(state.findings.energy_notes),
    )


def _event(made: CandidateMade, taken: Taken, *, was_known: bool) -> EvidenceTaken:
    return EvidenceTaken(
        candidate=made.candidate,
        expansion=made.expansion,
        index=made.index,
        ref=taken.ref,
        level=taken.level,
        reason=taken.reason,
        cached=was_known,
        profiled_s=0.0 if was_known else taken.profiled_s,
    )
