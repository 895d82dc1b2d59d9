"""The speed of light of a problem on this device, found at its reference."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.actors.child.depends import Share
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.actors.supervisor.outputs import output_bytes
from kopt.actors.supervisor.reference import Reference, bind
from kopt.speed_of_light import Light, Memory, Moved, speed_of_light


def problem_light(reference: Reference, judged: JudgedSet, *, number: int, seed: int) -> Light:
    """Return the figures of one timed input set; empty ones where they cannot be found.

    Args:
        reference: with the weights that are timed.
        judged: the input set, run.
        number: of the set in the reference's child.
        seed: secret.

    Raises:
        ProblemError: the reference fails.
    """
    limit_s = reference.limit_s
    try:
        bind(reference.child, judged, number=number, timeout_s=limit_s)
        shares = reference.child.ask(
            "inputs_that_matter",
            timeout_s=limit_s,
            number=number,
            seed=seed,
            has_float64=not reference.no_float64,
        )["matter"]
        moved = moved_bytes(
            [each.spec.num_bytes for each in judged.tensors],
            shares=shares,
            output_bytes=0 if judged.may_alias else output_bytes(judged.outputs),
        )
        num_bytes = (moved.input_bytes or moved.sure_bytes) + moved.output_bytes
        found = reference.child.ask("memory", timeout_s=limit_s, num_bytes=num_bytes)["memory"]
        bind(reference.child, judged, number=number, timeout_s=limit_s)
    except ChildFailed as error:
        raise reference.fault(error) from None
    return speed_of_light(moved, None if found is None else Memory(**found))


def moved_bytes(num_bytes: Sequence[int], *, shares: Sequence[Share], output_bytes: int) -> Moved:
    """Return the bytes that move.

    Args:
        num_bytes: of each input.
        shares: how much of each is read.
        output_bytes: that are written.
    """
    inputs = list(zip(num_bytes, shares, strict=True))
    read = ("surely", "likely")
    return Moved(
        sure_bytes=sum(size for size, share in inputs if share == "surely"),
        input_bytes=None
        if "unknown" in shares
        else sum(size for size, share in inputs if share in read),
        output_bytes=output_bytes,
    )
