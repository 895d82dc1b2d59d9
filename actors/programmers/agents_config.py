"""The section `pipeline`: one author, or KernelOPT's roles (kopt.actors.programmers.agents)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from kopt.agent_call import Libraries
from kopt.section import Section, kind_of


class SingleConfig(Section):
    """One author writes a whole program from one prompt (KernelPro)."""

    kind: Literal["single"] = "single"


class AgentTokens(Section):
    """Tokens of each role's conversation at most, as estimated: sections give way, then turns."""

    planner: int = Field(default=16_000, ge=4_000)
    executor: int = Field(default=24_000, ge=4_000)
    """Of the one that carries out a plan, and mends what failed."""
    codegen: int = Field(default=24_000, ge=4_000)
    """Of the one that writes from the reference alone."""
    fusion: int = Field(default=24_000, ge=4_000)
    """Of the one that writes one kernel for several operations of a compiled model."""
    summarizer: int = Field(default=12_000, ge=4_000)


class AgentsConfig(Section):
    """KernelOPT's roles (§4.2, App. A), all played by the configured programmer.

    How often what failed is mended is the search's matter: `search.retries` of a beam, K.
    """

    kind: Literal["agents"] = "agents"
    max_queries: int = Field(default=6, ge=0)
    """Times that the planner may look at the profile, the source or the memory before its plan."""
    resubmissions: int = Field(default=2, ge=0)
    """Times that a program which breaks a rule goes back before it is judged as it is."""
    libraries: Libraries = "keep"
    """What becomes of library calls (products, convolutions): planner and codegen are told to leave
    them alone (KernelOPT), or with `replace` to write them too (its ablation C6)."""
    tokens: AgentTokens = AgentTokens()

    @property
    def most_calls(self) -> int:
        """Calls of one idea at most: every query, a reminder, the plan, and all submissions."""
        return self.max_queries + 2 + self.resubmissions + 1


PipelineConfig = Annotated[
    Annotated[SingleConfig, Tag("single")] | Annotated[AgentsConfig, Tag("agents")],
    Discriminator(kind_of),
]
"""Either section."""
