"""A model taken apart: compiled, its launches grouped, each group a problem that was tried.

Every problem's reference is run on what its kernels were really given, under two seeds, and its
results are held against the kernels' own: what disagrees is no problem, and stays as it was made
(KernelOPT App. B: synthesis at 1e-4 on two seeds).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import torch
from torch import nn

from kopt.actors.compiled.capture import Captured, Piece, capture, run_again
from kopt.actors.compiled.fragments import NotCut, cut
from kopt.actors.compiled.grouping import grouped, with_shares
from kopt.actors.compiled.obstacles import Obstacle, obstacle_of
from kopt.actors.compiled.problem_file import identity_of, problem_source
from kopt.actors.compiled.recipes import make_recipe
from kopt.actors.compiled.shims import (
    Seen,
    call_time_us,
    launch_times_us,
    replaced,
    values_of_launches,
)
from kopt.actors.compiled.trial import tried
from kopt.actors.rewriter.reference import first_line
from kopt.compiled.groups import Group
from kopt.compiled.recipe import Recipe
from kopt.compiled.record import Apart, KernelNote, LibraryCall, SubKernel
from kopt.compiled.rewire import Layout
from kopt.compiled.wishes import Wish

REPEATS = 15
"""Timed calls; fewer where they take longer than a few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model that is to be taken apart."""

    name: str
    file: ModuleType
    """The module that defines it."""
    model: nn.Module
    given: tuple[Any, ...]
    """Forward's arguments."""
    again: tuple[Any, ...]
    """The same of another seed."""


def take_apart(
    subject: Subject,
    *,
    max_autotune: bool = False,
    merge: bool = True,
    wishes: Sequence[Wish] = (),
) -> Apart:
    """Compile a model and make problems of what can be improved.

    Args:
        subject: the model.
        max_autotune: see `capture`.
        merge: whether launches are merged for speed's sake (`make_groups`).
        wishes: what a model decided of the choices that an earlier call found.

    Returns:
        What was found; with a cause where there is nothing to search.
    """
    began_s = time.monotonic()
    bare = Apart(model=subject.name, torch=str(torch.__version__))
    try:
        captured = capture(subject.model, subject.given, max_autotune=max_autotune)
    except Exception as error:  # noqa: BLE001 - whatever a compiler raises is the outcome
        return replace(bare, cause="no_compile", reason=first_line(error))
    compile_s = time.monotonic() - began_s
    began_s = time.monotonic()
    bare = replace(bare, compile_s=compile_s, pieces=len(captured.pieces), breaks=captured.breaks)
    bare = replace(
        bare,
        library_calls=tuple(
            LibraryCall(name=step.name, text=step.text)
            for piece in captured.pieces
            for step in piece.code.library_calls
        ),
    )
    obstacle = obstacle_of(captured)
    if obstacle is not None:
        return replace(
            bare,
            cause=obstacle.cause,
            reason=obstacle.reason,
            kernels=tuple(_notes(captured.pieces, {}, 0.0)),
        )
    try:
        recipe = make_recipe(captured, file=subject.file, given=subject.given)
    except Obstacle as found:
        return replace(bare, cause=found.cause, reason=found.reason)
    apart = _cut_all(bare, subject, captured, recipe, merge=merge, wishes=wishes)
    if not apart.problems:
        apart = replace(
            apart, cause="nothing_cut", reason=f"no kernel can be cut out: {_why_kept(apart)}"
        )
    return replace(apart, cut_s=time.monotonic() - began_s)


