"""Gate 4: candidate against baseline, in interleaved pairs, until the outcome is clear."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.audit import Auditor
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.gates import run_verdict
from kopt.actors.supervisor.held import held
from kopt.actors.supervisor.inputs import sizes
from kopt.actors.supervisor.loading import Loaded
from kopt.actors.supervisor.outputs import output_bytes
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.actors.supervisor.trail import Trail
from kopt.actors.supervisor.unseen import check_first_calls
from kopt.errors import ProblemError
from kopt.evaluation import Check
from kopt.overhead import Block, overhead, supported_us
from kopt.racing import Race, pair_ratios, speedup_interval
from kopt.timing import Timing, median_ci
from kopt.verdict import Cheated, last_line

_T = TypeVar("_T")

GAMMA = 1.03
"""Speed-up above which gate 4 counts as passed (KernelOPT §4.4)."""
RACES = 3
"""Races at most, where another load of the host makes the clocks disagree."""
DISTURBED = 1.2
"""Where our clock raises a candidate's times by more, a race is run again too: more blocks tell a
busy host from a clock that lies."""
SLOWED = 1.25
"""On a GPU a baseline counts as no slower, by this factor, than it was before any candidate: a
process can be stopped while another is timed, a kernel that it left running cannot."""
SLACK: dict[DeviceName, float] = {"cpu": 0.1, "cuda": 0.05}
"""An honest candidate's overhead may exceed the baseline's by this share: what its call leaves in
the caches, and where it leaves its output, is its own."""


@dataclass(slots=True)
class Raced:
    """Blocks of one race."""

    mine: list[Block] = field(default_factory=list)
    """The candidate's."""
    theirs: list[Block] = field(default_factory=list)
    """The baseline's, between them."""
    ratios: tuple[float, ...] = ()
    """Of the pairs."""


def performance_gate(
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
    _trusted(session, session.baselines.ready)
    timed = session.sets[session.timed()[0]]
    watch = Stopwatch(
        loaded.child,
        sets={number: sizes(session.sets[number]) for number in session.timed()},
        output_bytes=output_bytes(timed.outputs),
        copies=timed.may_alias,
        device=bench.device,
        timing=bench.config.timing,
        limit_s=bench.config.timeouts.timing_s,
        rng=rng,
    )
    auditor = Auditor(bench, session, loaded, watch, trail=trail, rng=rng)
    try:
        watch.warm_up()
        disagreement = watch.clocks_disagree()
        if disagreement is not None:
            raise trail.fail("two_clocks", Cheated(check="two_clocks", detail=disagreement))
        trail.passed("two_clocks", "the candidate's clock and the supervisor's slope agree")
        timing = _believable_race(bench, session, watch, auditor, trail=trail)
        _check_light(session, timing, trail=trail)
        auditor.audit()
        trail.passed(
            "timed_output",
            f"{auditor.compared} outputs of timed calls agree, on fresh input, "
            f"and {auditor.digested} are what they were when the call ended",
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


def _believable_race(
    bench: Bench, session: Session, watch: Stopwatch, auditor: Auditor, *, trail: Trail
) -> Timing:
    """Race until our clock agrees with the candidate's over the blocks that count.

    A disturbed race is run again, but its blocks stay in the account: a clock that lies does not
    get away with the one race in which the host's noise covered it.

    Raises:
        Judged: it never does.
        ChildFailed: the candidate's child fails.
        ProblemError: the reference fails.
    """
    ours: list[Block] = []
    theirs: list[Block] = []
    for _ in range(RACES):
        raced = _race(bench, session, watch, auditor)
        ours += raced.mine
        theirs += raced.theirs
        disagreement = watch.blocks_disagree(raced.mine, reference=raced.theirs)
        disagreement = disagreement or watch.blocks_disagree(ours, reference=theirs)
        timing, raised = _timing(session, raced, device=bench.device)
        if disagreement is None and raised <= DISTURBED:
            break
    if disagreement is not None:
        raise trail.fail("timed_blocks", Cheated(check="timed_blocks", detail=disagreement))
    trail.passed("timed_blocks", f"our clock supports the candidate's times{_raised(raised)}")
    return timing


def _race(bench: Bench, session: Session, watch: Stopwatch, auditor: Auditor) -> Raced:
    config = bench.config.timing
    other = session.baselines.watch(session.baselines.best())
    race = Race(min_pairs=config.min_pairs, max_pairs=config.max_pairs)
    raced = Raced()
    while race.state == "continue":
        # A B B A: a steady drift cancels within the block.
        first = _baseline_block(session, other, watch)
        mine = [_audited_block(watch, auditor) for _ in range(2)]
        pair = [first, _baseline_block(session, other, watch)]
        race.observe(pair_ratios(_calls_us(pair), candidate_us=_calls_us(mine)))
        raced.theirs += pair
        raced.mine += mine
    raced.ratios = race.ratios
    return raced


def _baseline_block(session: Session, other: Stopwatch, watch: Stopwatch) -> Block:
    with held(watch.child):
        return _trusted(session, other.block)


def _audited_block(watch: Stopwatch, auditor: Auditor) -> Block:
    block = watch.block()
    auditor.maybe_audit()
    return block


def _timing(session: Session, raced: Raced, *, device: DeviceName) -> tuple[Timing, float]:
    """Return what a race found, the candidate's times raised to what our clock supports.

    The factor by which they were raised is returned beside it, 1 where they were not.
    """
    baselines = session.baselines
    claimed_us = _calls_us(raced.mine)
    trusted = overhead(raced.theirs)
    times_us = [
        max(block.call_us, supported_us(block, trusted=trusted, slack=SLACK[device]))
        for block in raced.mine
    ]
    raised = statistics.median(times_us) / statistics.median(claimed_us)
    speedup, interval = speedup_interval(raced.ratios)
    baseline_us = statistics.median(_calls_us(raced.theirs))
    if device == "cuda":
        raised *= max(1.0, baseline_us / (SLOWED * baselines.times_us[baselines.best()]))
    timing = Timing(
        time_us=statistics.median(times_us),
        time_ci_us=median_ci(times_us),
        baseline=baselines.best(),
        baseline_us=baseline_us,
        speedup=speedup / raised,
        speedup_ci=(interval[0] / raised, interval[1] / raised),
        eager_us=baselines.times_us["eager"],
        compile_us=baselines.times_us.get("compile"),
        max_autotune_us=baselines.times_us.get("max_autotune"),
        num_pairs=len(raced.ratios),
        sol_us=session.light.sol_us,
    )
    return timing, raised


def _raised(factor: float) -> str:
    return "" if factor < 1.005 else f", raised by {factor - 1.0:.0%}"


def _calls_us(blocks: list[Block]) -> list[float]:
    return [block.call_us for block in blocks]


def _trusted(session: Session, run: Callable[[], _T]) -> _T:
    """Run something on the baselines; whatever fails there is the problem's fault."""
    try:
        return run()
    except ChildFailed as failure:
        raise ProblemError(
            session.problem.name,
            f"the reference fails while it is timed: {last_line(failure.log)}",
        ) from None
