"""A problem's session on one device: everything of it that does not depend on a candidate.

The reference's child with its weights, the input sets with the reference's outputs on them, and
the baselines. Kept while candidates of the problem come, and let go with its last use.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import torch

from kopt.activity import Activity
from kopt.actors.child.tensor_spec import Shareable
from kopt.actors.supervisor.baselines import Baselines
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.draws import draw_sets
from kopt.actors.supervisor.inputs import JudgedSet, close_all, draw_content
from kopt.actors.supervisor.light import problem_light
from kopt.actors.supervisor.reference import Reference, State
from kopt.actors.supervisor.settings import Bench
from kopt.actors.verify.compare import constant_output, flatten
from kopt.evaluation import Check
from kopt.identity import derived_seed
from kopt.problem import Problem
from kopt.speed_of_light import Light


@dataclass(slots=True)
class Session:
    """What is known of a problem before its first candidate."""

    problem: Problem
    reference: Reference
    states: list[State]
    sets: list[JudgedSet]
    """In the order judged; the first has the weights as constructed."""
    baselines: Baselines
    light: Light = field(default_factory=Light)
    """Speed of light on this device."""
    bases: list[Shareable] = field(default_factory=list)
    """What input sets that are not held are drawn from."""
    checks: list[Check] = field(default_factory=list)
    """What was assumed or left out, for every verdict."""
    degenerate: bool = False
    at_baselines: threading.Lock = field(default_factory=threading.Lock)
    """Held by whoever sees to the baselines beside others that are verified."""
    _at_reference: threading.Lock = field(default_factory=threading.Lock)
    activity: Activity | str | None = None
    """What a call of the eager reference runs, or why that is not known; None before it was asked
    for (`reference_activity`)."""

    def timed(self) -> list[int]:
        """Return the numbers of the sets that are timed: the problem's own, final weights."""
        last = len(self.states) - 1
        own = [
            number
            for number, judged in enumerate(self.sets)
            if judged.is_own and judged.state == last
        ]
        return own or [0]

    def two_sets(self) -> tuple[int, int]:
        """Return the numbers of two sets of the final weights, different ones if there are."""
        first = self.timed()[-1]
        others = [
            number
            for number, judged in enumerate(self.sets)
            if judged.state == self.sets[first].state and number != first and judged.is_complete
        ]
        return first, others[-1] if others else first

    @contextmanager
    def filled_pair(self) -> Iterator[dict[int, JudgedSet]]:
        """Give `two_sets` with their contents, by their numbers.

        Raises:
            ProblemError: the reference fails on one now.
        """
        with ExitStack() as stack:
            yield {each: stack.enter_context(self.filled(each)) for each in {*self.two_sets()}}

    @contextmanager
    def filled(self, number: int) -> Iterator[JudgedSet]:
        """Give an input set with its content and the reference's outputs, made again if need be.

        Raises:
            ProblemError: the reference fails on it now.
        """
        judged = self.sets[number]
        if judged.is_complete:
            yield judged
            return
        filled = replace(judged)  # several candidates may be at it
        try:
            self._fill(filled, number=number)
            yield filled
        finally:
            filled.outputs = filled.outputs64 = None
            if not judged.is_held:
                filled.close()

    def _fill(self, judged: JudgedSet, *, number: int) -> None:
        """Fill in what is missing of an input set.

        Raises:
            ProblemError: the reference fails.
        """
        last = len(self.states) - 1
        try:
            if not judged.is_held:
                assert judged.recipe is not None
                draw_content(judged, judged.recipe)
            with self._at_reference:
                if judged.outputs is not None:  # it is timed, and bound
                    exact = self.reference.with_float64(judged, number=number)
                    judged.outputs64 = exact.outputs64
                    return
                if judged.state != last:
                    self.reference.load(self.states[judged.state])
                self.run_reference(judged)
                if judged.state != last:
                    self.reference.load(self.states[last])
        except (ChildFailed, MemoryError) as error:
            raise self.reference.fault(error) from None

    def run_reference(self, judged: JudgedSet) -> None:
        """Fill in what the reference gives on one more input set.

        Raises:
            ProblemError: it fails.
        """
        try:
            self.reference.run(judged, number=len(self.sets))
        except (ChildFailed, MemoryError) as error:
            raise self.reference.fault(error) from None

    def close(self) -> None:
        """End the children and let the memory go."""
        self.baselines.close()
        self.reference.end()
        for judged in self.sets:
            judged.close()
        close_all(self.bases)
        for state in self.states:
            close_all(state.values())


def open_session(bench: Bench, problem: Problem) -> Session:
    """Load a problem, draw its hidden inputs, and run its reference on them.

    Raises:
        ProblemError: the reference breaks its contract or cannot run here.
        WorkerLost: the zygote is gone.
    """
    with bench.turns.shared(breathes=True):
        session = _drawn(bench, problem)
    try:
        begin_baselines(bench, session)
    except BaseException:
        session.close()
        raise
    return session


def begin_baselines(bench: Bench, session: Session) -> None:
    """Set up the eager baseline, and begin to compile the others.

    Raises:
        ProblemError: the reference fails while it is timed.
        WorkerLost: the zygote is gone.
    """
    with bench.alone():
        session.baselines.begin(
            session.reference, session.states[-1], session.sets, session.timed()
        )
    with bench.turns.shared(breathes=True):
        session.baselines.begin_others()


def _drawn(bench: Bench, problem: Problem) -> Session:
    secret = derived_seed(bench.config.secret, problem.problem_id, "session")
    reference = Reference(bench, problem, secret=secret)
    try:
        states = reference.states(seed=derived_seed(secret, "weights"))
        drawn = draw_sets(bench, reference, states, secret=secret)
        states, sets, checks = drawn.states, drawn.sets, drawn.checks
        session = Session(
            problem,
            reference,
            states,
            sets,
            Baselines(bench, problem),
            bases=drawn.bases,
            checks=checks,
            degenerate=_is_degenerate(sets) or bool(problem.degenerate),
        )
        first = session.timed()[0]
        session.light = problem_light(
            reference, sets[first], number=first, seed=derived_seed(secret, "light") % (1 << 31)
        )
    except BaseException:
        reference.end()
        raise
    return session


def _is_degenerate(sets: list[JudgedSet]) -> bool:
    last = sets[-1].state  # under other weights, another output says nothing about the input
    first = [
        leaf
        for judged in sets
        if judged.state == last and judged.case == 0
        for _, leaf in flatten(judged.outputs64 if judged.is_complete else judged.outputs)[:1]
        if isinstance(leaf, torch.Tensor)
    ]
    return constant_output(first)
