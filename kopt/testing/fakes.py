"""Fakes of the ports: real classes that obey the ports' contracts, in memory and at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from kopt.candidate import Candidate, Language
from kopt.data.record import Record, record_from_line, record_to_line
from kopt.errors import StoreError
from kopt.evaluation import Check, Evaluation
from kopt.events import EventBody
from kopt.identity import text_id
from kopt.ports import Answer, Clock, WriteRequest
from kopt.problem import Problem
from kopt.timing import Timing
from kopt.verdict import (
    Cheated,
    CompileFailed,
    Correct,
    Crashed,
    Incorrect,
    NumericError,
    TimedOut,
    Verdict,
)

BASELINE_US = 100.0
"""Baseline time of every evaluation by InstantEvaluator, in microseconds."""


class ManualClock:
    """A Clock that moves only when told to."""

    def __init__(self, start_ns: int = 1_700_000_000_000_000_000) -> None:
        """Start at a time since the epoch; the monotonic clock starts at 0."""
        self._start_ns = start_ns
        self._elapsed_ns = 0

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch."""
        return self._start_ns + self._elapsed_ns

    def monotonic_s(self) -> float:
        """Return seconds since this clock was made."""
        return self._elapsed_ns / 1e9

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise ValueError(f"time does not run backwards ({seconds} s)")
        self._elapsed_ns += round(seconds * 1e9)


class MemorySink:
    """An EventSink that keeps everything in memory, as the journal would give it back.

    Events go through the journal's own line format, so what a file could not hold fails here too.
    """

    def __init__(
        self,
        *,
        run: str = "memory",
        clock: Clock | None = None,
        records: list[Record] | None = None,
        capacity: int | None = None,
    ) -> None:
        """Make a sink.

        Args:
            run: name of the run, for the envelope.
            clock: gives `time_ns`; a ManualClock that stands still if None.
            records: those of an earlier part of the run; the sequence goes on after them.
            capacity: records that fit in all; then appending raises, as a full disk does.
        """
        self.records: list[Record] = list(records or [])
        self.texts: dict[str, str] = {}
        self._run = run
        self._clock: Clock = ManualClock() if clock is None else clock
        self._capacity = capacity

    def append(self, search: str, body: EventBody) -> int:
        """Keep one event and return its sequence number.

        Raises:
            StoreError: the capacity is reached, or JSON has no form for the event.
        """
        seq = len(self.records)
        if self._capacity is not None and seq >= self._capacity:
            raise StoreError("memory", f"no space: {self._capacity} records are kept")
        record = Record(
            seq=seq, time_ns=self._clock.now_ns(), run=self._run, search=search, body=body
        )
        try:
            self.records.append(record_from_line(record_to_line(record)))
        except (TypeError, ValueError) as error:
            raise StoreError("memory", f"{body.kind} event: {error}") from error
        return seq

    def put_text(self, text: str) -> str:
        """Keep a text and return its sha256; what UTF-8 has no form for becomes `?`."""
        kept = text.encode("utf-8", errors="replace").decode("utf-8")
        sha256 = text_id(kept)
        self.texts[sha256] = kept
        return sha256

    def get_text(self, sha256: str) -> str:
        """Return a text that was put.

        Raises:
            StoreError: there is none of that name.
        """
        if sha256 not in self.texts:
            raise StoreError("memory", f"no artefact {sha256}")
        return self.texts[sha256]

    def bodies(self, kind: str | None = None) -> list[EventBody]:
        """Return the events in order, all of them or those of one kind."""
        return [r.body for r in self.records if kind is None or r.body.kind == kind]


def fresh_candidates(request: WriteRequest) -> Answer:
    """Answer with one distinct candidate for each slot, a function of the request alone.

    The slot counts the node's ideas (`first_child` + index), so that a search asked in another
    order gets the same candidates.
    """
    expansion = request.expansion
    origin = f"{request.search} {request.problem.problem_id} {expansion.parent} {expansion.seed}"
    return Answer(
        candidates=tuple(
            source_candidate(
                f"# {origin} {expansion.first_child + index}\nclass ModelNew: ...\n",
                parent=expansion.parent,
                strategy=f"{expansion.mode} idea {expansion.first_child + index}",
            )
            for index in range(expansion.num_candidates)
        )
    )


