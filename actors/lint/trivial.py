"""Which trivial answers pass: on the problem's own inputs, and on the hidden ones too.

Only what passes on hidden inputs makes a problem degenerate: the others say that the problem's own
inputs are weak, and the evaluator's tell such an answer apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kopt.actors.child.tensor_spec import Shareable
from kopt.actors.lint.answers import (
    Answer,
    Maker,
    as_bfloat16,
    fitted,
    fitted_mean,
    named_tensors,
    passes,
    repeated,
    returned,
    rounded,
    stored,
    tensors_of,
    zeros,
)
from kopt.actors.lint.sampling import sampled, sampled_axes
from kopt.actors.lint.subject import Subject
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.actors.supervisor.reference import State
from kopt.actors.verify.compare import compare_outputs
from kopt.data.lint import LintRemark, LintTag
from kopt.ladder import Ladder


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What answers are tried on."""

    subject: Subject
    ladder: Ladder
    states: Sequence[State]
    """Weights as constructed and, where there are any, randomised."""
    own: tuple[JudgedSet, JudgedSet]
    """Two draws of the problem's own inputs, weights as constructed; answers are fitted on the
    first."""
    hidden: Sequence[JudgedSet]
    """The sets that the evaluator would judge on."""

    def anchors(self) -> dict[int, JudgedSet]:
        """Return, for each state, the set that answers are stored from: an own one."""
        found = {0: self.own[0]}
        for judged in self.hidden:
            if judged.name.startswith("own"):
                found.setdefault(judged.state, judged)
        return found


def trivial_remarks(material: Material) -> Iterator[LintRemark]:
    """Yield a remark for each trivial answer that passes.

    Raises:
        ProblemError: the reference does not come up again, or memory is full.
    """
    anchors = material.anchors()
    yield from _try(material, "zeros", zeros, "an answer of zeros")
    yield from _try(material, "constant", stored(anchors), "the answer to other inputs")
    yield from _try(material, "mean", fitted_mean(anchors), "the mean of the outputs, everywhere,")
    yield from _try(material, "repeated", repeated, "the first sample's answer, repeated,")
    yield from _identity(material)
    yield from _samples(material)
    yield from _bfloat16(material)


def _try(
    material: Material, tag: LintTag, make: Maker, what: str, *, trivial: bool = True
) -> Iterator[LintRemark]:
    """Yield a remark where an answer passes on both draws of the problem's own inputs."""
    anchors = list(material.anchors().values())
    is_stored = tag in ("constant", "mean")

    def right(judged: JudgedSet) -> bool:
        if is_stored and any(judged is anchor for anchor in anchors):
            return True  # what was stored is right where it comes from
        return passes(make(judged), judged, ladder=material.ladder)

    if not all(right(judged) for judged in material.own):
        return
    everywhere = all(right(judged) for judged in material.hidden)
    where = (
        "passes on any inputs" if everywhere else "passes on its own inputs; hidden ones refuse it"
    )
    yield LintRemark(tag=tag, line=f"{what} {where}", degenerate=everywhere and trivial)


def _identity(material: Material) -> Iterator[LintRemark]:
    first = material.own[0]
    known = named_tensors(first, material.states)
    chosen: list[str] = []
    for output, exact in zip(tensors_of(first.outputs), tensors_of(first.outputs64), strict=True):
        name = next(
            (
                name
                for name, tensor in known.items()
                if (guess := fitted(tensor, output)) is not None
                and compare_outputs(
                    guess, reference=output, ref64=exact, ladder=material.ladder
                ).failure
                is None
            ),
            None,
        )
        if name is None:
            return
        chosen.append(name)
    what = f"{' and '.join(dict.fromkeys(chosen))}, returned as it is,"
    yield from _try(material, "identity", returned(chosen, material.states), what)


def _samples(material: Material) -> Iterator[LintRemark]:
    """An answer from one percent of the input: the first rows, repeated in the place of all."""
    subject = material.subject
    for axis in sampled_axes([each.tensor for each in material.own[0].tensors]):

        def make(judged: JudgedSet, dim: int = axis.dim) -> Answer | None:
            tensors = sampled(judged, dim=dim)
            return subject.outputs(judged, tensors=tensors, state=_loaded(material, judged))

        what = f"an answer from {axis.kept} of {axis.size} along dimension {axis.dim} of the inputs"
        yield from _try(material, "sample", make, what)


def _bfloat16(material: Material) -> Iterator[LintRemark]:
    def computed(judged: JudgedSet) -> Answer | None:
        state = _loaded(material, judged)
        material.subject.load(_rounded_state(state))
        tensors = [_rounded(each) for each in judged.tensors]
        return material.subject.outputs(judged, tensors=tensors, state=state)

    kept = list(_try(material, "bf16", rounded, "an answer kept in bfloat16", trivial=False))
    yield from kept
    if any(rounded(judged) is not None for judged in material.own):
        what = "an answer computed from operands in bfloat16"
        yield from _try(material, "bf16", computed, what, trivial=False)


def _loaded(material: Material, judged: JudgedSet) -> State:
    state = material.states[judged.state]
    material.subject.load(state)
    return state


def _rounded(shared: Shareable) -> Shareable:
    copy = shared.like()
    copy.tensor.copy_(as_bfloat16(shared.tensor))
    return copy.seal()


def _rounded_state(state: State) -> State:
    return {name: _rounded(shared) for name, shared in state.items()}
