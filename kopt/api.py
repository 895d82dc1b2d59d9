"""An installed package's interface, as far as an author writes against it."""

from __future__ import annotations

from dataclasses import dataclass

from kopt.candidate import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """What the package of a language offers, read from the package itself."""

    language: Language
    package: str
    """As it is installed: `triton`."""
    version: str
    signatures: tuple[str, ...]
    """`tl.load(pointer, mask=None, …)`, one function each, the ones most written first."""
    names: tuple[str, ...] = ()
    """Further public names, without their parameters."""
