"""The searches' section of the configuration: one class a policy, told apart by `kind`."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from kopt.section import Section


class SearchSection(Section):
    """What every policy has: its budget."""

    iterations: int = Field(default=30, ge=1)
    """Expansions; the budget is iterations x candidates told candidates, spent exactly."""
    candidates: int = Field(default=2, ge=1)
    """Candidates asked for in one expansion (N)."""

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


class PluginSearchConfig(SearchSection):
    """A search of another package, found by the entry-point group `kopt.searches`."""

    kind: str = Field(pattern=r"^[^/]+/[^/]+$")
    """`package/name`, the name of the entry point."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Its own settings; its factory checks them."""


def _kind(section: object) -> str | None:
    """Return the kind of a section; `plugin` for any with a package's prefix."""
    kind = section.get("kind") if isinstance(section, dict) else getattr(section, "kind", None)
    return "plugin" if isinstance(kind, str) and "/" in kind else kind


SearchConfig = Annotated[
    Annotated[MctsConfig, Tag("mcts")]
    | Annotated[BestOfNConfig, Tag("best_of_n")]
    | Annotated[PluginSearchConfig, Tag("plugin")],
    Discriminator(_kind),
]
"""Any search's section."""
