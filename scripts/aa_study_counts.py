"""What the A/A study counts: wins of equal kernels, gains found, and how sure either rate is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from aa_study_kernels import Kind
from scipy.stats import binomtest

FALSE_WINS, FOUND = 1 / 300, 0.95
"""Share of equal kernels that may be called faster, and of true gains that must be."""
OFF = 0.01
"""By how much the timed gain may be off the one wanted: one of 30 % is found by anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often something happened."""

    count: int
    trials: int

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper-Pearson, 95 %; (0, 1) without a trial."""
        if not self.trials:
            return 0.0, 1.0
        found = binomtest(self.count, self.trials).proportion_ci(0.95, method="exact")
        return float(found.low), float(found.high)

    def to_json(self) -> dict[str, object]:
        """Return count, trials, rate and interval."""
        rate = self.count / self.trials if self.trials else None
        return {**asdict(self), "rate": rate, "ci": list(self.interval)}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.count} of {self.trials} [{low:.2%}, {high:.2%}]"


@dataclass(slots=True, kw_only=True)
class Series:
    """Races of one candidate against one reference."""

    kind: Kind
    """Of kernel: of one launch, or of many."""
    size_us: float
    """Wanted of a call."""
    elements: int
    gain: float
    """Of the candidate's work over the baseline's; 0 for equal ones."""
    wanted: int
    """Races."""
    baseline_us: float = 0.0
    """Found, by the first pair of processes."""
    gate: int = 0
    interval: int = 0
    refused: int = 0
    trials: int = 0
    """Those that were refused included."""
    pairs: int = 0
    """Of times, in all races together."""
    centers: list[float] = field(default_factory=list)
    """Mean ln(speed-up) of each pair of processes."""
    widths: list[float] = field(default_factory=list)
    """Logarithm of each interval's high end over its low one."""
    races_s: float = 0.0
    """In races alone."""
    wall_s: float = 0.0
    """Processes included."""

    def races_now(self, least: int, *, load_s: float, left_s: float) -> int:
        """Return how many races a pair of processes runs, so that all fit into the time.

        Args:
            least: of them, unless fewer are wanted.
            load_s: that it takes until two processes can race.
            left_s: for all races of this series that are left.
        """
        left = self.wanted - self.trials
        if left <= 0 or not self.trials:
            return min(left, least)
        spare_s = left_s - left * self.races_s / self.trials
        loads = int(spare_s / load_s) + 1  # this pair is loaded
        return min(left, max(least, math.ceil(left / max(loads, 1))))

    @property
    def apart(self) -> float:
        """How far pairs of processes lie from the ratio of work, root mean square; 0.01 is 1 %."""
        true = math.log1p(self.gain)
        squares = [(center - true) ** 2 for center in self.centers]
        return math.sqrt(statistics.fmean(squares)) if squares else 0.0

    @property
    def timed_gain(self) -> float:
        """Of the candidate over the baseline, by the time it took; 0 where nothing was raced."""
        return math.expm1(statistics.fmean(self.centers)) if self.centers else 0.0

    def rate(self, rule: str) -> Rate:
        """Return how often a rule called the candidate faster."""
        return Rate(count=int(getattr(self, rule)), trials=self.trials)

    def to_json(self) -> dict[str, object]:
        """Return the counts with their rates."""
        rates = {rule: self.rate(rule).to_json() for rule in ("gate", "interval", "refused")}
        return {**asdict(self), **rates, "apart": self.apart, "timed_gain": self.timed_gain}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyVerdict:
    """The rates over all sizes, and whether they are as they must be."""

    false_wins: Rate
    false_wins_gate: Rate
    gain_found: Rate
    gains_off: float
    """By how much the gain that was timed is off the one wanted, in the series where most."""
    is_complete: bool
    """Whether every race that was wanted was run."""

    @property
    def is_fair(self) -> bool:
        """Whether few enough equal kernels were called faster."""
        return self.false_wins.trials > 0 and (
            self.false_wins.count <= self.false_wins.trials * FALSE_WINS
        )

    @property
    def is_keen(self) -> bool:
        """Whether enough true gains were found, and were what they were to be."""
        found = self.gain_found
        return found.count > FOUND * found.trials and self.gains_off <= OFF

    @property
    def holds(self) -> bool:
        """Whether the study shows what it must."""
        return self.is_complete and self.is_fair and self.is_keen

    def to_json(self) -> dict[str, object]:
        """Return the rates, and what they mean."""
        return {
            "false_wins_interval": self.false_wins.to_json(),
            "false_wins_gate": self.false_wins_gate.to_json(),
            "gain_found": self.gain_found.to_json(),
            "gains_off": self.gains_off,
            "is_complete": self.is_complete,
            "is_fair": self.is_fair,
            "is_keen": self.is_keen,
        }


def verdict_of(found: Sequence[Series]) -> StudyVerdict:
    """Return what all series together show.

    Gains are those of single kernels: two processes of one chain of launches lie further apart than
    a gain of 3 % (DECISIONS.md, 61), so that of a chain is printed and not asked for.
    """
    equal = [series for series in found if not series.gain]
    gains = [series for series in found if series.gain and series.kind == "single"]
    return StudyVerdict(
        false_wins=_together(equal, "interval"),
        false_wins_gate=_together(equal, "gate"),
        gain_found=_together(gains, "interval"),
        gains_off=max((abs(each.timed_gain - each.gain) for each in gains), default=0.0),
        is_complete=all(series.trials >= series.wanted for series in found),
    )


def text_of(series: Series) -> str:
    """Return a series in a line for a person."""
    kind = "equal" if not series.gain else f"{series.gain:.1%} less work"
    raced = max(series.trials - series.refused, 1)
    width = statistics.median(series.widths) if series.widths else 0.0
    most = max((abs(each - math.log1p(series.gain)) for each in series.centers), default=0.0)
    return (
        f"{series.kind}, {series.size_us:g} us ({series.baseline_us:.4g} us), {kind}: "
        f"called faster {series.rate('interval')}, passed gate 4 {series.rate('gate')}, "
        f"{series.refused} refused; {len(series.centers)} pairs of processes, "
        f"{series.apart:.2%} off (rms), {most:.2%} at most; intervals {width:.1%} wide, "
        f"{series.pairs / raced:.1f} pairs and {series.wall_s / max(series.trials, 1):.2f} s a race"
    )


def lines_of(verdict: StudyVerdict) -> list[str]:
    """Return the verdict in lines for a person."""
    lines = [
        f"equal kernels called faster: {verdict.false_wins} (at most 1 of 300); "
        f"passed gate 4: {verdict.false_wins_gate}",
        f"a true gain of 3 % of single kernels found: {verdict.gain_found} (above 95 %); as timed "
        f"it was off by {verdict.gains_off:.2%} of the time at most (no more than {OFF:.0%})",
    ]
    return lines if verdict.is_complete else [*lines, "not complete: the time was up"]


def _together(series: Sequence[Series], rule: str) -> Rate:
    return Rate(
        count=sum(each.rate(rule).count for each in series),
        trials=sum(each.trials for each in series),
    )
