"""The profile lane as the driver uses it: one profile of a candidate in a run, bounded, counted.

Whatever a profiler does, it costs a candidate its evidence and nothing else: one that fails is
named, one that hangs is given up, and after a few failures in a row none is asked any more.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from kopt.candidate import Candidate
from kopt.data.evidence_json import evidence_from_json, evidence_to_json
from kopt.driver.profile_rule import TOGETHER, DeviceShare, ProfileRule
from kopt.driver.shared import Key, SharedResults
from kopt.errors import ConfigError, ProfileFailed, StoreError, WorkerLost
from kopt.evaluation import Evaluation
from kopt.events import EvidenceTaken
from kopt.evidence import Evidence
from kopt.identity import canonical_json
from kopt.ports import Clock, EventSink, Profiler
from kopt.problem import Problem

MAX_FAILURES = 3
"""Profiles that failed in a row after which the run goes on without the profiler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What came of profiling a candidate."""

    ref: str | None
    """Artefact of the evidence; None where there is none."""
    level: str | None = None
    reason: str = ""
    """Why there is none, in one line."""
    profiled_s: float = 0.0

    @staticmethod
    def of(event: EvidenceTaken) -> Taken:
        """Return what an earlier part of the run came to."""
        return Taken(
            ref=event.ref, level=event.level, reason=event.reason, profiled_s=event.profiled_s
        )


class EvidenceDesk:
    """Takes evidence of candidates, each once in a run."""

    def __init__(
        self,
        profiler: Profiler,
        *,
        rule: ProfileRule,
        sink: EventSink,
        clock: Clock,
        known: Mapping[Key, EvidenceTaken],
        warn: Callable[[str], None],
    ) -> None:
        """Take the parts.

        Args:
            profiler: of the fleet.
            rule: for its bounds.
            sink: keeps the evidence.
            clock: tells how long a profile took.
            known: from an earlier part of the run.
            warn: shows one line to the user.
        """
        self._profiler = profiler
        self._rule = rule
        self._sink = sink
        self._clock = clock
        self._warn = warn
        self._taken = SharedResults({key: Taken.of(event) for key, event in known.items()})
        self._places = asyncio.Semaphore(TOGETHER * rule.devices)
        self._num_under_way = 0
        self._given_up: set[asyncio.Task[Evidence]] = set()
        self._failures_in_a_row = 0
        self._counts: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()

    async def take(
        self, problem: Problem, candidate: Candidate, evaluation: Evaluation, *, share: DeviceShare
    ) -> tuple[Taken, bool] | None:
        """Profile a candidate, or say what is known of it.

        Args:
            problem: of the candidate.
            candidate: that was found correct.
            evaluation: of it.
            share: of the device's time, that is to have room for it.

        Returns:
            What came of it and whether it was known before; None where it is left out.

        Raises:
            StoreError: the evidence cannot be kept.
        """
        key = problem.problem_id, candidate.candidate_id
        if key not in self._taken:
            if self._failures_in_a_row >= MAX_FAILURES:
                self._counts["after the profiler was given up"] += 1
                return None
            if not share.has_room():
                self._counts["by findings.share"] += 1
                return None
        taken, was_known = await self._taken.get(
            key, lambda: self._profile(problem, candidate, evaluation)
        )
        if not was_known:
            share.profiled(taken.profiled_s)
        return taken, was_known

    def evidence(self, ref: str) -> Evidence:
        """Return evidence that was kept.

        Raises:
            StoreError: the artefact is missing or is no evidence.
        """
        try:
            return evidence_from_json(json.loads(self._sink.get_text(ref)))
        except (ConfigError, ValueError) as error:
            raise StoreError(f"artefact {ref}", str(error)) from error

    def report(self) -> str:
        """Return one line on what was not profiled and why; empty where everything was."""
        parts = [f"{fault} ({count})" for fault, count in self._faults.most_common(3)]
        more = len(self._faults) - len(parts)
        parts += [f"{more} other reasons"] if more > 0 else []
        lines = []
        if self._faults:
            tried = self._counts["taken"] + self._faults.total()
            lines.append(f"{self._faults.total()} of {tried} profiles failed: {'; '.join(parts)}")
        lines += [
            f"{count} left out {why}" for why, count in self._counts.items() if why != "taken"
        ]
        return "; ".join(lines)

    async def _profile(
        self, problem: Problem, candidate: Candidate, evaluation: Evaluation
    ) -> Taken:
        async with self._places:
            began_s = self._clock.monotonic_s()
            self._num_under_way += 1
            most = self._num_under_way
            try:
                evidence = await self._within_limit(
                    self._profiler.profile(problem, candidate, evaluation)
                )
            except (ProfileFailed, WorkerLost) as error:
                evidence, reason = None, " ".join(str(error).split()) or type(error).__name__
            except TimeoutError:
                evidence, reason = None, f"no evidence within {self._rule.limit_s:g} s"
            finally:
                most = max(most, self._num_under_way)
                self._num_under_way -= 1
            # Of several that waited or ran together on a device, each took its part of the time.
            took_s = (self._clock.monotonic_s() - began_s) * min(1.0, self._rule.devices / most)
        if evidence is None:
            self._failed(problem, reason)
            return Taken(ref=None, reason=reason, profiled_s=took_s)
        self._failures_in_a_row = 0
        self._counts["taken"] += 1
        ref = self._sink.put_text(canonical_json(evidence_to_json(evidence)))
        return Taken(ref=ref, level=evidence.level, profiled_s=took_s)

    async def _within_limit(self, profiling: Coroutine[Any, Any, Evidence]) -> Evidence:
        """Wait so long and no longer, also for a profiler that does not heed a cancellation.

        Raises:
            TimeoutError: it did not end in time.
        """
        running = asyncio.create_task(profiling)
        try:
            done, _ = await asyncio.wait([running], timeout=self._rule.limit_s)
        except asyncio.CancelledError:
            running.cancel()
            raise
        if done:
            return running.result()
        running.cancel()
        self._given_up.add(running)  # a task that nobody holds may vanish while it runs
        running.add_done_callback(self._forget)
        raise TimeoutError

    def _forget(self, running: asyncio.Task[Evidence]) -> None:
        self._given_up.discard(running)
        if not running.cancelled():
            running.exception()  # what it ends in concerns nobody any more

    def _failed(self, problem: Problem, reason: str) -> None:
        self._failures_in_a_row += 1
        if not self._faults:
            self._warn(f"{problem.name}: a profile failed ({reason}); the search goes on without")
        self._faults[reason] += 1
        if self._failures_in_a_row == MAX_FAILURES:
            self._warn(
                f"{MAX_FAILURES} profiles in a row failed, the last: {reason}; "
                "nothing more is profiled in this run"
            )
