"""Gate 4: candidate against baseline, in interleaved pairs, until the outcome is clear."""

from __future__ import annotations

import random
import statistics

from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.gates import Loaded, Trail, check_timed_output, run_verdict
from kopt.actors.supervisor.inputs import sizes
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.errors import ProblemError
from kopt.evaluation import Check
from kopt.racing import Race, pair_ratios, speedup_interval
from kopt.timing import Timing, median_ci
from kopt.verdict import Cheated, last_line

GAMMA = 1.03
"""Speed-up above which gate 4 counts as passed (KernelOPT §4.4)."""


def performance_gate(
    bench: Bench, session: Session, loaded: Loaded, *, trail: Trail, rng: random.Random
) -> Timing:
    """Time the candidate, checking its clock and the output of a timed call.

    Raises:
        Judged: it fails, hangs or lies while it is timed.
        ProblemError: the reference fails while it is timed.
        WorkerLost: the zygote is gone.
    """
    _baselines_ready(session)
    watch = Stopwatch(
        loaded.child,
        sets={number: sizes(session.sets[number]) for number in session.timed()},
        device=bench.device,
        timing=bench.config.timing,
        limit_s=bench.config.timeouts.timing_s,
        rng=rng,
    )
    try:
        watch.warm_up()
        disagreement = watch.clocks_disagree(reference_gap_us=session.baselines.gap_us)
        if disagreement is not None:
            raise trail.fail("two_clocks", Cheated(check="two_clocks", detail=disagreement))
        trail.passed("two_clocks", "the candidate's clock and the supervisor's slope agree")
        timing = _race(bench, session, watch)
        check_timed_output(bench, session, loaded.child, last=watch.last, trail=trail)
    except ChildFailed as failure:
        raise trail.fail("timed", run_verdict(failure, stage="timing")) from None
    trail.gates.append(
        Check(
            name="performance",
            passed=timing.speedup >= GAMMA and timing.speedup_ci[0] > 1.0,
            detail=f"{timing.speedup:.4g}x over {timing.baseline}, {timing.num_pairs} pairs",
        )
    )
    return timing


def _race(bench: Bench, session: Session, watch: Stopwatch) -> Timing:
    config = bench.config.timing
    baselines = session.baselines
    name = baselines.best()
    other = baselines.watch(name)
    race = Race(min_pairs=config.min_pairs, max_pairs=config.max_pairs)
    baseline_us: list[float] = []
    candidate_us: list[float] = []
    while race.state == "continue":
        # A B B A: a steady drift cancels within the block.
        first = _baseline_block(session, other)
        mine = [watch.block_us(), watch.block_us()]
        block = [first, _baseline_block(session, other)]
        race.observe(pair_ratios(block, candidate_us=mine))
        baseline_us += block
        candidate_us += mine
    speedup, interval = speedup_interval(race.ratios)
    return Timing(
        time_us=statistics.median(candidate_us),
        time_ci_us=median_ci(candidate_us),
        baseline=name,
        baseline_us=statistics.median(baseline_us),
        speedup=speedup,
        speedup_ci=interval,
        eager_us=baselines.times_us["eager"],
        compile_us=baselines.times_us.get("compile"),
        max_autotune_us=baselines.times_us.get("max_autotune"),
        num_pairs=len(race.ratios),
    )


def _baselines_ready(session: Session) -> None:
    try:
        session.baselines.ready()
    except ChildFailed as failure:
        raise _fault(session, failure) from None


def _baseline_block(session: Session, watch: Stopwatch) -> float:
    try:
        return watch.block_us()
    except ChildFailed as failure:
        raise _fault(session, failure) from None


def _fault(session: Session, failure: ChildFailed) -> ProblemError:
    return ProblemError(
        session.problem.name, f"the reference fails while it is timed: {last_line(failure.log)}"
    )
