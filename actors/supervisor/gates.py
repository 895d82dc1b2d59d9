"""Gate 2: what a candidate computes. Each failure is a verdict.

The candidate runs in its child on hidden input sets, with weights loaded by name, into buffers that
were poisoned; the comparison is made here. Source: DESIGN §5.2; exploits §B.
"""

from __future__ import annotations

from kopt.actors.child.memory import SharedTensor
from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.actors.supervisor.inputs import JudgedSet, checksum, perturbed, renumber
from kopt.actors.supervisor.loading import Loaded
from kopt.actors.supervisor.outputs import check_notes, compare, poisoned
from kopt.actors.supervisor.reference import bind, load_state
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.stopwatch import LastCall
from kopt.actors.supervisor.trail import Trail
from kopt.verdict import Cheated, Crashed, Incorrect, NumericError, TimedOut, Verdict


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
    buffers = poisoned(judged.outputs)
    into = child.share(buffers)
    answer = child.ask("export_last", timeout_s=limit_s, number=last.number, into=into)
    compare(bench, judged, answer, 0, buffers, name="timed_output", trail=trail)
    judged.close()
    for each in session.timed():
        _check_inputs(child, session.sets[each], number=each, limit_s=limit_s, trail=trail)


def _judge_set(bench: Bench, child: Child, judged: JudgedSet, *, number: int, trail: Trail) -> None:
    limit_s = bench.config.timeouts.correctness_s
    buffers = poisoned(judged.outputs)
    into = child.share(buffers)
    answer = child.ask("call", timeout_s=limit_s, sets=[number], seeds=[judged.seed], into=[into])
    child.ask("unmap", timeout_s=limit_s, numbers=into)
    check_notes(answer, 0, judged, trail=trail)
    compare(bench, judged, answer, 0, buffers, name=f"values:{judged.name}", trail=trail)
    _check_inputs(child, judged, number=number, limit_s=limit_s, trail=trail)
    trail.passed(f"values:{judged.name}", _figures(trail.errors[-1]))


def _judge_two_alive(bench: Bench, session: Session, child: Child, *, trail: Trail) -> None:
    """Two calls on different inputs with both outputs alive, then the first inputs again."""
    first, second = session.two_sets()
    order = [first, second, first]
    buffers = [poisoned(session.sets[number].outputs) for number in order]
    into = [child.share(each) for each in buffers]
    answer = child.ask(
        "call",
        timeout_s=bench.config.timeouts.correctness_s * len(order),
        sets=order,
        seeds=[session.sets[number].seed for number in order],
        into=into,
    )
    for position, number in enumerate(order):
        compare(
            bench,
            session.sets[number],
            answer,
            position,
            buffers[position],
            name="two_outputs",
            trail=trail,
        )
    trail.passed("two_outputs", "outputs of three calls, all alive, agree")


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
