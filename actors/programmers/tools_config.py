"""The section `programmer.tools`: what a model may call while it writes, and how often."""

from __future__ import annotations

from pydantic import Field, field_validator

from kopt.section import Section

AUTO, OFF = "auto", "off"


class ToolsConfig(Section):
    """Functions over CUTLASS's source; offered where candidates are for a GPU."""

    cutlass: str = AUTO
    """A checkout of CUTLASS; `auto` takes the headers of the package nvidia-cutlass, where it is
    installed; `off` offers nothing and tells no rules of it."""
    searches: int = Field(default=12, ge=0)
    """Searches of one iteration at most, shared evenly by its completions. Reading and listing
    cost none."""
    turns: int = Field(default=24, ge=1)
    """Turns of one completion in which it may call anything; then it must answer."""
    characters: int = Field(default=80_000, ge=1_000)
    """Of all results of one completion; then it must answer. For models with a small context."""

    @field_validator("cutlass", mode="before")
    @classmethod
    def _a_word(cls, value: object) -> object:
        # YAML 1.1 reads off as a truth value.
        return OFF if value is False else value
