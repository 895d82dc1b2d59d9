"""The section `memory` of the configuration: what authors are reminded of, each by a switch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from kopt.memory.experience import CAPACITY, LEAST_GAIN, LEAST_LOSS, ExperienceRule
from kopt.memory.rule import MemoryRule
from kopt.section import Section

Switch = Literal["on", "off"]


class MemoryConfig(Section):
    """What is remembered and told; see kopt.memory."""

    search: Switch | None = None
    """The search memory (KernelPro §3.4): five sections, drawn from each expansion. Null: on where
    authors read words, off with rewriter and recorded."""
    extractor: Literal["rules", "model"] | None = "rules"
    """Who draws its entries: `rules` (verdicts, faults, tool calls; costs nothing), or the model
    that writes, by one more call an expansion, beside the search. Null: the model where there is
    one, except with deterministic=true; `model` with deterministic=true has each expansion wait
    for its lessons."""
    history: Switch | None = None
    """The version's ancestors and what was tried from it; null as for `search`."""
    experience: Switch = "off"
    """The experience queue (KernelOPT §4.5): what the most telling changes did."""
    capacity: int = Field(default=CAPACITY, ge=1)
    """Its items."""
    least_gain: float = Field(default=LEAST_GAIN, gt=1)
    """A change is kept from this factor of speed on."""
    least_loss: float = Field(default=LEAST_LOSS, gt=1)
    """And from this factor of slowness on."""
    tracker: str | None = None
    """File in which runs add up which strategies paid (KernelOPT §4.5); it is made where it is not
    there. A search is told what it says when the search begins. Null: none."""
    guidelines: Switch = "off"
    """The shipped guidelines for the device."""
    retrieval: Switch = "off"
    """The lineage of the fastest kernel of the most similar past problem, never of the problem
    itself. A search is told what earlier runs had found when it began."""
    past: str | None = None
    """Folder of the runs that retrieval looks at. Null: the one that this run lies in."""

    @field_validator("search", "history", "experience", "guidelines", "retrieval", mode="before")
    @classmethod
    def _a_word(cls, value: object) -> object:
        # YAML 1.1 reads on and off as truth values.
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value

    def rule(self, *, reads: bool) -> MemoryRule:
        """Return the domain's form of this section.

        Args:
            reads: whether the authors of candidates read words.
        """
        experience = ExperienceRule(
            capacity=self.capacity, least_gain=self.least_gain, least_loss=self.least_loss
        )
        return MemoryRule(
            search=_is_on(self.search, default=reads),
            history=_is_on(self.history, default=reads),
            experience=experience if self.experience == "on" else None,
            guidelines=self.guidelines == "on",
        )


def _is_on(switch: Switch | None, *, default: bool) -> bool:
    return default if switch is None else switch == "on"


NO_MEMORY = MemoryConfig(search="off", history="off")
"""Of runs that began before there was memory: a run that is resumed stays what it was."""
