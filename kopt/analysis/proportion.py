"""Shares of problems with their intervals, fast_p among them.

Intervals are Wilson's, at 95 %, with the number of problems as the sample's size. Where problems
have several seeds, a problem counts by the share of them: seeds of a problem are not independent
problems, and the interval is then on the wide side. Source: Wilson 1927; KernelBench for fast_p.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from kopt.analysis.trial import OverSeeds, Trial

FAST_P = (0.0, 1.0, 1.5, 2.0, 5.0, 10.0)
"""Thresholds of fast_p; 0 is the share that is correct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share, and how sure it is."""

    share: float
    """0 to 1."""
    low: float
    high: float
    num: int
    """Of which it is a share: problems, or turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FastP:
    """fast_p: the share of problems solved with a speed-up above p."""

    p: float
    share: Share


def wilson(successes: float, *, num: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of a share.

    Args:
        successes: 0 to num; may be a fraction where one of `num` counts in part.
        num: size of the sample, >= 1.
        level: coverage, between 0 and 1.

    Raises:
        ValueError: num is below 1, or successes are not within it.
    """
    if num < 1 or not 0.0 <= successes <= num:
        raise ValueError(f"expected 0 <= successes <= num and num >= 1, got {successes} of {num}")
    from scipy.special import ndtri  # half a second

    z = float(ndtri((1.0 + level) / 2.0))
    share, scale = successes / num, 1.0 + z * z / num
    centre = (share + z * z / (2.0 * num)) / scale
    half = z * math.sqrt(share * (1.0 - share) / num + z * z / (4.0 * num * num)) / scale
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == num else centre + half
    return low, high


def share_of(
    trials: Iterable[Trial], *, holds: Callable[[Trial], bool], over_seeds: OverSeeds
) -> Share | None:
    """Return the share of problems of which something holds; None where there are no problems.

    Args:
        trials: of one arm.
        holds: what is asked of a search.
        over_seeds: `mean` counts a problem by the share of its seeds, `best` as one where it holds
            of any.
    """
    seeds: dict[str, list[bool]] = {}
    for trial in trials:
        seeds.setdefault(trial.problem, []).append(holds(trial))
    if not seeds:
        return None
    if over_seeds == "best":
        successes = float(sum(any(held) for held in seeds.values()))
    else:
        successes = math.fsum(sum(held) / len(held) for held in seeds.values())
    low, high = wilson(min(successes, len(seeds)), num=len(seeds))
    return Share(share=successes / len(seeds), low=low, high=high, num=len(seeds))


def fast_p(
    trials: Iterable[Trial], *, thresholds: Iterable[float] = FAST_P, over_seeds: OverSeeds
) -> list[FastP]:
    """Return fast_p for each threshold: correct, and the speed-up above it; [] of no trials."""
    listed = list(trials)
    found = []
    for p in thresholds:
        share = share_of(listed, holds=partial(_above, p=p), over_seeds=over_seeds)
        if share is not None:
            found.append(FastP(p=p, share=share))
    return found


def _above(trial: Trial, *, p: float) -> bool:
    return trial.speedup is not None and trial.speedup > p
