"""The normal form of a file: a problem's text, and the text of the kernel that it came with."""

from __future__ import annotations

from typing import NamedTuple


class NormalForm(NamedTuple):
    """What a file says, in KernelBench's contract."""

    source: str
    """The reference: Model, get_inputs() and what they need."""
    given: str = ""
    """The kernel that the file holds: ModelNew and what it needs; empty where it holds none."""
    note: str = ""
    """Why a kernel that the file holds is not used, in a line; empty where there is none."""