def source_candidate(
    source: str, *, parent: str | None = None, strategy: str = "", language: Language = "torch"
) -> Candidate:
    """Return a candidate of that source, written by `scripted`."""
    return Candidate(
        source=source, language=language, parent=parent, strategy=strategy, programmer="scripted"
    )


class ScriptedProgrammer:
    """A Programmer that answers at once, from a function of the request."""

    name = "scripted"

    def __init__(self, script: Callable[[WriteRequest], Answer] = fresh_candidates) -> None:
        """Take the function; what it raises, `write` raises."""
        self._script = script
        self.requests: list[WriteRequest] = []
        """Every request, in the order of the calls."""

    async def write(self, request: WriteRequest) -> Answer:
        """Return the script's answer."""
        self.requests.append(request)
        return self._script(request)

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""


def correct(
    speedup: float, *, half_width: float = 0.01, baseline_us: float = BASELINE_US
) -> Correct:
    """Return a Correct verdict of that speed-up over eager, its interval ± half_width of it."""
    time_us = baseline_us / speedup
    return Correct(
        timing=Timing(
            time_us=time_us,
            time_ci_us=(time_us * (1 - half_width), time_us * (1 + half_width)),
            baseline="eager",
            baseline_us=baseline_us,
            speedup=speedup,
            speedup_ci=(speedup * (1 - half_width), speedup * (1 + half_width)),
            eager_us=baseline_us,
            compile_us=None,
            num_pairs=6,
        ),
        error=NumericError(max_abs=1e-6, rel_norm=1e-7, rho=1.0),
    )


def hashed_verdict(problem: Problem, candidate: Candidate) -> Verdict:
    """Return a verdict drawn from the ids of problem and candidate: any kind, mostly correct.

    Of 256 digests 160 are correct, with a speed-up from 0.5 to 4; 32 are incorrect and 16 each are
    of the other four kinds.
    """
    digest = hashlib.sha256(f"{problem.problem_id} {candidate.candidate_id}".encode()).digest()
    draw, fraction = digest[0], digest[1] / 255
    if draw < 160:
        return correct(0.5 * 8.0**fraction)
    if draw < 192:
        return Incorrect(
            check="values:own",
            detail="expected 1, found 2 at [0]",
            error=NumericError(max_abs=1.0, rel_norm=1.0, rho=None),
        )
    if draw < 208:
        return CompileFailed(stage="build", log="error: expected ';' before '}' token")
    if draw < 224:
        return Crashed(stage="correctness", log="RuntimeError: out of bounds")
    if draw < 240:
        return TimedOut(stage="correctness", limit_s=60.0)
    return Cheated(check="two_clocks", detail="the clocks disagree by 80 %")


class InstantEvaluator:
    """An Evaluator that judges at once, from a function of problem and candidate."""

    def __init__(
        self,
        judge: Callable[[Problem, Candidate], Verdict] = hashed_verdict,
        *,
        device: str = "cpu",
    ) -> None:
        """Take the function; what it raises, `evaluate` raises."""
        self._judge = judge
        self._device = device
        self.calls: list[tuple[str, str]] = []
        """(problem id, candidate id) of every call, in order."""

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        """Return the function's verdict as an evaluation."""
        self.calls.append((problem.problem_id, candidate.candidate_id))
        verdict = self._judge(problem, candidate)
        return evaluation_of(verdict, problem=problem, candidate=candidate, device=self._device)


def evaluation_of(
    verdict: Verdict, *, problem: Problem, candidate: Candidate, device: str = "cpu"
) -> Evaluation:
    """Return an evaluation round a verdict, with the gates that such a verdict has passed."""
    built = not isinstance(verdict, CompileFailed)
    is_correct = isinstance(verdict, Correct)
    gates = [Check(name="static", passed=built, detail="" if built else verdict.reason)]
    if built:
        detail = "" if is_correct else verdict.reason
        gates.append(Check(name="correctness", passed=is_correct, detail=detail))
    return Evaluation(
        verdict=verdict,
        problem=problem.problem_id,
        candidate=candidate.candidate_id,
        language=candidate.language,
        ladder="strict",
        device=device,
        gates=tuple(gates),
        checks=(Check(name="parses", passed=True),),
        degenerate=bool(problem.degenerate),
        timeline_s={"queued": 0.0, "built": 0.0, "verified": 0.25, "timed": 0.5},
    )
