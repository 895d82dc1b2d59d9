"""The section `compiled` of the configuration. Imports pydantic and nothing heavier."""

from __future__ import annotations

from pydantic import Field

from kopt.section import Section


class CompiledConfig(Section):
    """How a compiled model is taken apart and put together (mode=compiled)."""

    max_autotune: bool = False
    """Let Inductor time templates for products and convolutions first."""
    fuse: bool = True
    """Merge launches that follow each other where much traffic is saved (kopt.compiled.groups)."""
    timeout_s: float = Field(default=900.0, gt=0)
    """To compile one model and cut it."""
    retries: int = Field(default=2, ge=0)
    """Further stitches, each of fewer winners, where the whole model is wrong or slower
    (KernelOPT §4.4)."""
