"""A deterministic world for searches: what each slot's candidate is, and what becomes of it.

Tests, golden trees and benchmarks drive a search with it. An outcome depends on the expansion's
seed and the slot alone, so it is the same in whatever order a search asks and hears.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from kopt.expansion import Expansion, Mode
from kopt.identity import text_id
from kopt.search import Search
from kopt.search.telling import tell_candidate
from kopt.testing.fakes import correct
from kopt.verdict import (
    Cheated,
    CompileFailed,
    Crashed,
    Incorrect,
    NumericError,
    TimedOut,
    Verdict,
)

CORRECT_OF_256: dict[Mode, int] = {"initial": 96, "debug": 64, "optimize": 176}
"""How often a candidate is correct, by mode."""
HARD_CORRECT_OF_256: dict[Mode, int] = {"initial": 8, "debug": 24, "optimize": 96}
"""The same on a hard problem, whose tree has dead ends."""

STRATEGIES = (
    "Tile the loop {size}x{size}",
    "Vectorise loads, {size} bytes",
    "Fuse the epilogue",
    "Keep {size} partial sums in registers",
    "",
)
"""What a candidate's programmer says it meant to do, with one number that varies."""

Outcome = Callable[[Expansion, int], Verdict]


def candidate_at(expansion: Expansion, *, index: int) -> str:
    """Return the candidate id (64 hex digits) of a slot."""
    return text_id(f"{expansion.seed} {index}")


def strategy_at(expansion: Expansion, *, index: int) -> str:
    """Return the strategy of a slot's candidate, by a hash of the expansion's seed and the index.

    Two of three are the first of STRATEGIES, so that a search now and then sees few directions.
    """
    digest = hashlib.sha256(f"strategy {expansion.seed} {index}".encode()).digest()
    place = digest[0] % (3 * len(STRATEGIES))
    strategy = STRATEGIES[place] if place < len(STRATEGIES) else STRATEGIES[0]
    return strategy.format(size=2 ** (digest[1] % 8))


def hashed_outcome(expansion: Expansion, index: int) -> Verdict:
    """Return the verdict of a slot: any kind, by a hash of the expansion's seed and the index.

    Speed-ups run from 0.1 to 6.47 in steps of 0.025.
    """
    return _outcome(expansion, index=index, correct_of_256=CORRECT_OF_256)


def hard_outcome(expansion: Expansion, index: int) -> Verdict:
    """Return the verdict of a slot on a hard problem: the same, but few are correct."""
    return _outcome(expansion, index=index, correct_of_256=HARD_CORRECT_OF_256)


def tell_slot(
    search: Search, expansion: Expansion, *, index: int, outcome: Outcome = hashed_outcome
) -> None:
    """Tell one slot of an expansion its outcome."""
    tell_candidate(
        search,
        expansion.ordinal,
        index,
        candidate=candidate_at(expansion, index=index),
        verdict=outcome(expansion, index),
        strategy=strategy_at(expansion, index=index),
    )


def drive(
    search: Search,
    *,
    in_flight: int = 1,
    max_told: int | None = None,
    outcome: Outcome = hashed_outcome,
) -> list[Expansion]:
    """Drive a search to its end, and return what it asked.

    Args:
        search: a search with nothing pending.
        in_flight: expansions kept under way; the oldest is answered first, slot by slot. 1 is the
            sequential algorithm.
        max_told: stop, with pending slots left, once so many candidates were told; None for the
            search's own end.
        outcome: the verdict of each slot.
    """
    asked: list[Expansion] = []
    under_way: list[Expansion] = []
    while True:
        room = in_flight - len(under_way)
        new = search.ask(room) if room else []
        asked += new
        under_way += new
        if not under_way:
            return asked
        expansion = under_way.pop(0)
        for index in range(expansion.num_candidates):
            if search.told() == max_told:
                return asked
            tell_slot(search, expansion, index=index, outcome=outcome)
        if search.told() == max_told:
            return asked


def _outcome(expansion: Expansion, *, index: int, correct_of_256: Mapping[Mode, int]) -> Verdict:
    digest = hashlib.sha256(f"outcome {expansion.seed} {index}".encode()).digest()
    if digest[0] < correct_of_256[expansion.mode]:
        return correct(0.1 + 0.025 * digest[1])
    match digest[2] % 8:
        case 0:
            return CompileFailed(stage="build", log="error: expected ';'")
        case 1:
            return Crashed(stage="correctness", log="RuntimeError: out of bounds")
        case 2:
            return TimedOut(stage="timing", limit_s=60.0)
        case 3:
            return Cheated(check="two_clocks", detail="the clocks disagree by 80 %")
        case _:
            error = NumericError(max_abs=1.0, rel_norm=(1 + digest[3]) / 256, rho=None)
            return Incorrect(check="values:own", detail="expected 1, found 2 at [0]", error=error)
