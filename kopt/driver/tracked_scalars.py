"""The numbers that trackers show, folded from a run's events. Pure.

| name | what |
| --- | --- |
| `best_speedup/PROBLEM` | of the best correct candidate so far, over the faster baseline |
| `candidates`, `correct` | told to a tree; correct among the judged |
| `verdicts/KIND` | candidates by verdict |
| `candidates_per_gpu_hour` | those that were run, to the hour of the device's time that they took |
| `gpu_s` | seconds that devices verified, timed and profiled |
| `tokens`, `cost_usd` | of models |
| `searches_ended` | of all |
"""

from __future__ import annotations

from collections import Counter

from kopt.data.results import DEVICE_STAGES
from kopt.events import (
    AgentCalled,
    AnswerReceived,
    EventBody,
    EvidenceTaken,
    MemoryUpdated,
    ProfileAnalysed,
    SearchEnded,
    SearchStarted,
    Told,
    VerdictReached,
)
from kopt.problem import Problem


class TrackedScalars:
    """Where a run stands, in numbers; `observe` takes its events in order."""

    def __init__(self) -> None:
        """Begin with nothing observed."""
        self.step = 0
        """Candidates told."""
        self._problems: dict[str, str] = {}
        self._best: dict[str, float] = {}
        self._kinds: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._live = 0
        self._gpu_s = 0.0
        self._tokens = 0
        self._cost_usd = 0.0

    def observe(self, search: str, event: EventBody) -> None:
        """Take one event in."""
        match event:
            case SearchStarted():
                self._problems[search] = Problem(name=event.problem_name, source="").file_name
            case AnswerReceived() | ProfileAnalysed() | MemoryUpdated():
                self._tokens += event.tokens_in + event.tokens_out
                self._cost_usd += event.cost_usd
            case AgentCalled() if not search:  # others' are counted with their expansion's answer
                self._tokens += event.tokens_in + event.tokens_out
                self._cost_usd += event.cost_usd
            case VerdictReached():
                self._judged(search, event)
            case EvidenceTaken():
                self._gpu_s += event.profiled_s
            case Told():
                self.step += 1
                self._ended.discard(search)  # its budget was raised
            case SearchEnded():
                self._ended.add(search)
            case _:
                pass

    def values(self) -> dict[str, float]:
        """Return the numbers; those that are not known yet are left out."""
        known = {
            "candidates": float(self.step),
            "correct": float(self._kinds["correct"]),
            "gpu_s": self._gpu_s,
            "tokens": float(self._tokens),
            "cost_usd": self._cost_usd,
            "searches_ended": float(len(self._ended)),
            **{f"verdicts/{kind}": float(count) for kind, count in self._kinds.items()},
            **{f"best_speedup/{problem}": value for problem, value in self._best.items()},
        }
        if self._gpu_s > 0.0 and self._live:
            known["candidates_per_gpu_hour"] = self._live * 3600.0 / self._gpu_s
        return known

    def _judged(self, search: str, event: VerdictReached) -> None:
        record = event.eval
        self._kinds[record["kind"]] += 1
        if not event.cached:
            self._live += 1
            timeline_s = record["timeline_s"]
            self._gpu_s += sum(timeline_s.get(stage, 0.0) for stage in DEVICE_STAGES)
        problem, speedup = self._problems.get(search), record["speedup"]
        if problem is not None and speedup is not None and record["kind"] == "correct":
            self._best[problem] = max(speedup, self._best.get(problem, 0.0))
