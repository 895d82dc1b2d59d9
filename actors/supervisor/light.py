"""The speed of light of a problem on this device, found at its reference."""

from __future__ import annotations

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
        answer = reference.child.ask(
            "inputs_that_matter", timeout_s=limit_s, number=number, seed=seed
        )
        moved = Moved(
            input_bytes=sum(
                each.spec.num_bytes
                for each, matters in zip(judged.tensors, answer["matter"], strict=True)
                if matters
            ),
            output_bytes=0 if judged.may_alias else output_bytes(judged.outputs),
        )
        num_bytes = moved.input_bytes + moved.output_bytes
        found = reference.child.ask("memory", timeout_s=limit_s, num_bytes=num_bytes)["memory"]
        bind(reference.child, judged, number=number, timeout_s=limit_s)
    except ChildFailed as error:
        raise reference.fault(error) from None
    return speed_of_light(moved, None if found is None else Memory(**found))
