"""Which rows an export takes, and why the others are left out: each is counted by its reason."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from kopt.candidate import SEED_PROGRAMMER
from kopt.data.corpus.near_duplicates import THRESHOLD, source_digest
from kopt.data.corpus.splits import SplitRule
from kopt.data.corpus.trial_row import Judged, TrialRow
from kopt.problem import Problem

DPO_MARGIN = 0.05
MAX_PAIRS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What an export takes."""

    ladders: Collection[str] = ()
    """Numeric policies; none: any. So are `tracks` and `languages`."""
    tracks: Collection[str] = ()
    languages: Collection[str] = ()
    min_speedup: float | None = None
    """Least low end of a speed-up's interval; None: right is enough."""
    degenerate: bool = False
    """Whether problems count on which a speed-up means little."""
    with_rebuilt: bool = True
    """Whether rows count whose author was asked in no words: their prompt is built again."""
    near_duplicate: float | None = THRESHOLD
    """Similarity of sources from which on one of a problem is left out; None keeps all."""
    excluded: Collection[str] = ()
    """Problem ids, and digests of their normalised sources, that must not be learned from."""
    splits: SplitRule = field(default_factory=SplitRule)
    turns: str = "both"
    """Of SFT: `single`, `lineage` or `both`."""
    margin: float = DPO_MARGIN
    """Of DPO: a pair is `faster` where the interval's low end is above the other's high end by
    this share."""
    max_pairs: int = MAX_PAIRS
    """Of DPO: pairs of one prompt, the clearest first."""

    def why_no_problem(self, problem: Problem | None, *, problem_id: str) -> str:
        """Return why nothing of a problem is taken; empty where it is."""
        if problem_id in self.excluded:
            return "problem is excluded"
        if problem is None:
            return "problem is lost"
        if source_digest(problem.source) in self.excluded:
            return "problem is excluded"
        if problem.degenerate and not self.degenerate:
            return "problem is degenerate"
        return ""

    def why_no_terms(self, row: TrialRow) -> str:
        """Return why a row's terms are not those asked for; empty where they are."""
        judged = row.judged
        if row.made is not None and row.made["programmer"] == SEED_PROGRAMMER:
            return "seed of the search"
        if judged is None:
            return ""
        if judged.degenerate and not self.degenerate:
            return "problem is degenerate"
        if self.ladders and judged.ladder not in self.ladders:
            return "another ladder"
        if self.tracks and judged.track not in self.tracks:
            return "another track"
        if self.languages and row.made is not None and row.made["language"] not in self.languages:
            return "another language"
        return ""

    def why_not_good(self, judged: Judged | None) -> str:
        """Return why a row is nothing to imitate; empty where it is."""
        if judged is None:
            return "not judged"
        if not judged.is_correct:
            return f"verdict {judged.kind}"
        low = None if judged.speedup_ci is None else judged.speedup_ci[0]
        if self.min_speedup is not None and (low is None or low < self.min_speedup):
            return "not fast enough"
        return ""
