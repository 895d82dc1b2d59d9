"""A problem's session on one device: everything of it that does not depend on a candidate.

The reference's child with its weights, the input sets with the reference's outputs on them, and
the baselines. Kept while candidates of the problem come, and let go with its last use.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from kopt.actors.supervisor.baselines import Baselines
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.actors.supervisor.reference import Reference, State, draw_family
from kopt.actors.supervisor.settings import Bench
from kopt.actors.verify.compare import constant_output, flatten
from kopt.actors.verify.families import finite, plan_families
from kopt.errors import ProblemError
from kopt.evaluation import Check
from kopt.identity import derived_seed
from kopt.problem import Problem
from kopt.verdict import last_line

LARGE_BYTES = 256 << 20
"""Input sets above this are drawn for the first trial only: memory and time, not rigour, end."""


@dataclass(slots=True)
class Session:
    """What is known of a problem before its first candidate."""

    problem: Problem
    reference: Reference
    states: list[State]
    sets: list[JudgedSet]
    """In the order judged; the first has the weights as constructed."""
    baselines: Baselines
    checks: list[Check] = field(default_factory=list)
    """What was assumed or left out, for every verdict."""
    degenerate: bool = False

    def timed(self) -> list[int]:
        """Return the numbers of the sets that are timed: the problem's own, final weights."""
        last = len(self.states) - 1
        own = [
            number
            for number, judged in enumerate(self.sets)
            if judged.name.startswith("own") and judged.state == last
        ]
        return own or [0]

    def run_reference(self, judged: JudgedSet) -> None:
        """Fill in what the reference gives on one more input set.

        Raises:
            ProblemError: it fails.
        """
        number = len(self.sets)
        try:
            self.reference.run(judged, number=number)
            self.reference.child.ask("unbind", timeout_s=self.reference.limit_s, numbers=[number])
        except (ChildFailed, MemoryError) as error:
            raise self.reference.fault(error) from None

    def close(self) -> None:
        """End the children and let the memory go."""
        self.baselines.close()
        self.reference.end()
        for judged in self.sets:
            judged.close()
        for state in self.states:
            for tensor in state.values():
                tensor.close()


def open_session(bench: Bench, problem: Problem) -> Session:
    """Load a problem, draw its hidden inputs, and run its reference on them.

    Raises:
        ProblemError: the reference breaks its contract or cannot run here.
        WorkerLost: the zygote is gone.
    """
    secret = derived_seed(bench.config.secret, problem.problem_id, "session")
    reference = Reference(bench, problem, secret=secret)
    try:
        states = reference.states(seed=derived_seed(secret, "weights"))
        sets, checks = _draw_sets(bench, reference, states, secret=secret)
        degenerate = _is_degenerate(sets) or bool(problem.degenerate)
        session = Session(
            problem, reference, states, sets, Baselines(bench, problem), checks, degenerate
        )
        session.baselines.begin(session.reference, session.states[-1], sets, session.timed())
    except BaseException:
        reference.end()
        raise
    return session


def _draw_sets(
    bench: Bench, reference: Reference, states: list[State], *, secret: int
) -> tuple[list[JudgedSet], list[Check]]:
    sets: list[JudgedSet] = []
    checks: list[Check] = []
    last = len(states) - 1
    for trial in range(bench.config.trials):
        tree, base = reference.draw(seed=derived_seed(secret, "inputs", trial) % (1 << 31))
        num_bytes = sum(each.spec.num_bytes for each in base)
        if trial and num_bytes > LARGE_BYTES:
            checks.append(Check(name="trials", passed=True, detail="large inputs: one trial"))
            break
        drawn = JudgedSet(name="base", state=0, seed=0, tree=tree, tensors=base, checksum=0)
        plan = plan_families(drawn.arguments())
        if trial == 0:
            checks += [Check(name="inputs", passed=True, detail=note) for note in plan.notes]
        # The weights as constructed see the problem's own inputs once; all else is judged with
        # the randomised ones, where no default hides a missing operation.
        wanted = [(family, last) for family in plan.names]
        if trial == 0 and last:
            wanted.insert(0, ("own", 0))
        loaded = None
        for family, state in wanted:
            if state != loaded:
                reference.load(states[state])
                loaded = state
            try:
                judged = draw_family(
                    tree,
                    base,
                    plan=plan,
                    family=family,
                    trial=trial,
                    state=state,
                    seed=derived_seed(secret, family, trial, state),
                )
                reference.run(judged, number=len(sets))
            except (ChildFailed, MemoryError) as error:
                if family == "own" or (isinstance(error, ChildFailed) and error.how != "raised"):
                    raise reference.fault(error) from None
                checks.append(_left_out(family, f"the reference raises: {last_line(str(error))}"))
                continue
            if not finite(_floats(judged)):
                if family == "own":
                    raise ProblemError(
                        reference.problem.name,
                        "the reference's output is not finite on its own inputs",
                    )
                checks.append(_left_out(family, "the reference is not finite on it"))
                judged.close()
                continue
            sets.append(judged)
        for each in base:
            each.close()
    return sets, checks


def _left_out(family: str, why: str) -> Check:
    return Check(name=f"family:{family}", passed=True, detail=f"left out: {why}")


def _floats(judged: JudgedSet) -> list[torch.Tensor]:
    return [
        leaf
        for outputs in (judged.outputs, judged.outputs64)
        for _, leaf in flatten(outputs)
        if isinstance(leaf, torch.Tensor)
    ]


def _is_degenerate(sets: list[JudgedSet]) -> bool:
    first = [
        leaf
        for judged in sets
        for _, leaf in flatten(judged.outputs64)[:1]
        if isinstance(leaf, torch.Tensor)
    ]
    return constant_output(first)
