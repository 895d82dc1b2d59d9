"""The section of the programmer `ensemble`: several models that write for one search."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.actors.programmers.programmer_section import ProgrammerSection
from kopt.actors.programmers.vllm_config import VllmConfig
from kopt.section import Section, kind_of

MemberProgrammer = Annotated[
    Annotated[OpenAIConfig, Tag("openai")] | Annotated[VllmConfig, Tag("vllm")],
    Discriminator(kind_of),
]
"""A model's section, as it would stand alone."""


class MemberConfig(Section):
    """One model of an ensemble."""

    weight: float = Field(default=1.0, gt=0)
    """Share of the expansions that it writes, beside the others' weights."""
    programmer: MemberProgrammer


class EnsembleConfig(ProgrammerSection):
    """Several models: each expansion is written by one of them, drawn by their weights."""

    kind: Literal["ensemble"] = "ensemble"
    members: tuple[MemberConfig, ...] = Field(min_length=2)
    """The one of the largest weight, or the first of several such, also condenses profiles and
    draws lessons."""
    seeds: Literal["rewriter"] | None = None
    """As programmer.seeds of one model, for the whole tree."""

    @property
    def expansions_at_once(self) -> int:
        """As many as all members together."""
        return sum(member.programmer.expansions_at_once for member in self.members)

    @property
    def lead(self) -> int:
        """Index of the member that is asked whatever is no candidate."""
        weights = [member.weight for member in self.members]
        return weights.index(max(weights))

    def reserved_gpus(self, device: str) -> int:
        """Return the GPUs that the members' servers take."""
        return sum(member.programmer.reserved_gpus(device) for member in self.members)

    @model_validator(mode="after")
    def _a_tree_s_seeds_are_not_a_member_s(self) -> EnsembleConfig:
        for number, member in enumerate(self.members):
            if member.programmer.seeds is not None:
                raise ValueError(
                    f"members.{number}.programmer.seeds belongs to the whole tree: "
                    "set programmer.seeds"
                )
        return self
