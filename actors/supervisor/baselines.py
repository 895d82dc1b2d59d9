"""The baselines of a problem: eager and compiled references, in children of their own, kept warm.

Compilation begins with the session and runs while candidates are verified, never while anything is
timed: the first to be timed waits for it.
"""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass, field

from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.actors.supervisor.first_call import reference_first_us
from kopt.actors.supervisor.inputs import JudgedSet, sizes
from kopt.actors.supervisor.outputs import output_bytes
from kopt.actors.supervisor.reference import Reference, State, bind, load_state
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.evaluation import Check
from kopt.problem import Problem
from kopt.timing import Baseline
from kopt.verdict import last_line

MODES: dict[Baseline, str | None] = {"compile": None, "max_autotune": "max-autotune-no-cudagraphs"}
FIRSTS = 3
"""Input sets at most on which the reference's first call is measured."""
ROUNDS = 5
"""Blocks of each baseline, interleaved, that its median rests on."""


@dataclass(slots=True)
class _Compiled:
    name: Baseline
    child: Child
    under_way: bool = True


@dataclass(slots=True)
class Baselines:
    """What candidates are compared with."""

    bench: Bench
    problem: Problem
    checks: list[Check] = field(default_factory=list)
    """What could not be measured, and why."""
    times_us: dict[Baseline, float] = field(default_factory=dict)
    """Medians; filled by `ready`."""
    first_us: float = 0.0
    """The eager reference's call on an input bound just before, its outputs handed over; filled by
    `ready`."""
    _reference: Reference | None = None
    _watches: dict[Baseline, Stopwatch] = field(default_factory=dict)
    _compiled: list[_Compiled] = field(default_factory=list)
    _sets: list[JudgedSet] = field(default_factory=list)
    _timed: list[int] = field(default_factory=list)

    def begin(
        self, reference: Reference, state: State, sets: list[JudgedSet], timed: list[int]
    ) -> None:
        """Set up the eager baseline, and begin to compile the others.

        Raises:
            WorkerLost: the zygote is gone.
        """
        config = self.bench.config
        self._reference, self._sets, self._timed = reference, sets, timed
        self._watches["eager"] = self._watch(reference.child)
        wanted: list[Baseline] = []
        if config.compile:
            wanted.append("compile")
        if config.max_autotune:
            wanted.append("max_autotune")
        for name in wanted:
            try:
                self._compiled.append(self._begin(name, reference, state))
            except ChildFailed as failure:
                self._give_up(name, failure)

    def ready(self) -> None:
        """Wait for what compiles, then measure every baseline once.

        Raises:
            ChildFailed: the reference itself fails while it is timed.
        """
        for compiled in list(self._compiled):
            if compiled.under_way:
                self._finish(compiled)
        if not self.times_us:
            self._measure()

    def best(self) -> Baseline:
        """Return the baseline that speed-ups are against; call `ready` first."""
        wanted = self.bench.config.baseline
        if wanted in ("eager", "compile") and wanted in self.times_us:
            return "eager" if wanted == "eager" else "compile"
        return min(
            (name for name in self.times_us if name != "max_autotune"),
            key=lambda name: self.times_us[name],
        )

    def watch(self, name: Baseline) -> Stopwatch:
        """Return the stopwatch of a baseline that was measured."""
        return self._watches[name]

    def close(self) -> None:
        """End the children that were compiled."""
        for compiled in self._compiled:
            compiled.child.end()
        self._compiled = []

    def _begin(self, name: Baseline, reference: Reference, state: State) -> _Compiled:
        limit_s = reference.limit_s
        child = self.bench.child(self.problem)
        try:
            child.ask("import", timeout_s=limit_s, source=self.problem.source, name="reference")
            child.ask("construct_reference", timeout_s=limit_s, seed=reference.init_seed)
            load_state(child, state, timeout_s=limit_s)
            for number in self._timed:
                bind(child, self._sets[number], number=number, timeout_s=limit_s)
            first = self._timed[0]
            child.tell("compile", mode=MODES[name], number=first, seed=self._sets[first].seed)
        except ChildFailed:
            child.end()
            raise
        return _Compiled(name, child)

    def _finish(self, compiled: _Compiled) -> None:
        try:
            compiled.child.answer("compile", timeout_s=self.bench.config.timeouts.reference_s)
            compiled.under_way = False
            self._watches[compiled.name] = self._watch(compiled.child)
        except ChildFailed as failure:
            self._drop(compiled.name, failure)

    def _measure(self) -> None:
        samples: dict[Baseline, list[float]] = {}
        for name in list(self._watches):
            try:
                self._watches[name].warm_up()
                samples[name] = []
            except ChildFailed as failure:
                if name == "eager":
                    raise
                self._drop(name, failure)
        for turn in range(ROUNDS):
            names = list(samples) if turn % 2 == 0 else list(reversed(samples))
            for name in names:
                samples[name].append(self._watches[name].block().call_us)
        assert self._reference is not None
        firsts_us = [
            reference_first_us(self._reference, self._sets[number], number=number)
            for number in self._timed[:FIRSTS]
        ]
        self.times_us = {name: statistics.median(times) for name, times in samples.items()}
        self.first_us = statistics.median(firsts_us)

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

    def _drop(self, name: Baseline, failure: ChildFailed) -> None:
        self._give_up(name, failure)
        self._watches.pop(name, None)
        for compiled in [each for each in self._compiled if each.name == name]:
            compiled.child.end()
            self._compiled.remove(compiled)

    def _give_up(self, name: Baseline, failure: ChildFailed) -> None:
        why = failure.how if failure.how == "timed_out" else last_line(failure.log)
        self.checks.append(
            Check(name=f"baseline:{name}", passed=False, detail=f"not measured: {why}")
        )
