"""The section `compiled` of the configuration. Imports pydantic and nothing heavier."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from kopt.section import Section


class CompiledConfig(Section):
    """How a compiled model is taken apart and put together (mode=compiled)."""

    max_autotune: bool = False
    """Let Inductor time templates for products and convolutions first."""
    fuse: bool = True
    """Merge launches that follow each other where much traffic is saved (kopt.compiled.groups)."""
    timeout_s: float = Field(default=900.0, gt=0)
    """To compile one model and cut it."""
    performance_gate: Literal["on", "off"] = "on"
    """Gate 4: a stitched model that is slower than 1/1.03 of the baseline is refused (KernelOPT
    Eq. 5). Off is the ablation C3: what is right replaces the baseline, however long it takes."""
    retries: int = Field(default=2, ge=0)
    """Further stitches, each of fewer winners, where the whole model is wrong or slower
    (KernelOPT §4.4)."""

    @field_validator("performance_gate", mode="before")
    @classmethod
    def _a_word(cls, value: object) -> object:
        # YAML 1.1 reads on and off as truth values.
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
