"""Gate 4: candidate against baseline, in interleaved pairs, until the outcome is clear."""

from __future__ import annotations

import random
import statistics

from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.gates import check_timed_output, run_verdict
from kopt.actors.supervisor.inputs import sizes
from kopt.actors.supervisor.loading import Loaded
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.stopwatch import Block, Stopwatch
from kopt.actors.supervisor.trail import Trail
from kopt.errors import ProblemError
from kopt.evaluation import Check
from kopt.racing import Race, pair_ratios, speedup_interval
from kopt.timing import Timing, median_ci
from kopt.verdict import Cheated, last_line

GAMMA = 1.03
"""Speed-up above which gate 4 counts as passed (KernelOPT §4.4)."""
RACES = 3
"""Races at most, where another load of the host makes the clocks disagree."""


SPOT_SHARE = 0.5
"""Of the rounds, how many are followed by a look at a timed output, at most MAX_SPOTS of them: a
candidate that leaves work out of some calls does not know which."""
MAX_SPOTS = 5


class SpotChecks:
    """Looks at outputs of timed calls, at moments that the candidate cannot know."""

    def __init__(
        self,
        bench: Bench,
        session: Session,
        loaded: Loaded,
        watch: Stopwatch,
        *,
        trail: Trail,
        rng: random.Random,
    ) -> None:
        """Take what is timed; rng is secret."""
        self._bench, self._session, self._child = bench, session, loaded.child
        self._watch, self._trail, self._rng = watch, trail, rng
        self.done = 0
        """Outputs that were compared."""

    def maybe_check(self) -> None:
        """Perhaps compare the last timed call's output.

        Raises:
            Judged: it is wrong.
            ChildFailed: the candidate's child is gone.
        """
        if self.done < MAX_SPOTS and self._rng.random() < SPOT_SHARE:
            self.check()

    def check(self) -> None:
        """Compare the last timed call's output.

        Raises:
            Judged: it is wrong.
            ChildFailed: the candidate's child is gone.
        """
        last = self._watch.last
        check_timed_output(self._bench, self._session, self._child, last=last, trail=self._trail)
        self.done += 1


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
        spot = SpotChecks(bench, session, loaded, watch, trail=trail, rng=rng)
        timing = _believable_race(bench, session, watch, spot, trail=trail)
        spot.check()
        trail.passed("timed_output", f"{spot.done} outputs of timed calls agree, on fresh input")
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


def _believable_race(
    bench: Bench, session: Session, watch: Stopwatch, spot: SpotChecks, *, trail: Trail
) -> Timing:
    """Race until our clock agrees with the candidate's over the blocks that count.

    A disturbed race is run again, but its blocks stay in the account: a clock that lies does not
    get away with the one race in which the host's noise covered it.

    Raises:
        Judged: it never does.
        ChildFailed: the candidate's child fails.
        ProblemError: the reference fails.
    """
    disagreement = None
    ours: list[Block] = []
    theirs: list[Block] = []
    for _ in range(RACES):
        timing, mine, baseline = _race(bench, session, watch, spot)
        ours += mine
        theirs += baseline
        disagreement = watch.blocks_disagree(mine, reference=baseline)
        disagreement = disagreement or watch.blocks_disagree(ours, reference=theirs)
        if disagreement is None:
            trail.passed("timed_blocks", "no time passes beside the timed calls unaccounted for")
            return timing
    raise trail.fail("timed_blocks", Cheated(check="timed_blocks", detail=str(disagreement)))


def _race(
    bench: Bench, session: Session, watch: Stopwatch, spot: SpotChecks
) -> tuple[Timing, list[Block], list[Block]]:
    """Return the timing, and the blocks of the candidate and of the baseline it rests on."""
    config = bench.config.timing
    baselines = session.baselines
    name = baselines.best()
    other = baselines.watch(name)
    race = Race(min_pairs=config.min_pairs, max_pairs=config.max_pairs)
    theirs: list[Block] = []
    ours: list[Block] = []
    while race.state == "continue":
        # A B B A: a steady drift cancels within the block.
        first = _baseline_block(session, other)
        mine = [watch.block(), watch.block()]
        spot.maybe_check()
        pair = [first, _baseline_block(session, other)]
        race.observe(pair_ratios(_calls_us(pair), candidate_us=_calls_us(mine)))
        theirs += pair
        ours += mine
    speedup, interval = speedup_interval(race.ratios)
    timing = Timing(
        time_us=statistics.median(_calls_us(ours)),
        time_ci_us=median_ci(_calls_us(ours)),
        baseline=name,
        baseline_us=statistics.median(_calls_us(theirs)),
        speedup=speedup,
        speedup_ci=interval,
        eager_us=baselines.times_us["eager"],
        compile_us=baselines.times_us.get("compile"),
        max_autotune_us=baselines.times_us.get("max_autotune"),
        num_pairs=len(race.ratios),
    )
    return timing, ours, theirs


def _calls_us(blocks: list[Block]) -> list[float]:
    return [block.call_us for block in blocks]


def _baselines_ready(session: Session) -> None:
    try:
        session.baselines.ready()
    except ChildFailed as failure:
        raise _fault(session, failure) from None


def _baseline_block(session: Session, watch: Stopwatch) -> Block:
    try:
        return watch.block()
    except ChildFailed as failure:
        raise _fault(session, failure) from None


def _fault(session: Session, failure: ChildFailed) -> ProblemError:
    return ProblemError(
        session.problem.name, f"the reference fails while it is timed: {last_line(failure.log)}"
    )
