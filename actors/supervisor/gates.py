"""Gate 2: what a candidate computes. Each failure is a verdict.

The candidate runs in its child on hidden input sets, with weights loaded by name, into buffers that
were poisoned; the comparison is made here. Source: DESIGN §5.2; exploits §B.
"""

from __future__ import annotations

from collections.abc import Mapping

from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.actors.supervisor.first_call import first_call
from kopt.actors.supervisor.inputs import JudgedSet, checksum, close_all, renumber
from kopt.actors.supervisor.loading import Loaded
from kopt.actors.supervisor.outputs import check_notes, compare, poisoned
from kopt.actors.supervisor.reference import load_state
from kopt.actors.supervisor.repeats import check_repeats
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Trail
from kopt.verdict import Cheated, Crashed, Incorrect, NumericError, TimedOut, Verdict


def run_verdict(failure: ChildFailed, *, stage: str) -> Verdict:
    """Return what a failure while running means."""
    if failure.how == "timed_out":
        return TimedOut(stage=stage, limit_s=failure.limit_s)
    if failure.stage == "clock":
        return Cheated(check="clock", detail=failure.log)
    return Crashed(stage=stage, log=failure.log)


def correctness_gate(
    bench: Bench, session: Session, loaded: Loaded, *, trail: Trail
) -> list[float]:
    """Gate 2: the candidate computes the reference's function on every hidden input set.

    Returns:
        Microseconds of `first_call` on each.

    Raises:
        Judged: it does not.
    """
    limit_s = bench.config.timeouts.correctness_s
    child = loaded.child
    firsts_us: list[float] = []
    kept = {*session.timed(), *session.two_sets()}
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
            with session.filled(number) as filled:
                firsts_us.append(judge_set(bench, child, filled, number=number, trail=trail))
            if number not in kept:
                child.ask("unbind", timeout_s=limit_s, numbers=[number])
        with session.filled_pair() as sets:
            _judge_two_alive(bench, session, child, sets, trail=trail)
            check_repeats(bench, session, child, sets, call_us=min(firsts_us), trail=trail)
        child.ask("let_go", timeout_s=limit_s)
    except ChildFailed as failure:
        raise trail.fail("runs", run_verdict(failure, stage="correctness")) from None
    return firsts_us


def judge_set(bench: Bench, child: Child, judged: JudgedSet, *, number: int, trail: Trail) -> float:
    """Run the candidate once on an input set and judge it; return `first_call`'s microseconds.

    Raises:
        Judged: it is wrong.
        ChildFailed: its child is gone, or it raises or hangs.
    """
    limit_s = bench.config.timeouts.correctness_s
    buffers = poisoned(judged.outputs)
    into = child.share(buffers)
    answer, first_us = first_call(child, judged, number=number, into=into, limit_s=limit_s)
    child.ask("unmap", timeout_s=limit_s, numbers=into)
    check_notes(answer, 0, judged, trail=trail)
    compare(bench, judged, answer, 0, buffers, name=f"values:{judged.name}", trail=trail)
    close_all(buffers)
    check_inputs(child, judged, number=number, limit_s=limit_s, trail=trail)
    trail.passed(f"values:{judged.name}", _figures(trail.errors[-1]))
    return first_us


def _judge_two_alive(
    bench: Bench, session: Session, child: Child, sets: Mapping[int, JudgedSet], *, trail: Trail
) -> None:
    """Two calls on different inputs with both outputs alive, then the first inputs again."""
    first, second = session.two_sets()
    order = [first, second, first]
    buffers = [poisoned(sets[number].outputs) for number in order]
    into = [child.share(each) for each in buffers]
    answer = child.ask(
        "call",
        timeout_s=bench.config.timeouts.correctness_s * len(order),
        sets=order,
        seeds=[sets[number].seed for number in order],
        into=into,
    )
    for position, number in enumerate(order):
        compare(
            bench,
            sets[number],
            answer,
            position,
            buffers[position],
            name="two_outputs",
            trail=trail,
        )
    numbers = [each for group in into for each in group]
    child.ask("unmap", timeout_s=bench.config.timeouts.correctness_s, numbers=numbers)
    trail.passed("two_outputs", "outputs of three calls, all alive, agree")


def check_inputs(
    child: Child, judged: JudgedSet, *, number: int, limit_s: float, trail: Trail
) -> None:
    """Whether the candidate left the inputs that it was given as they were.

    Raises:
        Judged: it did not.
        ChildFailed: the child is gone.
    """
    if not judged.tensors:
        return
    copies = [each.like() for each in judged.tensors]
    numbers = child.share(copies)
    child.ask("read_back", timeout_s=limit_s, number=number, tree=renumber(judged.tree, numbers))
    child.ask("unmap", timeout_s=limit_s, numbers=numbers)
    seen = checksum([each.tensor for each in copies])
    close_all(copies)
    if seen != judged.checksum:
        detail = f"the inputs of {judged.name} were changed"
        raise trail.fail("inputs_unchanged", Incorrect(check="inputs_unchanged", detail=detail))


def _figures(error: NumericError) -> str:
    rho = "none" if error.rho is None else f"{error.rho:.3g}"
    return f"max error {error.max_abs:.3g}, rho {rho}"
