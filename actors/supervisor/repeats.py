"""Many calls, their outputs all alive: whether equal ones agree bit for bit, or all are right.

A candidate with a race is right most of the time, one that counts its calls is wrong in some of
them alone, and one that returns a few buffers in turn is right until one comes again: a few
comparisons find none of them. Two inputs come in an order that nobody knows. Atomics in another
order are honest; what they change lies within the ladder, and the report says that they do.
Source: DESIGN §5.2; exploits 15, 16, 21, F11.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import torch

from kopt.actors.child.tensor_spec import Shareable
from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.actors.supervisor.outputs import compare, output_bytes, poisoned
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Trail
from kopt.actors.verify.compare import flatten
from kopt.identity import derived_seed

CHECK = "repeats"
MAX_CALLS = 32
"""With the calls that were judged before, enough for one in twenty that is wrong."""
MAX_TENSORS = 200
"""Of their outputs together: each is a buffer of its own."""
MAX_BYTES = 64 << 20
"""Of their outputs together, which are alive at once; two calls are made at any size."""
MAX_S = 1.5
"""Of a device's time, by what the quickest of the first calls took. On a busy host that is many
times what it is on a calm one, and no fewer calls may be made there."""


def check_repeats(
    bench: Bench,
    session: Session,
    child: Child,
    sets: Mapping[int, JudgedSet],
    *,
    call_us: float,
    trail: Trail,
) -> None:
    """Make many calls on two inputs, and judge those that differ from the first of their input.

    Args:
        bench: whose ladder decides.
        session: of the problem.
        child: of the candidate, with the session's last weights and the sets bound.
        sets: the session's two, by their numbers.
        call_us: about what a call takes, handed over.
        trail: of the evaluation.

    Raises:
        Judged: one of them is wrong.
        ChildFailed: the candidate's child fails.
    """
    limit_s = bench.config.timeouts.correctness_s
    order = _order(bench, session, sets, call_us=call_us)
    groups = [poisoned(sets[number].outputs) for number in order]
    numbers = child.share([each for group in groups for each in group])
    rest = iter(numbers)
    answer = child.ask(
        "call",
        timeout_s=limit_s * len(order),
        sets=order,
        seeds=[sets[number].seed for number in order],
        into=[[next(rest) for _ in group] for group in groups],
    )
    child.ask("unmap", timeout_s=limit_s, numbers=numbers)
    firsts = {number: order.index(number) for number in order}
    other = [
        at for at, number in enumerate(order) if not _same_bits(groups[firsts[number]], groups[at])
    ]
    for at in sorted({*firsts.values(), *other}):
        compare(bench, sets[order[at]], answer, at, groups[at], name=CHECK, trail=trail)
    if other:
        detail = f"{len(other)} of {len(order)} calls differ in bits from others on their input"
        trail.passed(CHECK, f"{detail}, and all are right")
    else:
        trail.passed(CHECK, f"{len(order)} calls on {len(firsts)} inputs agree bit for bit")


def _order(
    bench: Bench, session: Session, sets: Mapping[int, JudgedSet], *, call_us: float
) -> list[int]:
    """Return the input set of each call: two of them, or the only one there is, at random."""
    numbers = session.two_sets()
    outputs = sets[numbers[0]].outputs
    tensors = sum(isinstance(leaf, torch.Tensor) for _, leaf in flatten(outputs))
    calls = min(
        MAX_CALLS,
        MAX_TENSORS // max(tensors, 1),
        MAX_BYTES // max(output_bytes(outputs), 1),
        int(MAX_S * 1e6 / max(call_us, 1.0)),
    )
    rng = random.Random(derived_seed(bench.config.secret, session.problem.problem_id, CHECK))
    return [*numbers, *(rng.choice(numbers) for _ in range(calls - 2))]


def _same_bits(mine: Sequence[Shareable], others: Sequence[Shareable]) -> bool:
    return all(
        torch.equal(_bits(one), _bits(other)) for one, other in zip(mine, others, strict=True)
    )


def _bits(shared: Shareable) -> torch.Tensor:
    return shared.tensor.reshape(-1).view(torch.uint8)
