"""Where a fleet stands, folded from its events: pure, shown by kopt.cli.progress."""

from __future__ import annotations

from dataclasses import dataclass, field

from kopt.events import (
    AnswerReceived,
    CandidateMade,
    EventBody,
    ExpansionAsked,
    ExpansionCancelled,
    SearchEnded,
    SearchStarted,
    Told,
    VerdictReached,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The fastest correct candidate of a problem so far."""

    speedup: float
    low: float
    high: float
    baseline: str
    time_us: float


@dataclass(slots=True, kw_only=True)
class SearchStanding:
    """One search: slots by where they are."""

    problem: str
    """The problem's name."""
    writing: dict[int, int] = field(default_factory=dict)
    """Expansion to slots that the programmer has yet to fill."""
    judging: set[tuple[int, int]] = field(default_factory=set)
    """(expansion, index) made and not yet judged."""
    waiting: set[tuple[int, int]] = field(default_factory=set)
    """Judged and not yet told."""
    told: int = 0
    correct: int = 0
    faulty: int = 0
    """Answers that held no candidate."""
    ended: str | None = None
    failed: bool = False


class Standing:
    """Where every search of a fleet stands; `observe` takes its events in order."""

    def __init__(self, *, searches: int, budget: int) -> None:
        """Begin with nothing observed.

        Args:
            searches: of the whole fleet.
            budget: candidates told in one search, at most.
        """
        self.num_searches = searches
        self.budget = budget
        self.searches: dict[str, SearchStanding] = {}
        self.best: dict[str, Best] = {}
        """Problem name to its best; only problems that have one."""

    def observe(self, search: str, event: EventBody) -> None:
        """Take one event in."""
        if isinstance(event, SearchStarted):
            self.searches[search] = SearchStanding(problem=event.problem_name)
            return
        standing = self.searches.get(search)
        if standing is None:
            return
        match event:
            case ExpansionAsked():
                standing.writing[event.expansion] = event.n
                standing.ended = None  # its budget was raised
            case AnswerReceived():
                standing.faulty += bool(event.fault)
                standing.writing[event.expansion] = event.candidates
                _drop_empty(standing, event.expansion)
            case CandidateMade():
                standing.judging.add((event.expansion, event.index))
                standing.writing[event.expansion] = standing.writing.get(event.expansion, 1) - 1
                _drop_empty(standing, event.expansion)
            case VerdictReached():
                standing.judging.discard((event.expansion, event.index))
                standing.waiting.add((event.expansion, event.index))
                self._judged(standing, event)
            case Told():
                standing.waiting.discard((event.expansion, event.index))
                standing.told += 1
            case ExpansionCancelled():
                standing.writing.pop(event.expansion, None)
                standing.judging = {s for s in standing.judging if s[0] != event.expansion}
                standing.waiting = {s for s in standing.waiting if s[0] != event.expansion}
            case SearchEnded():
                standing.ended, standing.failed = event.reason, event.failed
            case _:
                pass

    def _judged(self, standing: SearchStanding, event: VerdictReached) -> None:
        record = event.eval
        speedup, interval = record["speedup"], record["speedup_ci"]
        if record["kind"] != "correct" or speedup is None or interval is None:
            return
        standing.correct += 1
        known = self.best.get(standing.problem)
        if known is None or (interval[0], speedup) > (known.low, known.speedup):
            self.best[standing.problem] = Best(
                speedup=speedup,
                low=interval[0],
                high=interval[1],
                baseline=record["baseline"] or "eager",
                time_us=record["time_us"] or 0.0,
            )

    @property
    def told(self) -> int:
        """Candidates told, over all searches."""
        return sum(search.told for search in self.searches.values())

    @property
    def writing(self) -> int:
        """Slots in the programmer lane."""
        return sum(sum(search.writing.values()) for search in self.searches.values())

    @property
    def judging(self) -> int:
        """Candidates in the build, verify and timing lanes."""
        return sum(len(search.judging) for search in self.searches.values())

    @property
    def ended(self) -> int:
        """Searches that ended."""
        return sum(search.ended is not None for search in self.searches.values())

    @property
    def left(self) -> int:
        """Candidates still to tell, at most: a search may end before its budget is spent."""
        open_searches = self.num_searches - self.ended
        told = sum(search.told for search in self.searches.values() if search.ended is None)
        return max(0, open_searches * self.budget - told)

    def seconds_left(self, *, told_here: int, elapsed_s: float) -> float | None:
        """Return at most how long the rest takes at the pace so far; None before any is known.

        Args:
            told_here: candidates told in `elapsed_s`; a resumed run has told others before.
            elapsed_s: seconds since this process began to search.
        """
        if told_here <= 0:
            return None
        return self.left * elapsed_s / told_here


def _drop_empty(standing: SearchStanding, expansion: int) -> None:
    if standing.writing.get(expansion, 0) <= 0:
        standing.writing.pop(expansion, None)
