"""The digest of one search: from its events, as they pass, to a trial of kopt.analysis.

Of a candidate only its speed-up, the tools that found something about it and the name of its
evidence are kept, by the hash of its id and not the id: half a kilobyte a candidate.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kopt.analysis.trial import Energy, Lead, Terms, Trial, Turn
from kopt.data.results import DEVICE_STAGES, outcome_of, root_cause_of
from kopt.evaluation import EvalJson, rank
from kopt.events import (
    AnswerReceived,
    EventBody,
    EvidenceTaken,
    ExpansionAsked,
    FindingsMade,
    MemoryUpdated,
    ProfileAnalysed,
    SearchEnded,
    SearchExtended,
    SearchStarted,
    Told,
    VerdictReached,
)
from kopt.verdict import VerdictKind

SpeedupOver = Literal["recorded", "eager", "compile", "given"]
"""Which speed-up counts: that over the run's own baseline, or over one that it measured."""


class Profiled(NamedTuple):
    """What statistics read of one candidate's evidence."""

    bottleneck: str | None = None
    millijoules: float | None = None
    proxy_pj: float | None = None


@dataclass(slots=True)
class _Step:
    """An expansion, as far as it has come."""

    parent: int | None
    """Hash of the candidate's id."""
    answered: bool = False
    called: tuple[str, ...] = ()
    """Tools that its author called."""
    best: float | None = None
    """Speed-up of its fastest correct candidate."""


