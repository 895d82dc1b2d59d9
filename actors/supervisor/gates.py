"""Gates 1 and 2: what a candidate says, and what it computes. Each failure is a verdict.

Gate 2 runs the candidate in its child on hidden input sets, with weights loaded by name, into
buffers that were poisoned; the comparison is made here. Source: DESIGN §5.2; exploits §B.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from kopt.actors.child.memory import SharedTensor, spec_of
from kopt.actors.child.plain import NotPlain, decode
from kopt.actors.supervisor.child import Child, ChildFailed, specs_of
from kopt.actors.supervisor.inputs import JudgedSet, checksum, perturbed, renumber
from kopt.actors.supervisor.reference import bind, load_state, state_entries
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.stopwatch import LastCall
from kopt.actors.verify.compare import compare_outputs, flatten, structure_failure, worst
from kopt.actors.verify.weights import match_state
from kopt.candidate import Candidate
from kopt.evaluation import Check
from kopt.ladder import LADDERS
from kopt.static_check import static_check
from kopt.verdict import (
    Cheated,
    CompileFailed,
    Crashed,
    Incorrect,
    NumericError,
    TimedOut,
    Verdict,
)

SAFE_FILL = 7
"""Poison of integer outputs, which have no NaN: no value that a reference is likely to give."""


class Judged(Exception):
    """The verdict is reached; nothing more is to be done with the candidate."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


@dataclass(slots=True)
class Trail:
    """What was checked so far."""

    gates: list[Check] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    errors: list[NumericError] = field(default_factory=list)

    def passed(self, name: str, detail: str = "") -> None:
        """Note a check that passed."""
        self.checks.append(Check(name=name, passed=True, detail=detail))

    def fail(self, name: str, verdict: Verdict) -> Judged:
        """Note the check that decides, and return what to raise."""
        self.checks.append(Check(name=name, passed=False, detail=verdict.reason))
        return Judged(verdict)


def static_gate(candidate: Candidate, *, languages: tuple[Any, ...], trail: Trail) -> None:
    """Gate 1: the text alone.

    Raises:
        Judged: it cannot work, or holds what no honest kernel needs.
    """
    report = static_check(candidate.source, language=candidate.language, allowed=languages)
    trail.checks += report.evidence
    if report.errors:
        raise trail.fail("static", CompileFailed(stage="static", log="\n".join(report.errors)))
    for tripwire in report.tripwires:
        raise trail.fail("static", Cheated(check=tripwire.name, detail=tripwire.detail))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A candidate in its child."""

    child: Child
    sources: dict[str, str]
    """Its names of weights to the reference's."""


def load_candidate(
    bench: Bench, session: Session, candidate: Candidate, *, build_dir: Path | None, trail: Trail
) -> Loaded:
    """Import and construct the candidate in a child of its own, and match its weights by name.

    Raises:
        Judged: it does not load.
        WorkerLost: the zygote is gone.
    """
    limit_s = bench.config.timeouts.load_s
    reference = session.reference
    child = bench.child(session.problem, build_dir=build_dir)
    try:
        child.ask("import", timeout_s=limit_s, source=candidate.source, name="candidate")
        numbers = child.share(reference.argument_tensors)
        child.ask(
            "construct_candidate",
            timeout_s=limit_s,
            arguments=renumber(reference.arguments, numbers),
            seed=reference.init_seed,
        )
        entries = state_entries(child.ask("describe_state", timeout_s=limit_s))
        match = match_state(reference.entries, candidate=entries)
        if match.sources is None:
            raise trail.fail("weights", Incorrect(check="weights", detail=match.reason))
    except ChildFailed as failure:
        child.end()
        raise trail.fail("load", load_verdict(failure)) from None
    except BaseException:
        child.end()
        raise
    trail.passed("weights", match.reason)
    return Loaded(child=child, sources=match.sources)


def load_verdict(failure: ChildFailed) -> Verdict:
    """Return what a failure while building or loading means."""
    stage = {"construct_candidate": "construct", "contract": "construct"}.get(
        failure.stage, failure.stage
    )
    if failure.how == "timed_out":
        return TimedOut(stage=stage, limit_s=failure.limit_s)
    if failure.how == "died":
        return Crashed(stage=stage, log=failure.log)
    return CompileFailed(stage=stage, log=failure.log)


