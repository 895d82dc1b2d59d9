"""A problem's reference under lint, in its child: one call on any inputs with any weights.

What a call gives is copied to private memory. A call that raises gives None: the inputs lie outside
the problem's contract, and a child that died of them is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kopt.actors.child.tensor_spec import Shareable, spec_from_json
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.exchange import new_tensor
from kopt.actors.supervisor.inputs import JudgedSet, private, renumber
from kopt.actors.supervisor.reference import Reference, State
from kopt.actors.supervisor.settings import Bench
from kopt.problem import Problem

SCRATCH_SET = 9_000
"""Number of the input set that a single call binds; apart from those of kept sets."""


class Subject:
    """One process with a problem's reference in it."""

    def __init__(self, bench: Bench, problem: Problem, *, secret: int) -> None:
        """Import and construct the reference; equal secrets construct with equal seeds.

        Raises:
            ProblemError: it breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        self.reference = Reference(bench, problem, secret=secret)
        self._exchange = bench.exchange

    def draw(self, *, name: str, seed: int, state: int) -> JudgedSet:
        """Return what get_inputs() gives under a seed, its outputs still to be filled in.

        Raises:
            ProblemError: it raises, returns something else, or does not fit.
        """
        tree, tensors = self.reference.draw(seed=seed)
        for tensor in tensors:
            tensor.seal()
        return JudgedSet(name=name, state=state, seed=seed, tree=tree, tensors=tensors, checksum=0)

    def judge(self, judged: JudgedSet) -> None:
        """Fill in what the reference gives on an input set, in both precisions.

        Raises:
            ProblemError: it fails on it, or gives no tensor.
        """
        try:
            self.reference.run(judged, number=SCRATCH_SET)
            self._unbind()
        except (ChildFailed, MemoryError) as error:
            raise self.reference.fault(error) from None

    def load(self, state: State) -> None:
        """Load weights, all of them or some.

        Raises:
            ProblemError: the module does not take its own state.
        """
        self.reference.load(state)

    def outputs(
        self,
        judged: JudgedSet,
        *,
        tensors: Sequence[Shareable] | None = None,
        seed: int | None = None,
        state: State,
    ) -> object | None:
        """Return what one call gives, or None where the reference raises on it.

        Args:
            judged: the input set; the arguments that are no tensors, and the seed, are its own.
            tensors: in the place of its tensors, in their order.
            seed: in the place of its own.
            state: what to load into a new process, where this call ends the old one.

        Raises:
            ProblemError: it does not end in time, does not fit, or does not come up again.
        """
        answer = self._call(judged, tensors or judged.tensors, seed=seed, state=state)
        if answer is None:
            return None
        try:
            fetched = self.reference.child.fetch(answer, timeout_s=self.reference.limit_s)
            self._unbind()
        except (ChildFailed, MemoryError) as error:
            raise self.reference.fault(error) from None
        (tree,) = answer["trees"]
        return private(tree, fetched)

    def word(self, judged: JudgedSet, *, state: State) -> str | None:
        """Return the text that a watched reference's call gives; None where it raises.

        Raises:
            ProblemError: as `outputs`.
        """
        answer = self._call(judged, judged.tensors, seed=None, state=state)
        if answer is None:
            return None
        self._unbind()
        match answer["trees"]:
            case [{"value": str(text)}]:
                return text
        return None

    def parameters(self) -> list[str]:
        """Return the names of the state that are parameters; the others are buffers.

        Raises:
            ProblemError: the process is gone.
        """
        try:
            answer = self.reference.child.ask("describe_state", timeout_s=self.reference.limit_s)
        except ChildFailed as error:
            raise self.reference.fault(error) from None
        return [name for name, _, _, is_parameter in answer["state"] if is_parameter]

    def exported(self) -> dict[str, torch.Tensor]:
        """Return the module's state as it is now, in private memory.

        Raises:
            ProblemError: it cannot be fetched.
        """
        reference = self.reference
        try:
            made = {
                entry.name: new_tensor(
                    spec_from_json([list(entry.shape), entry.dtype]), place=self._exchange
                )
                for entry in reference.entries
            }
            numbers = reference.child.share(list(made.values()))
            reference.child.ask(
                "export_state",
                timeout_s=reference.limit_s,
                into=dict(zip(made, numbers, strict=True)),
            )
            reference.child.ask("unmap", timeout_s=reference.limit_s, numbers=numbers)
        except (ChildFailed, MemoryError) as error:
            raise reference.fault(error) from None
        values = {name: shared.tensor.clone() for name, shared in made.items()}
        for shared in made.values():
            shared.close()
        return values

    def end(self) -> None:
        """End the process."""
        self.reference.end()

    def _call(
        self,
        judged: JudgedSet,
        tensors: Sequence[Shareable],
        *,
        seed: int | None,
        state: State,
    ) -> dict[str, Any] | None:
        child, limit_s = self.reference.child, self.reference.limit_s
        try:
            numbers = child.share(tensors)
            child.ask(
                "bind", timeout_s=limit_s, number=SCRATCH_SET, tree=renumber(judged.tree, numbers)
            )
            child.ask("unmap", timeout_s=limit_s, numbers=numbers)
            return child.ask(
                "call",
                timeout_s=limit_s,
                sets=[SCRATCH_SET],
                seeds=[judged.seed if seed is None else seed],
                into=[],
            )
        except ChildFailed as error:
            if error.how == "timed_out":
                raise self.reference.fault(error) from None
            # A device-side assert spoils the context of every later call.
            if error.how == "died" or "CUDA error" in error.log:
                self.reference.restart(state, [])
            return None

    def _unbind(self) -> None:
        self.reference.child.ask("unbind", timeout_s=self.reference.limit_s, numbers=[SCRATCH_SET])


def with_one(state: State, name: str, tensor: torch.Tensor) -> State:
    """Return a state of one entry, to be loaded over the others.

    Raises:
        MemoryError: it does not fit.
    """
    shared = state[name].like()
    shared.tensor.copy_(tensor)
    return {name: shared.seal()}


def copies(judged: JudgedSet) -> list[Shareable]:
    """Return an input set's tensors, copied, to be changed.

    Raises:
        MemoryError: they do not fit.
    """
    made = [each.like() for each in judged.tensors]
    for copy, each in zip(made, judged.tensors, strict=True):
        copy.tensor.copy_(each.tensor)
    return made
