"""The rule of a fleet's memory: which of its parts are on."""

from __future__ import annotations

from dataclasses import dataclass

from kopt.memory.experience import ExperienceRule


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRule:
    """What is remembered and told; nothing by default."""

    search: bool = False
    """The search memory (KernelPro §3.4)."""
    history: bool = False
    """The way to the version, and what was tried from it."""
    experience: ExperienceRule | None = None
    """The experience queue (KernelOPT §4.5); None keeps none."""
    guidelines: bool = False
    """The shipped guidelines."""