def run_verdict(failure: ChildFailed, *, stage: str) -> Verdict:
    """Return what a failure while running means."""
    if failure.how == "timed_out":
        return TimedOut(stage=stage, limit_s=failure.limit_s)
    if failure.stage == "clock":
        return Cheated(check="clock", detail=failure.log)
    return Crashed(stage=stage, log=failure.log)


def correctness_gate(bench: Bench, session: Session, loaded: Loaded, *, trail: Trail) -> None:
    """Gate 2: the candidate computes the reference's function on every hidden input set.

    Raises:
        Judged: it does not.
    """
    limit_s = bench.config.timeouts.correctness_s
    child = loaded.child
    try:
        weights: int | None = None
        for number, judged in enumerate(session.sets):
            if judged.state != weights:  # loaded again after construction and after calls
                load_state(
                    child,
                    session.states[judged.state],
                    timeout_s=limit_s,
                    sources=loaded.sources,
                )
                weights = judged.state
            bind(child, judged, number=number, timeout_s=limit_s)
            _judge_set(bench, child, judged, number=number, trail=trail)
        _judge_two_alive(bench, session, child, trail=trail)
    except ChildFailed as failure:
        raise trail.fail("runs", run_verdict(failure, stage="correctness")) from None


def check_timed_output(
    bench: Bench, session: Session, child: Child, *, last: LastCall, trail: Trail
) -> None:
    """Compare the output of the last timed call, and look whether timed inputs are as drawn.

    The call's input was fresh; the reference is run on it only now.

    Raises:
        Judged: they are not.
        ProblemError: the reference fails on it.
        ChildFailed: the child is gone.
    """
    limit_s = bench.config.timeouts.correctness_s
    judged = perturbed(session.sets[last.number], last.perturbation, seed=last.seed)
    session.run_reference(judged)
    buffers = _poisoned(judged.outputs)
    into = child.share(buffers)
    answer = child.ask("export_last", timeout_s=limit_s, number=last.number, into=into)
    _compare(bench, judged, answer, 0, buffers, name="timed_output", trail=trail)
    judged.close()
    for each in session.timed():
        _check_inputs(child, session.sets[each], number=each, limit_s=limit_s, trail=trail)


def _judge_set(bench: Bench, child: Child, judged: JudgedSet, *, number: int, trail: Trail) -> None:
    limit_s = bench.config.timeouts.correctness_s
    buffers = _poisoned(judged.outputs)
    into = child.share(buffers)
    answer = child.ask("call", timeout_s=limit_s, sets=[number], seeds=[judged.seed], into=[into])
    child.ask("unmap", timeout_s=limit_s, numbers=into)
    _check_notes(answer, 0, judged, trail=trail)
    _compare(bench, judged, answer, 0, buffers, name=f"values:{judged.name}", trail=trail)
    _check_inputs(child, judged, number=number, limit_s=limit_s, trail=trail)
    trail.passed(f"values:{judged.name}", _figures(trail.errors[-1]))


def _judge_two_alive(bench: Bench, session: Session, child: Child, *, trail: Trail) -> None:
    """Two calls on different inputs with both outputs alive, then the first inputs again."""
    first, second = session.two_sets()
    order = [first, second, first]
    buffers = [_poisoned(session.sets[number].outputs) for number in order]
    into = [child.share(each) for each in buffers]
    answer = child.ask(
        "call",
        timeout_s=bench.config.timeouts.correctness_s * len(order),
        sets=order,
        seeds=[session.sets[number].seed for number in order],
        into=into,
    )
    for position, number in enumerate(order):
        _compare(
            bench,
            session.sets[number],
            answer,
            position,
            buffers[position],
            name="two_outputs",
            trail=trail,
        )
    trail.passed("two_outputs", "outputs of three calls, all alive, agree")


