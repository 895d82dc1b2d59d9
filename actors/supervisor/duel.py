"""Candidate against baseline: a race of interleaved pairs, or each by itself by a protocol.

What either gives is believed only where our clock agrees with the candidate's over the blocks that
count, whatever the protocol.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from typing import TypeVar

from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.audit import Auditor
from kopt.actors.supervisor.baselines import SLOWED
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.held import held
from kopt.actors.supervisor.inputs import sizes
from kopt.actors.supervisor.interleaved import Raced, Side, run_race
from kopt.actors.supervisor.loading import Loaded
from kopt.actors.supervisor.measurement import calls_us, measure
from kopt.actors.supervisor.outputs import output_bytes
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.actors.supervisor.trail import Trail
from kopt.actors.supervisor.two_clocks import blocks_disagree
from kopt.drift import is_calm
from kopt.errors import ProblemError
from kopt.hidden_time import Slack, hidden_us
from kopt.overhead import Block, until_answered
from kopt.racing import Race, speedup_interval
from kopt.timing import GIVEN, Baseline, Timing, kept_samples, median_ci
from kopt.timing_protocol import figure_ci_us, figure_us, figures_speedup
from kopt.verdict import Cheated, last_line

_T = TypeVar("_T")

RACES = 3
"""Races at most, where another load of the host makes the clocks disagree."""
BUSY_RACES = 6
"""The same where the baseline's own blocks, trusted code alone, show that the host is busy and the
clocks still disagree: three races may then all be disturbed."""
DISTURBED = 1.2
"""Where our clock raises a candidate's times by more, a race is run again too: more blocks tell a
busy host from a clock that lies."""
LEAD_CALLS = 8
"""On a CPU, blocks of so many calls begin after one that does not count: whoever was woken last
finds the caches cold and waits for a processor."""
MARGIN = 0.01
"""Relative gain that ends a race as a win, at least."""
APART: dict[DeviceName, float] = {"cpu": 0.07, "cuda": 0.008}
"""By how much two processes of the same code may differ for good, as a logarithm (kopt.racing).
CPU: 26 candidates equal to their reference were 2.6 % apart from it (root mean square), 5 % at most
on whichever processor they ran. GPU: nearly as much as a race has to find anyway, before it ends as
a win; with nothing added, processes that are 0.2 % apart (root mean square) would let one equal
kernel in ten be called faster, by intervals as narrow as a quiet GPU's (simulated;
`scripts/aa_study.py` measures how far apart they are). What each launch adds comes on top
(kopt.launch_noise)."""
SLACK: dict[DeviceName, Slack] = {
    "cpu": Slack(middle=0.1, surely=0.1),
    "cuda": Slack(middle=0.16, surely=0.05),
}
"""What may pass beside an honest candidate's calls that does not beside the baseline's."""


class Duel:
    """A candidate and the best baseline of its problem, both warm."""

    def __init__(
        self, bench: Bench, session: Session, loaded: Loaded, *, trail: Trail, rng: random.Random
    ) -> None:
        """Measure the baselines, if nobody has, while the candidate is held still.

        Args:
            bench: where children are made.
            session: of the problem.
            loaded: the candidate, judged correct.
            trail: of the evaluation.
            rng: secret.

        Raises:
            ProblemError: the reference fails while it is timed.
            WorkerLost: the zygote is gone.
        """
        with held(loaded.child):
            trusted(session, session.baselines.ready)
        timed = session.sets[session.timed()[0]]
        self._session, self._device, self._rng = session, bench.device, rng
        self._timing = bench.config.timing
        self.watch = Stopwatch(
            loaded.child,
            sets={number: sizes(session.sets[number]) for number in session.timed()},
            output_bytes=output_bytes(timed.outputs),
            copies=timed.may_alias,
            device=bench.device,
            timing=bench.config.timing,
            limit_s=bench.config.timeouts.timing_s,
            rng=rng,
        )
        self.auditor = Auditor(bench, session, loaded, self.watch, trail=trail, rng=rng)

    def believable(self, *, trail: Trail) -> Timing:
        """Race the best baseline, and those that may be the best as well; return the least gain.

        Which of two baselines is the best is itself measured: on a busy host the slower one may
        have looked it. So a win over one must be a win over each.

        Raises:
            Judged: our clock never agrees with the candidate's over the blocks that count.
            ChildFailed: the candidate's child fails.
            ProblemError: the reference fails.
        """
        baselines = self._session.baselines
        timing, raised = self._believed(baselines.best(), trail=trail)
        for rival in baselines.rivals():
            if timing.speedup_ci[0] <= 1.0:
                break
            timing, raised = min(
                (timing, raised),
                self._believed(rival, trail=trail),
                key=lambda found: found[0].speedup,
            )
        words = "" if raised < 1.005 else f", raised by {raised - 1.0:.0%}"
        trail.passed("timed_blocks", f"our clock supports the candidate's times{words}")
        return timing

    def _believed(self, baseline: Baseline, *, trail: Trail) -> tuple[Timing, float]:
        """Race one baseline until our clock agrees over the blocks that count.

        A disturbed race is run again, but its blocks stay in the account: a clock that lies does
        not get away with the one race in which the host's noise covered it.

        Returns:
            What was found, and the factor by which the candidate's times were raised.

        Raises:
            Judged: it never does.
            ChildFailed: the candidate's child fails.
            ProblemError: the reference fails.
        """
        race = self._each_by_itself
        if self._timing.protocol == "abba":
            race = self._race
            other = self._session.baselines.watch(baseline)
            with held(self.watch.child):
                trusted(self._session, other.find_depth)
            with held(other.child):
                self.watch.find_depth()
        ours: list[Block] = []
        theirs: list[Block] = []
        for number in range(1, BUSY_RACES + 1):
            raced = race(baseline)
            ours += raced.mine
            theirs += raced.theirs
            disagreement = self._disagreement(raced.mine, raced.theirs)
            disagreement = disagreement or self._disagreement(ours, theirs)
            timing, raised = self._found(raced)
            if disagreement is None and (raised <= DISTURBED or number >= RACES):
                break
            if number >= RACES and is_calm(_medians_us(theirs)):
                break
        if disagreement is not None:
            raise trail.fail("timed_blocks", Cheated(check="timed_blocks", detail=disagreement))
        self._session.baselines.note(baseline, calls_us(raced.theirs) or _medians_us(raced.theirs))
        return timing, raised

    def _disagreement(self, mine: list[Block], theirs: list[Block]) -> str | None:
        ended, other = _until_answered(mine, theirs)
        return blocks_disagree(mine, reference=theirs, device=self._device) or blocks_disagree(
            ended, reference=other, device=self._device
        )

    def _race(self, baseline: Baseline) -> Raced:
        other = self._session.baselines.watch(baseline)
        most = self._timing.max_pairs
        return run_race(
            baseline,
            mine=Side(self.watch, lambda calls: self._audited_block(calls, other)),
            theirs=Side(other, lambda calls: self._baseline_block(calls, other)),
            new_race=lambda: Race(
                min_pairs=min(self._timing.min_pairs, most),
                max_pairs=most,
                margin=max(MARGIN, math.expm1(APART[self._device])),
            ),
            rng=self._rng,
        )

    def _baseline_block(self, calls: int, other: Stopwatch) -> Block:
        with held(self.watch.child):
            return trusted(self._session, lambda: self._led(other, calls))

    def _audited_block(self, calls: int, other: Stopwatch) -> Block:
        # Held for the sake of likeness: to be stopped and woken costs something.
        with held(other.child):
            block = self._led(self.watch, calls)
        self.auditor.maybe_audit()
        return block

    def _led(self, watch: Stopwatch, calls: int) -> Block:
        if self._device == "cpu" and calls >= LEAD_CALLS:
            watch.block(1)
        return watch.block(calls)

    def _each_by_itself(self, baseline: Baseline) -> Raced:
        other, protocol = self._session.baselines.watch(baseline), self._timing.protocol
        with held(self.watch.child):
            theirs = trusted(self._session, lambda: measure(other, protocol=protocol))
        mine = measure(self.watch, protocol=protocol, after_block=self.auditor.maybe_audit)
        return Raced(baseline, mine=mine, theirs=theirs)

    def _found(self, raced: Raced) -> tuple[Timing, float]:
        """Return what was found, the candidate's times raised to what our clock supports.

        The factor by which they were raised is returned beside it, 1 where they were not.
        """
        baselines, protocol = self._session.baselines, self._timing.protocol
        claimed_us = _medians_us(raced.mine)
        times_us = self._supported_us(raced)
        raised = statistics.median(times_us) / statistics.median(claimed_us)
        if protocol == "abba":
            speedup, interval = speedup_interval(
                raced.ratios, net_ratios=raced.net_ratios, apart=APART[self._device]
            )
            baseline_us = statistics.median(_medians_us(raced.theirs))
            time_us, time_ci_us = statistics.median(times_us), median_ci(times_us)
            samples_us, baseline_samples_us = times_us, _medians_us(raced.theirs)
        else:
            mine, theirs = calls_us(raced.mine), calls_us(raced.theirs)
            speedup, interval = figures_speedup(theirs, candidate_us=mine, protocol=protocol)
            baseline_us = figure_us(theirs, protocol=protocol)
            low_us, high_us = figure_ci_us(mine, protocol=protocol)
            time_us = raised * figure_us(mine, protocol=protocol)
            time_ci_us = (raised * low_us, raised * high_us)
            samples_us, baseline_samples_us = [raised * each for each in mine], theirs
        if self._device == "cuda":
            raised *= max(1.0, baseline_us / (SLOWED * baselines.times_us[raced.baseline]))
        timing = Timing(
            time_us=time_us,
            time_ci_us=time_ci_us,
            baseline=raced.baseline,
            baseline_us=baseline_us,
            speedup=speedup / raised,
            speedup_ci=(interval[0] / raised, interval[1] / raised),
            eager_us=baselines.times_us["eager"],
            compile_us=baselines.times_us.get("compile"),
            max_autotune_us=baselines.times_us.get("max_autotune"),
            given_us=baselines.times_us.get(GIVEN),
            num_pairs=len(raced.ratios),
            protocol=protocol,
            sol_us=self._sol_us(time_ci_us),
            samples_us=kept_samples(samples_us),
            baseline_samples_us=kept_samples(baseline_samples_us),
        )
        return timing, raised

    def _sol_us(self, time_ci_us: tuple[float, float]) -> float | None:
        """The speed of light, unless the call surely takes less: then it is none.

        A CPU's memory is measured, on a busy host too slow; a GPU's may have been asked for nothing
        that its cache did not hold.
        """
        sol_us = self._session.light.sol_us
        return None if sol_us is None or time_ci_us[1] < sol_us else sol_us

    def _supported_us(self, raced: Raced) -> list[float]:
        slack = SLACK[self._device]
        more_us = max(
            hidden_us(mine, theirs=theirs, slack=slack)
            for mine, theirs in (
                (raced.mine, raced.theirs),
                _until_answered(raced.mine, raced.theirs),
            )
        )
        return [block.call_us + more_us for block in raced.mine]


def trusted(session: Session, run: Callable[[], _T]) -> _T:
    """Run something on the baselines; whatever fails there is the problem's fault.

    Raises:
        ProblemError: it fails.
    """
    try:
        return run()
    except ChildFailed as failure:
        raise ProblemError(
            session.problem.name,
            f"the reference fails while it is timed: {last_line(failure.log)}",
        ) from None


def _medians_us(blocks: Sequence[Block]) -> list[float]:
    return [block.call_us for block in blocks]


def _until_answered(mine: list[Block], theirs: list[Block]) -> tuple[list[Block], list[Block]]:
    return until_answered(mine, trusted=theirs), until_answered(theirs, trusted=theirs)
