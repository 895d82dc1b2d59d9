"""Gate 1: what a candidate's text alone says, by ast. Nothing of it is run.

Static text is a tripwire and never the whole defence: it rejects only what cannot work, and what
no honest kernel needs (exploits §E16). Words such as `pass` or `try` reject nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kopt.candidate import LANGUAGES, Language
from kopt.evaluation import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticReport:
    """What gate 1 found. The gate passes where `errors` and `tripwires` are both empty."""

    errors: tuple[str, ...] = ()
    """Why it can never become a callable, one line each: CompileFailed(stage="static")."""
    tripwires: tuple[Check, ...] = ()
    """Constructs that no honest kernel needs, `passed` False: Cheated(check=name, detail=detail).
    Names are `static:frames`, `static:patching`, …; the detail has the line number."""
    evidence: tuple[Check, ...] = ()
    """Notes to attach to the evaluation's checks: they decide nothing (`passed` True)."""
    kernels: tuple[str, ...] = ()
    """Names of the kernels that the text defines: Triton functions, `__global__` functions,
    exported C functions; in order of appearance."""

    @property
    def passed(self) -> bool:
        """Whether the candidate goes on to be built."""
        return not self.errors and not self.tripwires


def static_check(
    source: str, *, language: Language, allowed: Collection[Language] = LANGUAGES
) -> StaticReport:
    """Read a candidate's text and report.

    Args:
        source: the candidate's Python text.
        language: what it says its kernels are written in.
        allowed: the languages that the device can build (`Target.languages`).
    """
    raise NotImplementedError