def _check_notes(answer: dict[str, Any], position: int, judged: JudgedSet, *, trail: Trail) -> None:
    """What the child itself says of its outputs: a tripwire, since values decide."""
    notes = answer["notes"][position] if _has_notes(answer, position) else {}
    types = notes.get("types")
    if types:
        detail = f"expected torch.Tensor, found {str(types)[:60]}"
        raise trail.fail("output_type", Cheated(check="output_type", detail=detail))
    if notes.get("aliases") and not judged.may_alias:
        detail = "an output shares memory with an input"
        raise trail.fail("aliasing", Incorrect(check="aliasing", detail=detail))
    devices = notes.get("devices")
    if devices and devices != list(judged.devices):
        detail = f"expected outputs on {list(judged.devices)}, found {str(devices)[:60]}"
        raise trail.fail("output_device", Incorrect(check="output_device", detail=detail))
    if notes.get("dense") is False:
        detail = "an output's elements share memory (stride 0)"
        raise trail.fail("dense", Incorrect(check="dense", detail=detail))


def _has_notes(answer: dict[str, Any], position: int) -> bool:
    notes = answer.get("notes")
    return isinstance(notes, list) and len(notes) > position and isinstance(notes[position], dict)


def _compare(
    bench: Bench,
    judged: JudgedSet,
    answer: dict[str, Any],
    position: int,
    buffers: list[SharedTensor],
    *,
    name: str,
    trail: Trail,
) -> None:
    """Compare one call's outputs, from our buffers, with the reference's.

    Raises:
        Judged: form or values differ.
        ChildFailed: the answer is no answer.
    """
    outputs = _form(answer, position, buffers)
    failure = structure_failure(outputs, reference=judged.outputs)
    if failure is not None:
        raise trail.fail("structure", Incorrect(check="structure", detail=failure))
    comparison = compare_outputs(
        outputs,
        reference=judged.outputs,
        ref64=judged.outputs64,
        ladder=LADDERS[bench.config.ladder],
        inputs=judged.arguments(),
    )
    trail.errors.append(comparison.error)
    if comparison.failure is not None:
        raise trail.fail(
            name, Incorrect(check=name, detail=comparison.failure, error=worst(trail.errors))
        )


def _form(answer: dict[str, Any], position: int, buffers: list[SharedTensor]) -> object:
    """Return the outputs as the child says they are formed, with the values of our buffers.

    A tensor whose shape or dtype differs from the reference's is not in any buffer: an empty one
    of the form that was announced stands for it, and the comparison of forms refuses it.
    """
    specs = specs_of(answer)
    first = 0

    def get(number: int) -> torch.Tensor:
        spec = specs[number]
        index = number - first
        if 0 <= index < len(buffers) and buffers[index].spec == spec:
            return buffers[index].tensor
        return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta")

    try:
        trees = answer["trees"]
        first = sum(_count(each) for each in trees[:position])
        return decode(trees[position], get)
    except (NotPlain, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ChildFailed("died", "answer", f"spoke out of turn: {error}") from None


def _count(tree: object) -> int:
    count = 0

    def get(number: int) -> int:
        nonlocal count
        count += 1
        return number

    decode(tree, get)
    return count


def _poisoned(outputs: object) -> list[SharedTensor]:
    """Return buffers of the reference's output form, filled with what no output is."""
    buffers = []
    for _, leaf in flatten(outputs):
        if isinstance(leaf, torch.Tensor):
            shared = SharedTensor(spec_of(leaf))
            if leaf.is_floating_point() or leaf.is_complex():
                shared.tensor.fill_(float("nan"))
            elif leaf.dtype is not torch.bool:
                shared.tensor.fill_(SAFE_FILL)
            buffers.append(shared)
    return buffers


def _check_inputs(
    child: Child, judged: JudgedSet, *, number: int, limit_s: float, trail: Trail
) -> None:
    """Whether the candidate left the inputs that it was given as they were.

    Raises:
        Judged: it did not.
        ChildFailed: the child is gone.
    """
    if not judged.tensors:
        return
    copies = [SharedTensor(each.spec) for each in judged.tensors]
    numbers = child.share(copies)
    child.ask("read_back", timeout_s=limit_s, number=number, tree=renumber(judged.tree, numbers))
    child.ask("unmap", timeout_s=limit_s, numbers=numbers)
    seen = checksum([each.tensor for each in copies])
    for each in copies:
        each.close()
    if seen != judged.checksum:
        detail = f"the inputs of {judged.name} were changed"
        raise trail.fail("inputs_unchanged", Incorrect(check="inputs_unchanged", detail=detail))


def _figures(error: NumericError) -> str:
    rho = "none" if error.rho is None else f"{error.rho:.3g}"
    return f"max error {error.max_abs:.3g}, rho {rho}"
