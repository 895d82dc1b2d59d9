"""The device that candidates are written for, and what is installed there."""

from __future__ import annotations

from dataclasses import dataclass, field

from kopt.api import Api
from kopt.candidate import Language
from kopt.processor import Processor


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The device that candidates are written for."""

    device: str
    """`cpu` or `cuda`."""
    name: str
    """The GPU's name, or the CPU's model."""
    arch: str
    """`sm_90`, or the CPU's machine name (`x86_64`)."""
    languages: tuple[Language, ...]
    """What can be built and run there."""
    versions: tuple[tuple[str, str], ...] = ()
    """Name and version of what candidates run on (`torch`, `2.11.0`), for authors to be told."""
    apis: tuple[Api, ...] = ()
    """What the languages' packages offer, for authors to be told; says nothing of the device."""

    processor: Processor | None = field(default=None, compare=False)
    """Of a CPU what more is known of it, for authors to be told; no part of which device it is."""

    @property
    def label(self) -> str:
        """What evaluations name: `cpu`, or the GPU's name."""
        return self.device if self.device == "cpu" else self.name
