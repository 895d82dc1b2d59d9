"""A compiled reference in a child of its own, compiling until it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.actors.supervisor.reference import Reference, State, bind, load_state
from kopt.actors.supervisor.settings import Bench
from kopt.timing import Baseline

MODES: dict[Baseline, str | None] = {"compile": None, "max_autotune": "max-autotune-no-cudagraphs"}


@dataclass(slots=True)
class Compiled:
    """One baseline that is compiled."""

    name: Baseline
    child: Child
    number: int
    """The input set that it is compiled on."""
    seed: int
    under_way: bool = True
    is_tuned: bool = False
    """Whether its kernels' configurations were picked with nothing beside them."""

    def begin(self) -> None:
        """Begin to compile it.

        Raises:
            ChildFailed: the child is gone.
        """
        self.child.tell("compile", afresh=False, **self._what())

    def tune(self, *, timeout_s: float) -> None:
        """Compile it again from the caches, and pick its kernels' configurations.

        To be called with the device to itself.

        Raises:
            ChildFailed: it cannot be, or not in time.
        """
        if not self.is_tuned:
            self.child.ask("compile", timeout_s=timeout_s, afresh=True, **self._what())
            self.is_tuned = True

    def _what(self) -> dict[str, Any]:
        return {"mode": MODES[self.name], "number": self.number, "seed": self.seed}

    def finish(self, *, timeout_s: float) -> None:
        """Wait until it is compiled.

        Raises:
            ChildFailed: it cannot be, or not in time.
        """
        if self.under_way:
            self.child.answer("compile", timeout_s=timeout_s)
            self.under_way = False


def begin_compiled(
    bench: Bench,
    reference: Reference,
    *,
    name: Baseline,
    state: State,
    sets: Sequence[JudgedSet],
    timed: Sequence[int],
) -> Compiled:
    """Begin to compile a problem's reference.

    Args:
        bench: where children are made.
        reference: of the problem.
        name: a key of MODES.
        state: the weights to load.
        sets: input sets of the session.
        timed: numbers of those that are timed, at least one.

    Raises:
        ChildFailed: it does not load.
        WorkerLost: the zygote is gone.
    """
    limit_s, problem = reference.limit_s, reference.problem
    child = bench.child(problem)
    try:
        child.ask("import", timeout_s=limit_s, source=problem.source, name="reference")
        child.ask("construct_reference", timeout_s=limit_s, seed=reference.init_seed)
        load_state(child, state, timeout_s=limit_s)
        for number in timed:
            bind(child, sets[number], number=number, timeout_s=limit_s)
        made = Compiled(name, child, number=timed[0], seed=sets[timed[0]].seed)
        # A CPU's kernels have no configurations to pick.
        made.is_tuned = bench.device == "cpu"
        made.begin()
    except BaseException:
        child.end()
        raise
    return made
