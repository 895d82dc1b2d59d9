"""The hidden input sets of a problem: drawn by family and trial, with the reference's outputs.

A family on which the reference itself raises or is not finite lies outside the problem's contract;
it is left out, and every verdict says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from kopt.actors.child.tensor_spec import Shareable
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.exchange import available_in
from kopt.actors.supervisor.inputs import JudgedSet, Recipe, draw_content
from kopt.actors.supervisor.outputs import output_bytes
from kopt.actors.supervisor.reference import Drawn, Reference, State
from kopt.actors.supervisor.settings import Bench
from kopt.actors.verify.compare import flatten
from kopt.actors.verify.families import FamilyName, FamilyPlan, finite, plan_families
from kopt.errors import ProblemError
from kopt.evaluation import Check
from kopt.identity import derived_seed
from kopt.verdict import last_line

HELD_SHARE = 0.25
"""Of the memory that is available where tensors are exchanged when a session opens, for its input
sets with the outputs of the reference; those beyond it are made again for each candidate."""
LARGE_BYTES = 256 << 20
"""Input sets above this are drawn for the first trial only, to bound memory and time."""


CASE_FAMILIES: tuple[FamilyName, ...] = ("own", "signed_normal")
"""What is drawn of input cases beside the first: shapes matter there, values were seen to."""


@dataclass(slots=True)
class DrawnSets:
    """What was drawn."""

    states: list[State]
    """Weights as constructed and, unless the reference is not finite with them, randomised."""
    sets: list[JudgedSet] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    """What was assumed or left out."""
    bases: list[Shareable] = field(default_factory=list)
    """What sets that are not held are drawn from."""
    held_bytes: int = 0
    """Of the sets that are."""
    budget_bytes: int = 0
    """Of the same, at most, but for those that are always held."""


def draw_sets(bench: Bench, reference: Reference, states: list[State], *, secret: int) -> DrawnSets:
    """Draw every input set; the reference is left with the last state's weights.

    The weights as constructed see the problem's own inputs once; all else is judged with the
    randomised ones, where no default hides a missing operation.

    Raises:
        ProblemError: the reference fails, or is not finite, on its own inputs.
    """
    drawn = DrawnSets(states, budget_bytes=int(HELD_SHARE * available_in(bench.exchange)))
    for trial in range(bench.config.trials):
        first, *cases = reference.draw_all(seed=derived_seed(secret, "inputs", trial) % (1 << 31))
        try:
            if trial and sum(each.spec.num_bytes for each in first.tensors) > LARGE_BYTES:
                drawn.checks.append(_note("trials", "large inputs: one trial"))
                break
            _draw_trial(reference, drawn, first, trial=trial, secret=secret)
            for number, case in enumerate(cases, start=1):
                _draw_case(reference, drawn, case, number=number, trial=trial, secret=secret)
        finally:
            tensors = [tensor for made in (first, *cases) for tensor in made.tensors]
            if all(judged.is_held for judged in drawn.sets):
                for each in tensors:
                    each.close()
            else:
                drawn.bases += tensors
    released = [judged.name for judged in drawn.sets if not judged.is_held]
    if released:
        detail = f"drawn anew for each candidate, to bound memory: {', '.join(released)}"
        drawn.checks.append(_note("memory", detail))
    if reference.no_float64:
        drawn.checks.append(_note("float64", f"not used: {reference.no_float64}"))
    return drawn


def _draw_trial(
    reference: Reference,
    drawn: DrawnSets,
    first: Drawn,
    *,
    trial: int,
    secret: int,
) -> None:
    own = _base(first)
    plan = plan_families(own.arguments())
    if trial == 0:
        drawn.checks += [_note("inputs", note) for note in plan.notes]
        reference.load(drawn.states[0])
        failed = _draw_one(reference, drawn, own, plan, "own", trial=0, state=0, secret=secret)
        if failed is not None:
            raise ProblemError(reference.problem.name, f"on its own inputs, {failed}")
    if len(drawn.states) > 1:
        reference.load(drawn.states[1])
    for family in plan.names:
        last = len(drawn.states) - 1
        if trial == 0 and last == 0 and family == "own":
            continue  # judged above, with the only weights there are
        why = _draw_one(reference, drawn, own, plan, family, trial=trial, state=last, secret=secret)
        if why is None:
            continue
        if family == "own" and trial == 0 and last == 1:
            drawn.checks.append(_note("weights:randomised", f"left out: {why}"))
            for tensor in drawn.states.pop().values():
                tensor.close()
            reference.load(drawn.states[0])
        elif family == "own":
            raise ProblemError(reference.problem.name, f"on its own inputs, {why}")
        else:
            drawn.checks.append(_note(f"family:{family}", f"left out: {why}"))


def _draw_case(
    reference: Reference,
    drawn: DrawnSets,
    case: Drawn,
    *,
    number: int,
    trial: int,
    secret: int,
) -> None:
    """Add the sets of one more list of arguments: its own values, and signed ones.

    Raises:
        ProblemError: the reference fails on its own values, or memory is full.
    """
    own = _base(case, case=number)
    plan = plan_families(own.arguments())
    last = len(drawn.states) - 1
    for family in (name for name in CASE_FAMILIES if name in plan.names):
        why = _draw_one(reference, drawn, own, plan, family, trial=trial, state=last, secret=secret)
        if why is not None and family == "own":
            raise ProblemError(reference.problem.name, f"on input case {number}, {why}")
        if why is not None:
            drawn.checks.append(_note(f"family:case{number}:{family}", f"left out: {why}"))


def _base(made: Drawn, *, case: int = 0) -> JudgedSet:
    return JudgedSet(
        name="base", case=case, state=0, seed=0, tree=made.tree, tensors=made.tensors, checksum=0
    )


def _draw_one(
    reference: Reference,
    drawn: DrawnSets,
    own: JudgedSet,
    plan: FamilyPlan,
    family: FamilyName,
    *,
    trial: int,
    state: int,
    secret: int,
) -> str | None:
    """Add one input set, or return why the reference cannot be judged on it.

    Raises:
        ProblemError: the reference does not come up again, or memory is full.
    """
    judged = JudgedSet(
        name=f"{family}#{trial}" if own.case == 0 else f"case{own.case}:{family}#{trial}",
        case=own.case,
        state=state,
        seed=derived_seed(secret, "call", family, trial, state, own.case) % (1 << 31),
        tree=own.tree,
        tensors=[],
        checksum=0,
    )
    number = len(drawn.sets)
    recipe = Recipe(own, plan, family, derived_seed(secret, family, trial, state, own.case))
    try:
        draw_content(judged, recipe)
        reference.run(judged, number=number)
        if not judged.is_own:  # what is not timed is not kept on the device
            reference.child.ask("unbind", timeout_s=reference.limit_s, numbers=[number])
    except MemoryError as error:
        raise reference.fault(error) from None
    except ChildFailed as error:
        judged.close()
        if error.how == "timed_out":
            raise reference.fault(error) from None
        # A device-side assert spoils the context of every later call.
        if error.how == "died" or "CUDA error" in error.log:
            reference.restart(drawn.states[state], drawn.sets)
        return f"the reference fails: {last_line(error.log)}"
    if not finite(_floats(judged)):
        judged.close()
        return "the reference's output is not finite"
    _hold_or_release(drawn, judged, recipe)
    drawn.sets.append(judged)
    return None


def _hold_or_release(drawn: DrawnSets, judged: JudgedSet, recipe: Recipe) -> None:
    """Keep a set's content in memory, or let it go, to be made again when it is needed."""
    size = sum(each.spec.num_bytes for each in judged.tensors)
    size += output_bytes(judged.outputs) + output_bytes(judged.outputs64)
    if not judged.is_own and drawn.held_bytes + size > drawn.budget_bytes:
        judged.recipe = recipe
        judged.close()
    else:
        drawn.held_bytes += size


def _floats(judged: JudgedSet) -> list[torch.Tensor]:
    return [
        leaf
        for outputs in (judged.outputs, judged.outputs64)
        for _, leaf in flatten(outputs)
        if isinstance(leaf, torch.Tensor)
    ]


def _note(name: str, detail: str) -> Check:
    return Check(name=name, passed=True, detail=detail)
