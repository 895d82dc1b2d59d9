"""The section `fleet.stats`: how the tables at the end of a multirun count."""

from __future__ import annotations

from pydantic import Field

from kopt.analysis.trial import OverSeeds
from kopt.section import Section


class StatsConfig(Section):
    """What `kopt stats` is asked at the end of a multirun; its options do the same by hand."""

    over_seeds: OverSeeds = "mean"
    """A problem's score by its searches: their geometric mean, or the best (KernelPro C.1)."""
    cap: float | None = Field(default=None, gt=1)
    """Most that a search counts in comparisons and best@N; null for no cap."""
    pool: bool = False
    """Whether jobs of one arm's name are its repetitions, though their settings differ."""

    @property
    def words(self) -> str:
        """The same as options of `kopt stats`."""
        options = [
            "--pool" if self.pool else "",
            f"--over-seeds {self.over_seeds}" if self.over_seeds != "mean" else "",
            f"--cap {self.cap:g}" if self.cap is not None else "",
        ]
        return " ".join(filter(None, options))