def _cut_all(
    bare: Apart,
    subject: Subject,
    captured: Captured,
    recipe: Recipe,
    *,
    merge: bool,
    wishes: Sequence[Wish],
) -> Apart:
    (piece,) = captured.pieces
    groups, choices = grouped(piece, merge=merge, wishes=wishes)
    reads = {value for group in groups for value in group.reads}
    writes = {value for group in groups for value in group.results}
    seen = [values_of_launches(piece, reads=reads, writes=writes)]
    times_us, call_us = launch_times_us(piece, repeats=REPEATS)
    is_identical, restitched_us = _restitched(piece)
    run_again(captured, subject.again)
    seen.append(values_of_launches(piece, reads=reads, writes=writes))
    problems: dict[str, str] = {}
    known: dict[str, str] = {}
    found = []
    for group in groups:
        time_us = sum(times_us[place] for place in group.places)
        share = min(1.0, time_us / call_us) if call_us else 0.0
        sub = SubKernel(name=group.name, group=group, time_us=time_us, share=share)
        try:
            fragment = cut(piece, group, same_as=_copies(piece, group, seen))
            source = problem_source(fragment, seen[0].read)
            error = tried(source, fragment, seen)
        except NotCut as kept:
            found.append(replace(sub, kept=kept.reason))
            continue
        identity = identity_of(source, [seen[0].read[value] for value in fragment.inputs])
        name = known.setdefault(identity, f"{subject.name}/{_unused(group.name, problems)}")
        problems.setdefault(name, source)
        found.append(
            replace(
                sub,
                operations=fragment.operations,
                inputs=fragment.inputs,
                problem=name,
                error=error,
            )
        )
    return replace(
        bare,
        recipe=recipe,
        layouts={
            value: Layout(size=piece.buffers[value].size, stride=piece.buffers[value].stride)
            for value in sorted(reads | writes)
            if value in piece.buffers
        },
        kernels=tuple(_notes(captured.pieces, times_us, call_us)),
        subkernels=tuple(found),
        choices=tuple(with_shares(each, times_us, call_us) for each in choices),
        problems=problems,
        changed=tuple(_changed(piece, recipe)),
        call_us=call_us,
        restitched_us=restitched_us,
        is_identical=is_identical,
    )


def _copies(piece: Piece, group: Group, seen: Sequence[Seen]) -> dict[str, str]:
    """Results that are no operation of the model, and the read whose value each has every time."""
    found: dict[str, str] = {}
    for value in group.results:
        buffer = piece.buffers.get(value)
        if buffer is None or buffer.origin is not None:
            continue
        for read in group.reads:
            if all(_equal(s.written[value], s.read[read]) for s in seen):
                found[value] = read
                break
    return found


def _equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.dtype == right.dtype and torch.equal(left, right)


def restitched_bits(piece: Piece) -> bool:
    """Put every original kernel in its own place, and return whether the bits stay.

    Args:
        piece: with the arguments of an earlier call; what a call changes of them is as a call
            leaves it.
    """
    written = {write.variable for s in piece.code.steps for write in s.writes if write.of_caller}
    changed = [
        held
        for name, held in zip(piece.code.arguments, piece.arguments, strict=True)
        if name in written
    ]
    before = [held.clone() for held in changed]
    with torch.no_grad():
        plain = [*piece.call(list(piece.arguments)), *(held.clone() for held in changed)]
        for held, kept in zip(changed, before, strict=True):
            held.copy_(kept)
        with replaced(piece, {}):
            again = [*piece.call(list(piece.arguments)), *changed]
            return all(map(_same_bits, plain, again))


def _restitched(piece: Piece) -> tuple[bool, float]:
    """Whether the bits stay with every kernel in its own place, and what a call then takes."""
    same = restitched_bits(piece)
    with torch.no_grad(), replaced(piece, {}):
        return same, call_time_us(piece.call, piece.arguments, repeats=REPEATS)


def _same_bits(left: object, right: object) -> bool:
    if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
        return left == right
    return torch.equal(_bytes(left), _bytes(right))


def _bytes(held: torch.Tensor) -> torch.Tensor:
    return held.contiguous().reshape(-1).view(torch.uint8)


def _notes(
    pieces: Sequence[Piece], times_us: Mapping[int, float], call_us: float
) -> list[KernelNote]:
    notes = []
    for piece in pieces:
        for kernel in piece.code.kernels.values():
            places = [step.place for step in piece.code.launches if step.name == kernel.name]
            took_us = sum(times_us.get(place, 0.0) for place in places)
            notes.append(
                KernelNote(
                    name=kernel.name,
                    language=kernel.language,
                    kind=kernel.kind,
                    launches=len(places),
                    share=min(1.0, took_us / call_us) if call_us else 0.0,
                )
            )
    return notes


def _changed(piece: Piece, recipe: Recipe) -> list[str]:
    owners = dict(zip(piece.code.arguments, recipe.arguments, strict=True))
    names = dict.fromkeys(
        write.variable for step in piece.code.steps for write in step.writes if write.of_caller
    )
    return [
        ".".join(filter(None, (owners[n].module, owners[n].name))) or f"argument {owners[n].path}"
        for n in names
        if n in owners
    ]


def _unused(stem: str, taken: Mapping[str, str]) -> str:
    names = {name.rpartition("/")[2] for name in taken}
    name, number = stem, 1
    while name in names:
        number += 1
        name = f"{stem}_{number}"
    return name


def _why_kept(apart: Apart) -> str:
    return "; ".join(dict.fromkeys(sub.kept for sub in apart.subkernels if sub.kept))
