"""Splits by problem family, never by row: what a model is tested on is of a kind it did not see.

A family's split depends on its name and the shares alone: adding runs moves no family.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRule:
    """Which families are held back."""

    validation_share: float = 0.0
    """Of the families, 0 to 1; so is `test_share`. Few families may miss a share by far."""
    test_share: float = 0.0
    validation: Collection[str] = ()
    """Families that are held back for validation, by name; so are those of `test`."""
    test: Collection[str] = ()

    def split(self, family: str) -> Split:
        """Return the split of a family; problems without one are a family of their own."""
        if family in self.test:
            return "test"
        if family in self.validation:
            return "validation"
        digest = hashlib.sha256(f"split {family}".encode()).digest()
        place = int.from_bytes(digest[:8], "big") / 2**64
        if place < self.test_share:
            return "test"
        return "validation" if place < self.test_share + self.validation_share else "train"