@dataclass(slots=True, kw_only=True)
class SearchDigest:
    """One search, while its events are read."""

    started: SearchStarted
    over: SpeedupOver
    is_reactive: bool
    """Authors see a finding only where they called its tool."""
    first_ns: int
    last_ns: int
    ended: SearchEnded | None = None
    untimed: int = 0
    """Correct candidates without the speed-up that is asked for."""
    degenerate: bool = False
    terms: set[tuple[str, str]] = field(default_factory=set)
    """Ladder and device of its verdicts: one pair, unless it went on elsewhere."""
    _first: EvalJson | None = None
    _best: EvalJson | None = None
    _best_slot: tuple[int, int] = (-1, -1)
    _kinds: Counter[VerdictKind] = field(default_factory=Counter)
    _cached: int = 0
    _leads: list[Lead] = field(default_factory=list)
    _peak: float | None = None
    _speedups: dict[int, float] = field(default_factory=dict)
    _tools: dict[int, tuple[str, ...]] = field(default_factory=dict)
    _refs: dict[int, str] = field(default_factory=dict)
    _reference: str | None = None
    _reductions: dict[tuple[int, int], float] = field(default_factory=dict)
    _steps: dict[int, _Step] = field(default_factory=dict)
    _device_s: float = 0.0
    _tokens_in: int = 0
    _tokens_out: int = 0
    _cost_usd: float = 0.0

    def observe(self, body: EventBody, *, time_ns: int) -> str | None:
        """Take an event in; return what it contradicts, or None."""
        self.last_ns = time_ns
        match body:
            case ExpansionAsked():
                self.ended = None
                self._steps[body.expansion] = _Step(
                    None if body.parent is None else hash(body.parent)
                )
            case SearchExtended():
                self.ended = None
            case SearchEnded():
                self.ended = body
            case AnswerReceived() | VerdictReached():
                step = self._steps.get(body.expansion)
                if step is None:
                    return f"expansion {body.expansion} was not asked"
                if isinstance(body, AnswerReceived):
                    self._answer(body, step)
                else:
                    self._verdict(body, step)
            case EvidenceTaken():
                self._evidence(body)
            case FindingsMade():
                names = (sys.intern(str(each.get("tool"))) for each in body.findings)
                self._tools[hash(body.candidate)] = tuple(dict.fromkeys(names))
            case Told():
                if body.energy_reduction is not None and body.energy_reduction > 0.0:
                    self._reductions[body.expansion, body.index] = body.energy_reduction
            case ProfileAnalysed() | MemoryUpdated():
                self._pay(body)
            case _:
                pass
        return None

    @property
    def best(self) -> EvalJson | None:
        """Evaluation of the best correct candidate so far; its checks and gates are left out."""
        return self._best

    @property
    def any_verdict(self) -> EvalJson | None:
        """Evaluation of the best, or the first where none is correct; None without a verdict."""
        return self._best or self._first

    def trial(
        self,
        name: str,
        *,
        run: str,
        family: str,
        terms: Terms,
        profiled: Callable[[str], Profiled | None],
    ) -> Trial:
        """Return the trial.

        Args:
            name: of the search.
            run: label of its run.
            family: of its problem; empty where unknown.
            terms: on which it was measured.
            profiled: reads an artefact of evidence; None where that cannot be read.
        """
        outcome = outcome_of(self._best)
        failed = self.ended is not None and self.ended.failed
        return Trial(
            run=run,
            search=name,
            problem=self.started.problem,
            problem_name=self.started.problem_name,
            family=family,
            arm=self.started.arm,
            seed=self.started.seed,
            terms=terms,
            speedup=self._leads[-1].speedup if self._leads else None,
            leads=tuple(self._leads),
            peak=self._peak,
            verdicts={str(kind): number for kind, number in self._kinds.items()},
            cached=self._cached,
            outcome=outcome,
            root_cause=root_cause_of(
                self.ended, outcome=outcome, best=self._best, kinds=self._kinds
            ),
            degenerate=self.degenerate,
            ended=self.ended is not None,
            failure=self.ended.reason if failed and self.ended is not None else "",
            turns=tuple(self._turns(profiled)),
            energy=self._energy(profiled),
            device_s=self._device_s,
            wall_s=(self.last_ns - self.first_ns) / 1e9,
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            cost_usd=self._cost_usd,
        )

    def _answer(self, body: AnswerReceived, step: _Step) -> None:
        step.answered = True
        if body.tool_calls:
            names = (sys.intern(str(call.get("name"))) for call in body.tool_calls)
            step.called = tuple(dict.fromkeys((*step.called, *names)))
        self._pay(body)

    def _verdict(self, body: VerdictReached, step: _Step) -> None:
        record = body.eval
        step.answered = True
        self._kinds[record["kind"]] += 1
        self.degenerate = self.degenerate or record["degenerate"]
        self.terms.add((record["ladder"], record["device"]))
        if self._first is None:
            self._first = _slim(record)
        if body.cached:
            self._cached += 1
        else:
            stages = record["timeline_s"]
            self._device_s += sum(stages.get(stage, 0.0) for stage in DEVICE_STAGES)
        if record["kind"] != "correct":
            return
        speedup = speedup_of(record, over=self.over)
        if speedup is None:
            self.untimed += 1
            return
        self._speedups[hash(body.candidate)] = speedup
        step.best = speedup if step.best is None else max(step.best, speedup)
        self._peak = speedup if self._peak is None else max(self._peak, speedup)
        if self._best is None or rank(record) > rank(self._best):
            self._best, self._best_slot = _slim(record), (body.expansion, body.index)
            self._leads.append(Lead(self._kinds.total(), speedup))

    def _evidence(self, body: EvidenceTaken) -> None:
        self._device_s += body.profiled_s
        if body.ref is None:
            return
        if body.is_reference:
            self._reference = body.ref
        else:
            self._refs[hash(body.candidate)] = body.ref

    def _pay(self, body: AnswerReceived | ProfileAnalysed | MemoryUpdated) -> None:
        self._tokens_in += body.tokens_in
        self._tokens_out += body.tokens_out
        self._cost_usd += body.cost_usd

    def _turns(self, profiled: Callable[[str], Profiled | None]) -> list[Turn]:
        found = []
        for step in self._steps.values():
            if not step.answered or step.parent is None or step.parent not in self._speedups:
                continue
            tools = self._tools.get(step.parent, ())
            if self.is_reactive:
                tools = tuple(tool for tool in tools if tool in step.called)
            ref = self._refs.get(step.parent)
            figures = None if ref is None else profiled(ref)
            gain = None if step.best is None else step.best / self._speedups[step.parent]
            bottleneck = None if figures is None else figures.bottleneck
            found.append(Turn(tools=tools, bottleneck=bottleneck, gain=gain))
        return found

    def _energy(self, profiled: Callable[[str], Profiled | None]) -> Energy | None:
        if self._best is None:
            return None
        reference = None if self._reference is None else profiled(self._reference)
        ref = self._refs.get(hash(self._best["candidate"]))
        own = None if ref is None else profiled(ref)
        proxy = self._reductions.get(self._best_slot)
        measured = None
        if reference is not None and own is not None:
            measured = _ratio(reference.millijoules, own.millijoules)
            proxy = proxy or _ratio(reference.proxy_pj, own.proxy_pj)
        return (
            None if measured is None and proxy is None else Energy(measured=measured, proxy=proxy)
        )


def speedup_of(record: EvalJson, *, over: SpeedupOver) -> float | None:
    """Return a correct candidate's speed-up; None where it is unknown, or no positive number.

    Args:
        record: an evaluation.
        over: `recorded` is that of the evaluation, from interleaved pairs; the others divide that
            baseline's time by the candidate's, as results.parquet does.
    """
    if over == "recorded":
        value = record["speedup"]
    else:
        times_us = {
            "eager": record["eager_us"],
            "compile": record["compile_us"],
            "given": record.get("given_us"),
        }
        value = _ratio(times_us[over], record["time_us"])
    return value if value is not None and math.isfinite(value) and value > 0.0 else None


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if not above or not below else above / below


def _slim(record: EvalJson) -> EvalJson:
    """The record without what is long; a search keeps two."""
    return {**record, "gates": [], "checks": [], "log": None, "detail": None, "reason": ""}
