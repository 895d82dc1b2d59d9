"""The searches' section of the configuration: one class a policy, told apart by `kind`."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from kopt.plugin_kind import PluginKind
from kopt.section import Section, kind_of


class SearchSection(Section):
    """What every policy has: its budget."""

    iterations: int = Field(default=30, ge=1)
    """Expansions; the budget is iterations x candidates told candidates, spent exactly."""
    candidates: int = Field(default=2, ge=1)
    """Candidates asked for in one expansion (N)."""
    seeds: tuple[str, ...] = ()
    """Candidate files, and folders of earlier runs (the best of each problem): the first ideas from
    ROOT. A single one may stand alone."""

    @field_validator("seeds", mode="before")
    @classmethod
    def _one_may_stand_alone(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @property
    def budget(self) -> int:
        """Candidates to be told in all."""
        return self.iterations * self.candidates


class MctsConfig(SearchSection):
    """KernelPro's MCTS (§3.3, Alg. 1)."""

    kind: Literal["mcts"] = "mcts"
    c_uct: float = Field(default=math.sqrt(2.0), ge=0.0)
    """Weight of exploration in UCT."""
    c_pw_failed: float = Field(default=2.0, gt=0.0)
    """Progressive widening constant of ROOT and of failed nodes (§3.3.2)."""
    c_pw_successful: float = Field(default=3.0, gt=0.0)
    """The same of correct nodes."""
    alpha: float = Field(default=0.5, ge=0.0, le=1.0)
    """Exponent of progressive widening: at most C_pw · N^alpha children."""
    terminal_repairs: int = Field(default=3, ge=1)
    """A failed node with this many children, all failed, is terminal (§3.3.4)."""


class BestOfNConfig(SearchSection):
    """The control: every candidate is a fresh seed."""

    kind: Literal["best_of_n"] = "best_of_n"


class GreedyConfig(SearchSection):
    """KernelPro's greedy search (App. E). The paper gives no numbers; these are ours."""

    kind: Literal["greedy"] = "greedy"
    repair_after: int = Field(default=2, ge=1)
    """So many failed expansions in a row call for a repair, where something correct is known."""
    restart_after: int = Field(default=3, ge=1)
    """Every so many failed expansions in a row call for fresh seeds; three, as in §3.3.4."""


class BeamConfig(SearchSection):
    """KernelOPT's beam search (Alg. 1, §4.3, §5), with the paper's letters.

    T rounds of N plans, spread over a beam of B candidates, each plan with up to K retries. The
    budget is T x N candidates as in every search, retries included: where all plans pass at once it
    is the paper's T rounds, and each retry takes the place of a later plan. The paper would write
    up to T x N x (1 + K) candidates: `iterations=25`.
    """

    kind: Literal["beam"] = "beam"
    iterations: int = Field(default=5, ge=1)
    """T; a round is `candidates` plans."""
    candidates: int = Field(default=4, ge=1)
    """N: plans of a round, over the whole beam. Four are one for each of four chains."""
    retries: int = Field(default=4, ge=0)
    """K: repairs of a plan that failed, each made from the last."""
    width: int = Field(default=4, ge=1)
    """B: candidates that a round starts from. 1 is the paper's arm without a beam."""
    c_ucb: float = Field(default=1.4, ge=0.0)
    """Weight of exploration where there are too few plans for every candidate of the beam."""
    idle_iterations: int | None = Field(default=2, ge=1)
    """So many rounds in a row without a better candidate end the search; None for no such end."""
    meltdown_window: int = Field(default=6, ge=1)
    """Latest plans whose directions are compared."""
    meltdown_directions: int = Field(default=2, ge=1)
    """So few different ones among them bring ROOT into the next round."""


class PluginSearchConfig(SearchSection):
    """A search of another package (entry-point group `kopt.searches`), or of a file of yours."""

    kind: PluginKind
    """`package/name`, the name of the entry point, or `path/to/mine.py:NAME`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Its own settings; its factory checks them."""


SearchConfig = Annotated[
    Annotated[MctsConfig, Tag("mcts")]
    | Annotated[BestOfNConfig, Tag("best_of_n")]
    | Annotated[GreedyConfig, Tag("greedy")]
    | Annotated[BeamConfig, Tag("beam")]
    | Annotated[PluginSearchConfig, Tag("plugin")],
    Discriminator(kind_of),
]
"""Any search's section."""
