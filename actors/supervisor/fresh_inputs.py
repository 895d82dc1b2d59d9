"""Inputs of a problem's own kind that no candidate was ever given, drawn where they are needed."""

from __future__ import annotations

from kopt.actors.supervisor.inputs import JudgedSet, checksum
from kopt.actors.supervisor.session import Session


def draw_fresh(session: Session, *, secret: int, name: str) -> JudgedSet:
    """Draw one input set, to be judged with the session's last weights; the caller closes it.

    Args:
        session: of the problem.
        secret: its seed comes from.
        name: in what is said of it.

    Raises:
        ProblemError: the reference fails.
    """
    seed = secret % (1 << 31)
    tree, tensors = session.reference.draw(seed=seed)
    return JudgedSet(
        name=name,
        state=len(session.states) - 1,
        seed=seed,
        tree=tree,
        tensors=[each.seal() for each in tensors],
        checksum=checksum([each.tensor for each in tensors]),
    )
