"""The groups of a captured model, and the choices that a model may decide, with their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kopt.actors.compiled.capture import Piece
from kopt.actors.compiled.fragments import NotCut, cut
from kopt.compiled.choices import Choice, Side, Value, choices_of
from kopt.compiled.groups import Group, ruled_parts
from kopt.compiled.wishes import Wish, decided, regrouped


def grouped(
    piece: Piece, *, merge: bool, wishes: Sequence[Wish]
) -> tuple[list[Group], list[Choice]]:
    """Return the groups of a piece, and where they could be others.

    Args:
        piece: a captured model.
        merge: whether launches are merged for speed's sake; where not, there is no choice.
        wishes: what a model decided of the choices.
    """
    code = piece.code
    named = {name for name, buffer in piece.buffers.items() if buffer.origin is not None}
    sizes = {name: buffer.num_bytes for name, buffer in piece.buffers.items()}
    parts = ruled_parts(code, num_bytes=sizes, named=named, merge=merge)
    values = {
        name: Value(
            name=name,
            dtype=str(buffer.dtype).removeprefix("torch."),
            size=buffer.size,
            num_bytes=buffer.num_bytes,
        )
        for name, buffer in piece.buffers.items()
    }
    choices: list[Choice] = []
    if merge:
        choices = choices_of(
            code,
            parts,
            values=values,
            named=named,
            operations_of=lambda group: _operations(piece, group),
        )
    choices, _ = decided(choices, wishes)
    return regrouped(code, parts, choices)


def with_shares(choice: Choice, times_us: Mapping[int, float], call_us: float) -> Choice:
    """Return a choice whose sides say what they take of the model's time.

    Args:
        choice: any.
        times_us: of each launch by its place.
        call_us: of the whole call; 0 where it was not measured.
    """

    def timed(side: Side) -> Side:
        took_us = sum(times_us.get(place, 0.0) for place in side.places)
        return replace(side, share=min(1.0, took_us / call_us) if call_us else None)

    return replace(choice, before=timed(choice.before), behind=timed(choice.behind))


def _operations(piece: Piece, group: Group) -> tuple[str, ...] | None:
    try:
        return cut(piece, group).operations
    except NotCut:
        return None
