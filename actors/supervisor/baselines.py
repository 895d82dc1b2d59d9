"""The baselines of a problem: eager and compiled references, in children of their own, kept warm.

Compilation begins with the session and runs while candidates are verified, never while anything is
timed: the first to be timed waits for it. What earlier sessions found (baseline_cache.py) says
which compiled reference can win and is made; times of the others are reported as they were kept.
Where a calm device takes another time now than was kept, everything is measured again.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from kopt.actors.supervisor.baseline_cache import BaselineCache
from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.actors.supervisor.compiled import Compiled, begin_compiled
from kopt.actors.supervisor.first_call import reference_first_us
from kopt.actors.supervisor.given import Given, begin_given, unfit
from kopt.actors.supervisor.inputs import JudgedSet, sizes
from kopt.actors.supervisor.measurement import calls_us, measure
from kopt.actors.supervisor.outputs import output_bytes
from kopt.actors.supervisor.reference import Reference, State
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.contenders import NOT_RACED_UNASKED, contenders, rivals
from kopt.drift import DRIFT_SHARE, has_drifted
from kopt.evaluation import BASELINE_CHECK, Check
from kopt.problem import Problem
from kopt.reward import RewardBaseline
from kopt.timing import GIVEN, Baseline
from kopt.timing_protocol import figure_us
from kopt.verdict import last_line

FIRSTS = 3
"""Input sets at most on which the reference's first call is measured."""
ROUNDS = 5
"""Blocks of each baseline, interleaved, that its median rests on."""
SLOWED = 1.25
"""On a GPU a baseline counts as no slower, by this factor, than it was before any candidate: a
process can be stopped while another is timed, a kernel that it left running cannot."""
RENEWALS = 2
"""Times in a session that baselines are measured again, however often they seem to drift."""


