"""Whether equal calls give equal outputs: over calls, processes and seeds, and what a call leaves.

Two processes are constructed under one seed. What differs between them is not determined by the
seed; what differs between calls of one process, its state loaded anew each time, is hidden state.
Source: exploits §E5, classes 24, 25, 52; KernelBench notes A1, C6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from kopt.actors.lint.answers import Answer, passes, unchanged
from kopt.actors.lint.reactions import listed
from kopt.actors.lint.subject import Subject
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.actors.supervisor.reference import State
from kopt.data.lint import LintRemark
from kopt.ladder import Ladder


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A second process of a problem, and what the first gave."""

    subject: Subject
    """Fresh: nothing was called in it."""
    ladder: Ladder
    state: State
    """The first process's weights as constructed."""
    own: tuple[JudgedSet, JudgedSet]
    """Two draws, with what the first process gave on them; the first was its very first call."""


def repeat_remarks(repeat: Repeat) -> Iterator[LintRemark]:
    """Yield what differs between equal calls, and what a call leaves behind.

    Raises:
        ProblemError: the reference fails on its own inputs.
    """
    subject, (first, second) = repeat.subject, repeat.own
    made = subject.exported()
    if any(not _equal(made[name], shared.tensor) for name, shared in repeat.state.items()):
        yield _nondeterministic("construction under one seed gives other weights")
    drawn = subject.draw(name="again", seed=first.seed, state=0)
    if any(
        not _equal(left.tensor, right.tensor)
        for left, right in zip(drawn.tensors, first.tensors, strict=False)
    ):
        yield _nondeterministic("get_inputs() under one seed gives other inputs")
    drawn.close()

    subject.load(repeat.state)
    fresh = subject.outputs(first, state=repeat.state)
    left_behind = subject.exported()
    again = _anew(repeat, first)
    _anew(repeat, second)
    after = _anew(repeat, first)
    if not unchanged(fresh, first):
        line = _how("an equal call in another process", fresh, first, repeat.ladder)
        yield _nondeterministic(line)
    elif not unchanged(again, first):
        line = _how("the second of two equal calls", again, first, repeat.ladder)
        yield LintRemark(tag="hidden_state", line=line)
    elif not unchanged(after, first):
        line = _how("a call after one on other inputs", after, first, repeat.ladder)
        yield LintRemark(tag="hidden_state", line=line)
    changed = [
        name
        for name, shared in repeat.state.items()
        if not _equal(left_behind[name], shared.tensor)
    ]
    if changed:
        yield LintRemark(tag="stateful", line=f"a call changes {listed(changed)}")
    other = _anew(repeat, first, seed=first.seed + 1)
    if unchanged(again, first) and not unchanged(other, first):
        line = _how("a call under another seed", other, first, repeat.ladder)
        yield LintRemark(tag="random", line=line)


def _anew(repeat: Repeat, judged: JudgedSet, *, seed: int | None = None) -> Answer | None:
    repeat.subject.load(repeat.state)
    return repeat.subject.outputs(judged, seed=seed, state=repeat.state)


def _how(what: str, found: Answer | None, first: JudgedSet, ladder: Ladder) -> str:
    if found is None:
        return f"{what} raises"
    amount = "less" if passes(found, first, ladder=ladder) else "more"
    return f"{what} differs, by {amount} than passes"


def _nondeterministic(line: str) -> LintRemark:
    return LintRemark(tag="nondeterministic", line=line)


def _equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.shape == right.shape and bool(
        ((left == right) | (left != left) & (right != right)).all()
    )
