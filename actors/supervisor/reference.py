"""The reference in its child: what it is, its weights, its inputs, what it gives on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch

from kopt.actors.child.plain import Tree
from kopt.actors.child.tensor_spec import Shareable, spec_from_json
from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.actors.supervisor.exchange import let_go_in, new_tensor
from kopt.actors.supervisor.inputs import JudgedSet, close_all, private, renumber, tensor_numbers
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.two_precisions import same_function
from kopt.actors.verify.compare import flatten
from kopt.actors.verify.weights import StateEntry, randomise_parameters
from kopt.errors import ProblemError
from kopt.identity import derived_seed
from kopt.problem import Problem
from kopt.verdict import last_line

State = dict[str, Shareable]


class Drawn(NamedTuple):
    """Arguments of one call of forward."""

    tree: Tree
    """As JSON, tensors by position in `tensors`."""
    tensors: list[Shareable]


class Reference:
    """A problem's reference, loaded in a child of its own."""

    def __init__(self, bench: Bench, problem: Problem, *, secret: int) -> None:
        """Import and construct it.

        Raises:
            ProblemError: it breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        self.problem = problem
        self.limit_s = bench.config.timeouts.reference_s
        self.init_seed = derived_seed(secret, problem.problem_id, "init") % (1 << 31)
        self._bench = bench
        self.no_float64 = ""
        """Why its own precision stands in for float64; empty where float64 is used."""
        try:
            self.child, made = self._load()
        except ChildFailed as error:
            raise self.fault(error) from None
        try:
            self.arguments = made["arguments"]
            self.argument_tensors = [
                each.seal() for each in self.child.fetch(made, timeout_s=self.limit_s)
            ]
            self.entries, self._parameters = self._describe_state()
        except (ChildFailed, MemoryError) as error:
            self.child.end()
            raise self.fault(error) from None

    def restart(self, state: State, sets: list[JudgedSet]) -> None:
        """Begin again in a new child: the old one's device context is spoilt, or it died.

        Args:
            state: the weights to load.
            sets: input sets, the last one with the weights that are timed; those that are timed
                are bound, under their positions.

        Raises:
            ProblemError: it does not come up again.
        """
        self.child.end()
        try:
            self.child, _ = self._load()
            load_state(self.child, state, timeout_s=self.limit_s)
            for number, judged in enumerate(sets):
                if judged.is_own and judged.state == sets[-1].state:
                    bind(self.child, judged, number=number, timeout_s=self.limit_s)
        except ChildFailed as error:
            raise self.fault(error) from None

    def fault(self, error: ChildFailed | MemoryError) -> ProblemError:
        """Return what a failure in the reference's child says of the problem."""
        if isinstance(error, MemoryError):
            return ProblemError(self.problem.name, f"it does not fit into memory: {error}")
        if error.how == "timed_out":
            why = f"the reference's {error.stage} did not end within {error.limit_s:g} s"
        elif error.stage == "contract":
            why = last_line(error.log)
        else:
            why = f"the reference fails at {error.stage}: {last_line(error.log)}"
        return ProblemError(self.problem.name, why)

    def states(self, *, seed: int) -> list[State]:
        """Return its weights as constructed and, if there are any, a second, randomised state.

        Raises:
            ProblemError: they cannot be fetched.
        """
        try:
            made = {
                entry.name: new_tensor(
                    spec_from_json([list(entry.shape), entry.dtype]), place=self._bench.exchange
                )
                for entry in self.entries
            }
            if not made:
                return [made]
            numbers = self.child.share(list(made.values()))
            self.child.ask(
                "export_state",
                timeout_s=self.limit_s,
                into=dict(zip(made, numbers, strict=True)),
            )
            second = randomise_parameters(
                {name: shared.tensor for name, shared in made.items()},
                seed=seed,
                parameters=self._parameters,
            )
            copies = {name: shared.like() for name, shared in made.items()}
            for name, tensor in second.items():
                copies[name].tensor.copy_(tensor)
        except (ChildFailed, MemoryError) as error:
            raise self.fault(error) from None
        for state in (made, copies):
            for shared in state.values():
                shared.seal()
        return [made, copies]

    def load(self, state: State) -> None:
        """Load weights.

        Raises:
            ProblemError: the module does not take its own state.
        """
        try:
            load_state(self.child, state, timeout_s=self.limit_s)
        except ChildFailed as error:
            raise self.fault(error) from None

    def draw(self, *, seed: int) -> Drawn:
        """Return what get_inputs() gives under a seed.

        Raises:
            ProblemError: as `draw_all`.
        """
        first, *cases = self.draw_all(seed=seed)
        close_all(tensor for case in cases for tensor in case.tensors)
        return first

    def draw_all(self, *, seed: int) -> list[Drawn]:
        """Return what get_inputs() gives under a seed, and then each of get_input_cases().

        Raises:
            ProblemError: it raises, returns something else, or does not fit.
        """
        try:
            answer = self.child.ask("make_inputs", timeout_s=self.limit_s, seed=seed)
            tensors = self.child.fetch(answer, timeout_s=self.limit_s)
        except (ChildFailed, MemoryError) as error:
            raise self.fault(error) from None
        drawn = []
        for tree in answer["trees"]:
            numbers = tensor_numbers(tree)
            position = {number: at for at, number in enumerate(numbers)}
            drawn.append(Drawn(renumber(tree, position), [tensors[each] for each in numbers]))
        return drawn

    def run(self, judged: JudgedSet, *, number: int, keeps: bool = False) -> None:
        """Bind an input set and fill in what the reference gives on it, in both precisions.

        Args:
            judged: the input set.
            number: under which it is bound.
            keeps: whether it stays bound.

        Raises:
            ChildFailed: it raises on these inputs.
            MemoryError: its outputs do not fit.
            ProblemError: it gives no tensor.
        """
        self._bench.turns.breathe()
        let_go_in(self._bench.exchange)  # what the last set took
        bind(self.child, judged, number=number, timeout_s=self.limit_s)
        answer = self.child.ask(
            "call", timeout_s=self.limit_s, sets=[number], seeds=[judged.seed], into=[]
        )
        notes = answer["notes"][0]
        judged.may_alias, judged.devices = bool(notes["aliases"]), tuple(notes["devices"])
        judged.outputs = self._private(answer)
        if not any(isinstance(leaf, torch.Tensor) for _, leaf in flatten(judged.outputs)):
            raise ProblemError(self.problem.name, "forward must return a tensor, and gives none")
        judged.outputs64 = self.in_float64(judged, number=number, keeps=keeps)
        if not keeps:
            self.child.ask("unbind", timeout_s=self.limit_s, numbers=[number])

    def with_float64(self, judged: JudgedSet, *, number: int) -> JudgedSet:
        """Return a timed input set with what the reference gives in float64, which may be missing.

        Args:
            judged: the input set, run before.
            number: under which it is bound.

        Raises:
            ChildFailed: the child dies or hangs.
            MemoryError: there is no room.
        """
        if judged.is_complete:
            return judged
        return replace(judged, outputs64=self.in_float64(judged, number=number, keeps=True))

    def in_float64(self, judged: JudgedSet, *, number: int, keeps: bool) -> object:
        """Return the outputs in float64, or those at hand where it says nothing of the problem.

        That is where the module names another dtype itself and raises, or where its float64 form is
        another function, such as one that draws other random numbers.

        Args:
            judged: an input set that was run.
            number: under which the child has it bound.
            keeps: whether it stays bound; where it need not, its inputs are let go first.

        Raises:
            ChildFailed: the child dies or hangs.
            MemoryError: they do not fit.
        """
        if self.no_float64:
            return judged.outputs
        self._bench.turns.breathe()
        try:
            answer = self.child.ask(
                "call_float64",
                timeout_s=self.limit_s,
                number=number,
                seed=judged.seed,
                keeps=keeps,
            )
        except ChildFailed as error:
            if error.how != "raised" or "CUDA error" in error.log:
                raise
            self.no_float64 = f"the reference raises in float64: {last_line(error.log)}"
            return judged.outputs
        outputs64 = self._private(answer)
        if not same_function(judged.outputs, outputs64):
            self.no_float64 = "the reference computes something else in float64"
            return judged.outputs
        return outputs64

    def latency_us(self) -> float:
        """Return how long a trivial kernel takes from launch to end, in microseconds.

        Raises:
            ProblemError: the child is gone.
        """
        try:
            return float(self.child.ask("latency", timeout_s=self.limit_s)["latency_us"])
        except ChildFailed as error:
            raise self.fault(error) from None

    def end(self) -> None:
        """End the child."""
        self.child.end()

    def _load(self) -> tuple[Child, dict[str, Any]]:
        child = self._bench.child(self.problem)
        try:
            child.ask(
                "import", timeout_s=self.limit_s, source=self.problem.source, name="reference"
            )
            made = child.ask("construct_reference", timeout_s=self.limit_s, seed=self.init_seed)
        except BaseException:
            child.end()
            raise
        return child, made

    def _private(self, answer: dict[str, Any]) -> object:
        fetched = self.child.fetch(answer, timeout_s=self.limit_s)
        (tree,) = answer["trees"]
        return private(tree, fetched)

    def _describe_state(self) -> tuple[list[StateEntry], set[str]]:
        answer = self.child.ask("describe_state", timeout_s=self.limit_s)
        entries = state_entries(answer)
        return entries, {row[0] for row in answer["state"] if row[3]}