@dataclass(slots=True)
class Baselines:
    """What candidates are compared with."""

    bench: Bench
    problem: Problem
    checks: list[Check] = field(default_factory=list)
    """What could not be measured, and why."""
    times_us: dict[Baseline, float] = field(default_factory=dict)
    """What the protocol makes of each, those that were only kept included; filled by `ready`."""
    first_us: float = 0.0
    """The eager reference's call on an input bound just before, its outputs handed over; filled by
    `ready`."""
    _reference: Reference | None = None
    _state: State = field(default_factory=dict)
    _sets: list[JudgedSet] = field(default_factory=list)
    _timed: list[int] = field(default_factory=list)
    _cache: BaselineCache | None = None
    _kept_us: dict[Baseline, float] = field(default_factory=dict)
    _watches: dict[Baseline, Stopwatch] = field(default_factory=dict)
    _compiled: list[Compiled | Given] = field(default_factory=list)
    _seen_us: dict[Baseline, tuple[float, float]] = field(default_factory=dict)
    """Least and greatest time of each, when they were measured beside each other."""
    _quiet_us: float = 0.0
    """One eager call with no candidate there; a GPU's alone."""
    _has_drifted: bool = False
    _renewals: int = 0

    def begin(
        self, reference: Reference, state: State, sets: list[JudgedSet], timed: list[int]
    ) -> None:
        """Set up the eager baseline. To be called with the device alone.

        Raises:
            ProblemError: the reference fails while it is timed.
            WorkerLost: the zygote is gone.
        """
        self._reference, self._state = reference, state
        self._sets, self._timed = sets, timed
        self._cache = BaselineCache(self.bench, self.problem)
        self._kept_us = self._cache.load()
        self._watches["eager"] = self._watch(reference.child)
        try:
            self._look_while_quiet()
        except ChildFailed as failure:
            raise reference.fault(failure) from None

    def begin_others(self) -> None:
        """Begin to compile those others that can win; it goes on beside others that are verified.

        Raises:
            WorkerLost: the zygote is gone.
        """
        self._begin_compiled()

    def compiled(self) -> None:
        """Wait for what compiles; what fails is a failed check. Others may be timed meanwhile."""
        for compiled in list(self._compiled):
            try:
                compiled.finish(timeout_s=self.bench.config.timeouts.reference_s)
                self._watches.setdefault(compiled.name, self._watch(compiled.child))
            except ChildFailed as failure:
                self._drop(compiled.name, failure)

    def ready(self) -> None:
        """Wait for what compiles, then measure every baseline once.

        Raises:
            ChildFailed: the reference itself fails while it is timed.
        """
        if self.times_us:
            return
        known_us = self._known_us()
        samples_us = self._measure()
        if any(
            has_drifted(samples_us[name], known_us=known_us[name])
            for name in samples_us.keys() & known_us.keys()
        ):
            self._forget("this device takes another time now")
            known_us = {}
            self._begin_compiled()
            samples_us = self._measure()
        self._seen_us = {name: (min(each), max(each)) for name, each in samples_us.items()}
        slower = self._slower()
        protocol = self.bench.config.timing.protocol
        measured_us = {
            name: figure_us(each, protocol=protocol) / (slower if slower > SLOWED else 1.0)
            for name, each in samples_us.items()
        }
        self.times_us = {**known_us, **measured_us}
        if slower <= 1.0 + DRIFT_SHARE and measured_us.keys() - known_us.keys():
            assert self._cache is not None
            self._kept_us = {**self._kept_us, **self.times_us}
            self._cache.keep(self._kept_us)
        self.first_us = self._measure_firsts()

    @property
    def is_stale(self) -> bool:
        """Whether a race found another time, so that `renew` measures again."""
        return self._has_drifted and self._renewals < RENEWALS

    def renew(self) -> None:
        """Measure again what a race found changed. To be called while there is no candidate.

        Raises:
            ProblemError: the reference fails.
            WorkerLost: the zygote is gone.
        """
        if not self.is_stale:
            return
        assert self._reference is not None
        self._has_drifted = False
        self._renewals += 1
        self._forget("a race found another time on a calm device")
        self.times_us = {}
        try:
            self._look_while_quiet()
            self._begin_compiled()
            self.ready()
        except ChildFailed as failure:
            raise self._reference.fault(failure) from None

    def note(self, name: Baseline, times_us: Sequence[float]) -> None:
        """Take notice of what a baseline took in a race, block by block or call by call."""
        if has_drifted(times_us, known_us=self.times_us[name]):
            self._has_drifted = True

    def best(self) -> Baseline:
        """Return the baseline that speed-ups are against; call `ready` first."""
        wanted = self._against
        if wanted != "best" and wanted in self._watches:
            return wanted
        return min(
            (name for name in self._watches if name not in NOT_RACED_UNASKED),
            key=lambda name: self.times_us[name],
        )

    def rivals(self) -> list[Baseline]:
        """Return those that may be the best as well, where speed-ups are against the best."""
        if self._against != "best":
            return []
        return rivals(self.best(), seen_us=self._seen_us)

    def watch(self, name: Baseline) -> Stopwatch:
        """Return the stopwatch of a baseline that has a process."""
        return self._watches[name]

    def close(self) -> None:
        """End the children that were compiled."""
        for compiled in self._compiled:
            compiled.child.end()
        self._compiled = []

    def _wanted(self) -> list[Baseline]:
        config = self.bench.config
        wanted: list[Baseline] = []
        if config.compile:
            wanted.append("compile")
        if config.max_autotune:
            wanted.append("max_autotune")
        if self.problem.given and not unfit(self.bench, self.problem):
            wanted.append(GIVEN)
        return wanted

    @property
    def _against(self) -> RewardBaseline:
        """What speed-ups are against: `best` where a problem comes with no kernel to beat."""
        wanted = self.bench.config.baseline
        return "best" if wanted == GIVEN and not self.problem.given else wanted

    def _known_us(self) -> dict[Baseline, float]:
        """What was kept of the baselines that are wanted, if eager is among it."""
        if "eager" not in self._kept_us:
            return {}
        names: list[Baseline] = ["eager", *self._wanted()]
        return {name: self._kept_us[name] for name in names if name in self._kept_us}

    def _begin_compiled(self) -> None:
        """Begin to compile what is worth it and has not begun."""
        assert self._reference is not None
        begun = {compiled.name for compiled in self._compiled}
        self.checks = []
        if self.problem.given and (reason := unfit(self.bench, self.problem)):
            self.checks.append(Check(name=f"{BASELINE_CHECK}{GIVEN}", passed=True, detail=reason))
        for name in contenders(self._wanted(), known_us=self._known_us(), baseline=self._against):
            if name in begun:
                continue
            try:
                self._compiled.append(self._begin(name))
            except ChildFailed as failure:
                self._give_up(name, failure)

    def _begin(self, name: Baseline) -> Compiled | Given:
        assert self._reference is not None
        state, sets, timed = self._state, self._sets, self._timed
        if name == GIVEN:
            return begin_given(self.bench, self._reference, state=state, sets=sets, timed=timed)
        return begin_compiled(
            self.bench, self._reference, name=name, state=state, sets=sets, timed=timed
        )

    def _measure(self) -> dict[Baseline, list[float]]:
        """Return the times of every baseline that has a process: of blocks, or of calls."""
        self.compiled()
        self._tune()
        samples_us: dict[Baseline, list[float]] = {}
        for name in list(self._watches):
            try:
                self._watches[name].warm_up()
                samples_us[name] = []
            except ChildFailed as failure:
                if name == "eager":
                    raise
                self._drop(name, failure)
        protocol = self.bench.config.timing.protocol
        for turn in range(ROUNDS if protocol == "abba" else 1):
            for name in list(samples_us) if turn % 2 == 0 else reversed(list(samples_us)):
                watch = self._watches[name]
                if protocol == "abba":
                    samples_us[name].append(watch.block().call_us)
                else:
                    samples_us[name] += calls_us(measure(watch, protocol=protocol))
        return samples_us

    def _tune(self) -> None:
        """Let what was compiled beside others pick its configurations alone."""
        for compiled in list(self._compiled):
            try:
                compiled.tune(timeout_s=self.bench.config.timeouts.reference_s)
            except ChildFailed as failure:
                self._drop(compiled.name, failure)

    def _measure_firsts(self) -> float:
        assert self._reference is not None
        return statistics.median(
            reference_first_us(self._reference, self._sets[number], number=number)
            for number in self._timed[:FIRSTS]
        )

    def _look_while_quiet(self) -> None:
        """See what an eager call takes while no candidate can have left a kernel running."""
        if self.bench.device == "cuda":
            self._watches["eager"].warm_up()
            self._quiet_us = self._eager_us()

    def _slower(self) -> float:
        """Return the factor by which an eager call takes longer now than it did then."""
        return self._eager_us() / self._quiet_us if self._quiet_us else 1.0

    def _eager_us(self) -> float:
        return statistics.median(self._watches["eager"].block().call_us for _ in range(ROUNDS))

    def _watch(self, child: Child) -> Stopwatch:
        config = self.bench.config
        timed = self._sets[self._timed[0]]
        return Stopwatch(
            child,
            sets={number: sizes(self._sets[number]) for number in self._timed},
            output_bytes=output_bytes(timed.outputs),
            copies=timed.may_alias,
            device=self.bench.device,
            timing=config.timing,
            limit_s=config.timeouts.timing_s,
            rng=random.Random(config.secret),
        )

    def _forget(self, why: str) -> None:
        assert self._cache is not None
        self._cache.forget(why)
        self._kept_us = {}

    def _drop(self, name: Baseline, failure: ChildFailed) -> None:
        self._give_up(name, failure)
        self._watches.pop(name, None)
        for compiled in [each for each in self._compiled if each.name == name]:
            compiled.child.end()
            self._compiled.remove(compiled)

    def _give_up(self, name: Baseline, failure: ChildFailed) -> None:
        why = failure.how if failure.how == "timed_out" else last_line(failure.log)
        self.checks.append(
            Check(name=f"{BASELINE_CHECK}{name}", passed=False, detail=f"not measured: {why}")
        )
