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
from kopt.actors.supervisor.inputs import JudgedSet, Recipe, close_all, draw_content
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
EXACT_SHARE = 0.0625
"""Of the same memory, for the reference's outputs in float64 on the set that is timed."""
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
    available_bytes: int = 0
    """Of the memory where they lie, before the first was drawn."""


def draw_sets(bench: Bench, reference: Reference, states: list[State], *, secret: int) -> DrawnSets:
    """Draw every input set; the reference is left with the last state's weights.

    The weights as constructed see the problem's own inputs once; all else is judged with the
    randomised ones, where no default hides a missing operation.

    Raises:
        ProblemError: the reference fails, or is not finite, on its own inputs.
    """
    drawn = DrawnSets(states, available_bytes=available_in(bench.exchange))
    for trial in range(bench.config.trials):
        if trial and sum(each.spec.num_bytes for each in drawn.sets[0].tensors) > LARGE_BYTES:
            drawn.checks.append(_note("trials", "large inputs: one trial"))
            break
        first, *cases = reference.draw_all(seed=derived_seed(secret, "inputs", trial) % (1 << 31))
        try:
            _draw_trial(reference, drawn, first, trial=trial, secret=secret)
            for number, case in enumerate(cases, start=1):
                _draw_case(reference, drawn, case, number=number, trial=trial, secret=secret)
        finally:  # those of the first are its own set's, and live as long
            tensors = [tensor for case in cases for tensor in case.tensors]
            if all(judged.is_held for judged in drawn.sets):
                close_all(tensors)
            else:
                drawn.bases += tensors
    released = [judged.name for judged in drawn.sets if not judged.is_complete]
    if released:
        detail = f"made anew for each candidate, to bound memory: {', '.join(released)}"
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
        is_second = family == "own" and trial == 0  # of the same inputs, with other weights
        if why is None:
            if is_second:
                _let_first_go(reference, drawn)
            continue
        if is_second:
            drawn.checks.append(_note("weights:randomised", f"left out: {why}"))
            close_all(drawn.states.pop().values())
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
        reference.run(judged, number=number, keeps=judged.is_own)  # those that are timed
    except MemoryError as error:
        raise reference.fault(error) from None
    except ChildFailed as error:
        _drop(judged)
        if error.how == "timed_out":
            raise reference.fault(error) from None
        # A device-side assert spoils the context of every later call.
        if error.how == "died" or "CUDA error" in error.log:
            reference.restart(drawn.states[state], drawn.sets)
        return f"the reference fails: {last_line(error.log)}"
    if not finite(_floats(judged)):
        _drop(judged)
        return "the reference's output is not finite"
    _hold(drawn, judged, recipe)
    drawn.sets.append(judged)
    return None


def _drop(judged: JudgedSet) -> None:
    """Let a set go that is none; the inputs of an own one are another's too."""
    judged.outputs = judged.outputs64 = None
    if not judged.is_own:
        judged.close()


def _hold(drawn: DrawnSets, judged: JudgedSet, recipe: Recipe) -> None:
    """Keep what there is room for of a set; the rest is made again when it is needed."""
    exact_bytes = output_bytes(judged.outputs64)
    size = sum(each.spec.num_bytes for each in judged.tensors) + output_bytes(judged.outputs)
    if judged.is_own:
        if exact_bytes > EXACT_SHARE * drawn.available_bytes:
            judged.outputs64 = None
            exact_bytes = 0
    elif drawn.held_bytes + size + exact_bytes > HELD_SHARE * drawn.available_bytes:
        judged.recipe = recipe
        judged.close()
        return
    drawn.held_bytes += size + exact_bytes


def _let_first_go(reference: Reference, drawn: DrawnSets) -> None:
    """The set with the weights as constructed is judged once, and not timed: there is a second."""
    first = drawn.sets[0]
    reference.child.ask("unbind", timeout_s=reference.limit_s, numbers=[0])
    # Its inputs are the second's, and were counted with either.
    drawn.held_bytes -= sum(each.spec.num_bytes for each in first.tensors)
    size = output_bytes(first.outputs) + output_bytes(first.outputs64)
    if not first.is_complete or drawn.held_bytes > HELD_SHARE * drawn.available_bytes:
        first.outputs = first.outputs64 = None
        drawn.held_bytes -= size


def _floats(judged: JudgedSet) -> list[torch.Tensor]:
    return [
        leaf
        for outputs in (judged.outputs, judged.outputs64)
        for _, leaf in flatten(outputs)
        if isinstance(leaf, torch.Tensor)
    ]


def _note(name: str, detail: str) -> Check:
    return Check(name=name, passed=True, detail=detail)
