"""The kernel that a problem comes with, in a child of its own: a baseline to be beaten.

An expert's Triton kernel is what production code is measured against (KernelPro §5.4, App. C.3). It
is the user's, as the reference is, and trusted as far: its outputs are compared once, so that no
speed-up is over a kernel that computes something else, and nothing watches its clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from kopt.actors.devices.base import DeviceName, describe
from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.actors.supervisor.first_call import first_call
from kopt.actors.supervisor.inputs import JudgedSet, close_all, renumber
from kopt.actors.supervisor.outputs import compare, poisoned
from kopt.actors.supervisor.reference import Reference, State, bind, load_state, state_entries
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Judged, Trail
from kopt.actors.verify.weights import match_state
from kopt.candidate import Language
from kopt.foreign_language import with_foreign
from kopt.problem import Problem
from kopt.prompts.language import language_of
from kopt.timing import GIVEN, Baseline


def unfit(bench: Bench, problem: Problem) -> str:
    """Return why a problem's kernel is no baseline on this device, or nothing where it may be."""
    language = language_of(problem.given)
    if language == "torch" or language in _languages(bench.device, bench.config.languages):
        return ""
    return f"{language} kernels do not run on {bench.device}, or {language} is not installed"


@cache
def _languages(device: DeviceName, kinds: tuple[str, ...]) -> tuple[Language, ...]:
    """Those that run on a device of this machine, foreign ones of these kinds included."""
    return with_foreign(describe(device), kinds).languages


@dataclass(slots=True)
class Given:
    """The baseline `given` as it is loaded."""

    child: Child
    _bench: Bench
    _reference: Reference
    _state: State
    _sets: Sequence[JudgedSet]
    _timed: Sequence[int]
    name: Baseline = GIVEN
    _is_loaded: bool = False
    _is_compared: bool = False

    def finish(self, *, timeout_s: float) -> None:
        """Wait until it is imported, and give it weights and inputs.

        Raises:
            ChildFailed: it does not load, or not in time.
        """
        if self._is_loaded:
            return
        reference, child = self._reference, self.child
        child.answer("import", timeout_s=timeout_s)
        numbers = child.share(reference.argument_tensors)
        child.ask(
            "construct_candidate",
            timeout_s=timeout_s,
            arguments=renumber(reference.arguments, numbers),
            seed=reference.init_seed,
        )
        entries = state_entries(child.ask("describe_state", timeout_s=timeout_s))
        match = match_state(reference.entries, candidate=entries)
        if match.sources is None:
            raise ChildFailed("raised", "weights", match.reason)
        load_state(child, self._state, timeout_s=timeout_s, sources=match.sources)
        for number in self._timed:
            bind(child, self._sets[number], number=number, timeout_s=timeout_s)
        self._is_loaded = True

    def tune(self, *, timeout_s: float) -> None:
        """Run it once and compare; what it compiles and picks then, it does with the device alone.

        Raises:
            ChildFailed: it raises, does not end in time, or computes something else.
        """
        if self._is_compared:
            return
        number = self._timed[0]
        judged, trail = self._reference.with_float64(self._sets[number], number=number), Trail()
        buffers = poisoned(judged.outputs)
        into = self.child.share(buffers)
        answer, _ = first_call(self.child, judged, number=number, into=into, limit_s=timeout_s)
        self.child.ask("unmap", timeout_s=timeout_s, numbers=into)
        try:
            compare(self._bench, judged, answer, 0, buffers, name=GIVEN, trail=trail)
        except Judged as judgement:
            why = f"the given kernel is wrong: {judgement.verdict.reason}"
            raise ChildFailed("raised", GIVEN, why) from None
        finally:
            close_all(buffers)
        self._is_compared = True


def begin_given(
    bench: Bench,
    reference: Reference,
    *,
    state: State,
    sets: Sequence[JudgedSet],
    timed: Sequence[int],
) -> Given:
    """Begin to import a problem's kernel, which may compile it.

    Args:
        bench: where children are made.
        reference: of the problem, which has a kernel.
        state: the weights to load.
        sets: input sets of the session.
        timed: numbers of those that are timed, at least one.

    Raises:
        ChildFailed: its child is gone.
        WorkerLost: the zygote is gone.
    """
    child = bench.child(reference.problem)
    try:
        child.tell("import", source=reference.problem.given, name="given_kernel")
    except BaseException:
        child.end()
        raise
    return Given(child, bench, reference, state, sets, timed)