def state_entries(answer: dict[str, Any]) -> list[StateEntry]:
    """Return the entries of a child's description of its state, which may be untrusted.

    Raises:
        ChildFailed: it is no description.
    """
    try:
        entries = []
        for name, shape, dtype, _ in answer["state"]:
            spec = spec_from_json([shape, dtype])
            entries.append(StateEntry(str(name), spec.shape, spec.dtype))
    except (KeyError, TypeError, ValueError) as error:
        raise ChildFailed("died", "state", f"spoke out of turn: {error}") from None
    return entries


def load_state(
    child: Child, state: State, *, timeout_s: float, sources: dict[str, str] | None = None
) -> None:
    """Load weights into a child's module.

    Args:
        child: that has constructed its module.
        state: by the reference's names.
        timeout_s: deadline.
        sources: the child's name to the reference's; None where they are the same.

    Raises:
        ChildFailed: the module does not take them.
    """
    if not state:
        return
    names = sources if sources is not None else {name: name for name in state}
    used = sorted(set(names.values()))
    numbers = dict(zip(used, child.share([state[name] for name in used]), strict=True))
    child.ask(
        "load_state",
        timeout_s=timeout_s,
        sources={name: numbers[source] for name, source in names.items()},
    )
    child.ask("unmap", timeout_s=timeout_s, numbers=list(numbers.values()))


def bind(child: Child, judged: JudgedSet, *, number: int, timeout_s: float) -> None:
    """Give a child an input set under a number.

    Raises:
        ChildFailed: it is gone, or the inputs do not fit on its device.
    """
    numbers = child.share(judged.tensors)
    child.ask("bind", timeout_s=timeout_s, number=number, tree=renumber(judged.tree, numbers))
