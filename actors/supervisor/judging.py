"""One try to judge a candidate: the gates in their order, each in its turn on the device.

Whatever a candidate does ends in a verdict. The default is fail: `Correct` is made in one place,
after every check passed. Beside others on the device, what it did may have been their doing: its
parent's death, memory that they held, a kernel that had to be ended to time another. Such a try
decides nothing (`Disturbed`); the next one is made alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.gates import correctness_gate
from kopt.actors.supervisor.laps import Laps
from kopt.actors.supervisor.loading import load_candidate
from kopt.actors.supervisor.provenance import judge_track, record_provenance
from kopt.actors.supervisor.race import measure_believable, performance_gate
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Judged, Trail
from kopt.actors.supervisor.turns import Hold, Stopped
from kopt.actors.verify.compare import worst
from kopt.candidate import Candidate
from kopt.identity import derived_seed
from kopt.launch_noise import widened
from kopt.verdict import Correct, Verdict

BUSY_US = 500.0
"""A trivial kernel of the reference takes tens of microseconds on a GPU that is free, and waits for
its share of time, milliseconds, where a kernel of another process runs."""
EVICTIONS = 20
"""Looks at the device after the suspects were ended, before it is timed on all the same."""

End = Callable[[Child, Callable[[], None]], None]
"""Ends a child, now or soon, and then calls what it is given."""


class Disturbed(Exception):
    """What became of a candidate may be another's doing: it is to be judged again, alone."""


@dataclass(slots=True, kw_only=True)
class Try:
    """One try to judge a candidate."""

    bench: Bench
    session: Session
    candidate: Candidate
    build_dir: Path | None
    trail: Trail
    laps: Laps
    sandbox: str = "none"
    """In force, once its child was opened."""
    _child: Child | None = None
    _hold: Hold = field(default_factory=Hold)

    @property
    def is_loaded(self) -> bool:
        """Whether its child was made."""
        return self._child is not None

    @property
    def is_evicted(self) -> bool:
        """Whether its child was ended so that another could be timed."""
        return self._hold.is_evicted

    def judge(self, end: End) -> Verdict:
        """Verify and time the candidate.

        Args:
            end: ends its child; called once, whatever happens, if it has one.

        Raises:
            ProblemError: the reference fails.
            WorkerLost: the zygote is gone.
        """
        turns = self.bench.turns
        self._hold = turns.take()
        self.laps.lap("verify_queued")
        try:
            return self._gates()
        except Judged as judged:
            return judged.verdict
        finally:
            self.laps.lap(self._interrupted())
            hold = self._hold
            if self._child is None:
                turns.give_back(hold)
            else:
                turns.must_end(hold)
                end(self._child, lambda: turns.give_back(hold))
            self.laps.lap("ended")

    def _gates(self) -> Verdict:
        bench, session, trail = self.bench, self.session, self.trail
        with trail.gate("correctness"):
            loaded = load_candidate(
                bench,
                session,
                self.candidate,
                build_dir=self.build_dir,
                trail=trail,
                on_child=self._take_child,
            )
            self.laps.lap("forked")
            firsts_us = correctness_gate(bench, session, loaded, trail=trail)
        self.laps.lap("verified")
        bench.turns.rest(self._hold)
        with session.at_baselines:
            session.baselines.compiled()
        self.laps.lap("prepared")
        with bench.alone(self._hold) as stopped:
            self._clear_device(stopped)
            self.laps.lap("timing_queued")
            seed = derived_seed(bench.config.secret, self.candidate.candidate_id, "order")
            timing = measure_believable(
                bench,
                session,
                loaded,
                firsts_us=firsts_us,
                trail=trail,
                rng=random.Random(seed),
            )
            self.laps.lap("timed")
            said = record_provenance(
                bench,
                session,
                self.candidate,
                loaded,
                build_dir=self.build_dir,
                timing=timing,
                trail=trail,
            )
            self.laps.lap("profiled")
        if bench.device == "cuda":
            timing = widened(timing, mine=said.launches, theirs=said.reference_launches)
        performance_gate(timing, trail=trail)
        judge_track(bench, said, trail=trail)
        return Correct(timing=timing, error=worst(trail.errors))

    def _take_child(self, child: Child) -> None:
        self._child = child
        self.sandbox = child.sandbox
        self.bench.turns.give(self._hold, child)

    def _interrupted(self) -> str:
        """The stage that was under way when the verdict was reached."""
        done = self.laps.laps
        for stage, after in (("profiled", "timed"), ("timed", "timing_queued")):
            if after in done:
                return stage
        return "verified" if "forked" in done else "forked"

    def _clear_device(self, stopped: Stopped) -> None:
        """End the suspects if a kernel of one of them still runs; each is judged again, alone."""
        if self.bench.device != "cuda" or not stopped.suspects:
            return
        for look in range(EVICTIONS):
            if self.session.reference.latency_us() < BUSY_US:
                return
            if look == 0:
                for hold in stopped.suspects:
                    self.bench.turns.evict(hold)
