"""Gate 4: candidate against baseline, whether the time found can be true, and whether it passes."""

from __future__ import annotations

import random

from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.duel import Duel
from kopt.actors.supervisor.gates import run_verdict
from kopt.actors.supervisor.loading import Loaded
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Trail
from kopt.actors.supervisor.two_clocks import clocks_disagree
from kopt.actors.supervisor.unseen import check_first_calls
from kopt.actors.supervisor.unseen_timed import check_unseen_timed
from kopt.evaluation import Check
from kopt.timing import Timing
from kopt.verdict import Cheated

GAMMA = 1.03
"""Speed-up above which gate 4 counts as passed (KernelOPT §4.4)."""


def measure_believable(
    bench: Bench,
    session: Session,
    loaded: Loaded,
    *,
    firsts_us: list[float],
    trail: Trail,
    rng: random.Random,
) -> Timing:
    """Time the candidate, checking its clock and outputs of timed calls.

    Args:
        bench: where children are made.
        session: of the problem.
        loaded: the candidate, judged correct.
        firsts_us: microseconds of its first calls (`correctness_gate`).
        trail: of the evaluation.
        rng: secret.

    Raises:
        Judged: it fails, hangs or lies while it is timed.
        ProblemError: the reference fails while it is timed.
        WorkerLost: the zygote is gone.
    """
    duel = Duel(bench, session, loaded, trail=trail, rng=rng)
    try:
        duel.watch.warm_up()
        disagreement = clocks_disagree(duel.watch)
        if disagreement is not None:
            raise trail.fail("two_clocks", Cheated(check="two_clocks", detail=disagreement))
        trail.passed("two_clocks", "the candidate's clock and the supervisor's slope agree")
        timing = duel.believable(trail=trail)
        _check_light(session, timing, trail=trail)
        duel.auditor.audit(closes=True)
        trail.passed(
            "timed_output",
            f"{duel.auditor.compared} outputs of timed calls agree, on fresh input, "
            f"and {duel.auditor.digested} are what they were when the call ended",
        )
        check_first_calls(
            bench,
            session,
            loaded,
            firsts_us=firsts_us,
            timing=timing,
            secret=rng.getrandbits(64),
            trail=trail,
        )
        timing = check_unseen_timed(
            session, duel.watch, auditor=duel.auditor, timing=timing, rng=rng, trail=trail
        )
    except ChildFailed as failure:
        raise trail.fail("timed", run_verdict(failure, stage="timing")) from None
    return timing


def performance_gate(timing: Timing, *, trail: Trail) -> None:
    """Note whether a timing passes; a candidate that does not is correct all the same."""
    trail.gates.append(
        Check(
            name="performance",
            passed=passes_gate(timing),
            detail=f"{timing.speedup:.4g}x over {timing.baseline}, {_basis(timing)}",
        )
    )


def passes_gate(timing: Timing) -> bool:
    """Return whether a candidate is faster by enough, and beyond doubt (KernelOPT §4.4)."""
    return timing.speedup >= GAMMA and timing.speedup_ci[0] > 1.0


def _basis(timing: Timing) -> str:
    return f"{timing.num_pairs} pairs" if timing.protocol == "abba" else timing.protocol


def _check_light(session: Session, timing: Timing, *, trail: Trail) -> None:
    """Whether the time is one that the device can reach.

    Raises:
        Judged: it is not.
    """
    floor_us = session.light.floor_us
    if floor_us is None:
        return
    if timing.time_us < floor_us:
        detail = (
            f"{timing.time_us:.4g} us a call, while what surely moves through memory takes "
            f"{floor_us:.4g} us at least"
        )
        raise trail.fail("speed_of_light", Cheated(check="speed_of_light", detail=detail))
    trail.passed("speed_of_light", f"no less than {floor_us:.3g} us")
