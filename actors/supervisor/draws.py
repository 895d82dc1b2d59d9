"""The hidden input sets of a problem: drawn by family and trial, with the reference's outputs.

A family on which the reference itself raises or is not finite lies outside the problem's contract;
it is left out, and every verdict says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from kopt.actors.child.memory import SharedTensor
from kopt.actors.child.plain import Tree
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.inputs import JudgedSet, checksum
from kopt.actors.supervisor.reference import Reference, State
from kopt.actors.supervisor.settings import Bench
from kopt.actors.verify.compare import flatten
from kopt.actors.verify.families import FamilyName, FamilyPlan, finite, make_family, plan_families
from kopt.errors import ProblemError
from kopt.evaluation import Check
from kopt.identity import derived_seed
from kopt.verdict import last_line

LARGE_BYTES = 256 << 20
"""Input sets above this are drawn for the first trial only, to bound memory and time."""


@dataclass(slots=True)
class Drawn:
    """What was drawn."""

    states: list[State]
    """Weights as constructed and, unless the reference is not finite with them, randomised."""
    sets: list[JudgedSet] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    """What was assumed or left out."""


def draw_sets(bench: Bench, reference: Reference, states: list[State], *, secret: int) -> Drawn:
    """Draw every input set; the reference is left with the last state's weights.

    The weights as constructed see the problem's own inputs once; all else is judged with the
    randomised ones, where no default hides a missing operation.

    Raises:
        ProblemError: the reference fails, or is not finite, on its own inputs.
    """
    drawn = Drawn(states)
    for trial in range(bench.config.trials):
        tree, base = reference.draw(seed=derived_seed(secret, "inputs", trial) % (1 << 31))
        try:
            if trial and sum(each.spec.num_bytes for each in base) > LARGE_BYTES:
                drawn.checks.append(_note("trials", "large inputs: one trial"))
                break
            _draw_trial(reference, drawn, tree, base, trial=trial, secret=secret)
        finally:
            for each in base:
                each.close()
    if reference.no_float64:
        drawn.checks.append(_note("float64", f"not used: {reference.no_float64}"))
    return drawn


def _draw_trial(
    reference: Reference,
    drawn: Drawn,
    tree: Tree,
    base: list[SharedTensor],
    *,
    trial: int,
    secret: int,
) -> None:
    own = JudgedSet(name="base", state=0, seed=0, tree=tree, tensors=base, checksum=0)
    plan = plan_families(own.arguments())
    if trial == 0:
        drawn.checks += [_note("inputs", note) for note in plan.notes]
        reference.load(drawn.states[0])
        first = _draw_one(reference, drawn, own, plan, "own", trial=0, state=0, secret=secret)
        if first is not None:
            raise ProblemError(reference.problem.name, f"on its own inputs, {first}")
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


def _draw_one(
    reference: Reference,
    drawn: Drawn,
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
        name=f"{family}#{trial}",
        state=state,
        seed=derived_seed(secret, "call", family, trial, state) % (1 << 31),
        tree=own.tree,
        tensors=[],
        checksum=0,
    )
    try:
        judged.tensors = [SharedTensor(each.spec) for each in own.tensors]
        make_family(
            own.arguments(),
            plan=plan,
            name=family,
            seed=derived_seed(secret, family, trial, state),
            into=judged.arguments(),
        )
        judged.checksum = checksum([each.seal().tensor for each in judged.tensors])
        reference.run(judged, number=len(drawn.sets))
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
    drawn.sets.append(judged)
    return None


def _floats(judged: JudgedSet) -> list[torch.Tensor]:
    return [
        leaf
        for outputs in (judged.outputs, judged.outputs64)
        for _, leaf in flatten(outputs)
        if isinstance(leaf, torch.Tensor)
    ]


def _note(name: str, detail: str) -> Check:
    return Check(name=name, passed=True, detail=detail)
