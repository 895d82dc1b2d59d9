"""What the A/A study counts: wins of equal kernels, gains found, and how sure either rate is."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from scipy.stats import binomtest

FALSE_WINS, FOUND = 1 / 300, 0.95
"""Share of equal kernels that may be called faster, and of true gains that must be."""


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

    size_us: float
    """Wanted."""
    baseline_us: float
    """Found."""
    elements: int
    gain: float
    """Of the candidate's work over the baseline's; 0 for equal ones."""
    gate: int = 0
    interval: int = 0
    refused: int = 0
    trials: int = 0
    """Those that were refused included."""
    pairs: int = 0
    wall_s: float = 0.0

    def rate(self, rule: str) -> Rate:
        """Return how often a rule called the candidate faster."""
        return Rate(count=int(getattr(self, rule)), trials=self.trials)

    def to_json(self) -> dict[str, object]:
        """Return the counts with their rates."""
        rates = {rule: self.rate(rule).to_json() for rule in ("gate", "interval", "refused")}
        return {**asdict(self), **rates}


def text_of(series: Series) -> str:
    """Return a series in a line for a person."""
    kind = "equal" if not series.gain else f"{series.gain:.1%} less work"
    raced = max(series.trials - series.refused, 1)
    return (
        f"{series.size_us:g} us ({series.baseline_us:.4g} us), {kind}: "
        f"by gate {series.rate('gate')}, by interval {series.rate('interval')}, "
        f"{series.refused} refused; {series.pairs / raced:.1f} pairs and "
        f"{series.wall_s / max(series.trials, 1):.2f} s a race"
    )


def verdict_of(found: list[Series]) -> dict[str, object]:
    """Return the rates over all sizes, and whether they are as they must be."""
    equal = [series for series in found if not series.gain]
    gains = [series for series in found if series.gain]
    wins = {
        rule: Rate(
            count=sum(series.rate(rule).count for series in equal),
            trials=sum(series.trials for series in equal),
        )
        for rule in ("gate", "interval")
    }
    caught = Rate(
        count=sum(series.interval for series in gains),
        trials=sum(series.trials for series in gains),
    )
    is_fair = wins["gate"].trials > 0 and wins["gate"].count <= wins["gate"].trials * FALSE_WINS
    is_keen = caught.trials > 0 and caught.count > FOUND * caught.trials
    return {
        "false_wins_gate": wins["gate"].to_json(),
        "false_wins_interval": wins["interval"].to_json(),
        "gain_found": caught.to_json(),
        "is_fair": is_fair,
        "is_keen": is_keen,
    }


def words_of(rate: object) -> str:
    """Return a rate of `verdict_of` in words."""
    assert isinstance(rate, dict)
    return str(Rate(count=rate["count"], trials=rate["trials"]))
