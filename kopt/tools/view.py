"""What a tool sees of the evidence: figures by name. An unknown figure is never 0.

Names of figures:

* an ncu counter (`dram__bytes_read.sum`): of the kernel looked at, the mean of a launch;
* `sass:HGMMA`, `sass:LDG.128`: instructions in the kernel's binary; 0 is known where it was read;
* `kernel.registers`, `timeline.syncs`, `roofline.bytes`, `energy.proxy_pj`: fields of the evidence;
* `evidence.time_us`: the call's time by the evaluation; `gpu.num_sms`: its multiprocessors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from kopt.errors import KoptError
from kopt.evidence import Evidence, KernelEvidence, Roofline, Timeline
from kopt.tools.counters import is_counted
from kopt.tools.hardware import find_gpu

LEAST_CALL_US = 1e-3
"""A nanosecond: the resolution of any clock here."""
_SM_COUNTERS = ("launch__sm_count", "device__attribute_multiprocessor_count")


class MissingFigure(KoptError):
    """A tool asked for a figure that the evidence lacks; it is silent, and says which."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"the evidence lacks {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The evidence of one candidate, with the kernel that is looked at."""

    evidence: Evidence
    kernel: KernelEvidence | None = None
    """None for tools that look at the whole call."""

    def get(self, name: str) -> float | None:
        """Return a figure; None where it is unknown.

        Raises:
            ValueError: there is no figure of that name, whatever was measured.
        """
        value = self._look_up(name)
        if value is None or not math.isfinite(value) or not is_counted(name, value):
            return None
        # A call that takes no time was not measured, and nothing is a share of it.
        return None if name == "timeline.e2e_us" and value < LEAST_CALL_US else value

    def need(self, name: str) -> float:
        """Return a figure.

        Raises:
            MissingFigure: it is unknown.
            ValueError: there is no figure of that name, whatever was measured.
        """
        value = self.get(name)
        if value is None:
            raise MissingFigure(name)
        return value

    def of(self, kernel: KernelEvidence) -> View:
        """Return the same evidence with another kernel looked at."""
        return View(evidence=self.evidence, kernel=kernel)

    @property
    def timeline(self) -> Timeline:
        """The timeline.

        Raises:
            MissingFigure: there is none.
        """
        if self.evidence.timeline is None:
            raise MissingFigure("timeline")
        return self.evidence.timeline

    @property
    def user_kernels(self) -> tuple[KernelEvidence, ...]:
        """The candidate's own kernels: not those of libraries or of torch."""
        return tuple(kernel for kernel in self.evidence.kernels if kernel.owner == "user")

    def _look_up(self, name: str) -> float | None:
        if name.startswith("sass:"):
            return None if self.kernel is None else sass_count(self.kernel, name[5:])
        head, dot, field_name = name.partition(".")
        if dot and head in _PARTS:
            if field_name not in _PARTS[head]:
                raise ValueError(f"no figure {name!r}; of {head} there are: {_listed(head)}")
            return self._field(head, field_name)
        if name == "gpu.num_sms":
            return self._num_sms()
        if "__" not in name:
            raise ValueError(f"no figure {name!r}; see kopt.tools.view for the names there are")
        return None if self.kernel is None else self.kernel.metrics.get(name)

    def _field(self, part: str, field_name: str) -> float | None:
        holder = {
            "kernel": self.kernel,
            "timeline": self.evidence.timeline,
            "roofline": self.evidence.roofline,
            "energy": self.evidence.energy,
            "evidence": self.evidence,
        }[part]
        value: float | None = None if holder is None else getattr(holder, field_name)
        return value

    def _num_sms(self) -> float | None:
        counted = [self.kernel.metrics.get(name) for name in _SM_COUNTERS] if self.kernel else []
        known = [value for value in counted if value]
        if known:
            return known[0]
        gpu = find_gpu(self.evidence.device)
        return None if gpu is None else gpu.num_sms


def sass_count(kernel: KernelEvidence, mnemonic: str) -> int | None:
    """Return how many instructions of a mnemonic a binary has; None where it was not read.

    `LDG` counts all of the mnemonic, `LDG.128` those with the modifier. Both are read off either
    way of counting: a name for each mnemonic with some of its modified forms beside it, or a name
    for each full opcode (`LDG.E.128`).
    """
    if not kernel.sass:
        return None
    if mnemonic in kernel.sass:
        return kernel.sass[mnemonic]
    base, *modifiers = mnemonic.split(".")
    counts = [
        count
        for name, count in kernel.sass.items()
        if name.split(".")[0] == base and set(modifiers) <= set(name.split(".")[1:])
    ]
    return sum(counts)


def _numbers(kind: type) -> tuple[str, ...]:
    named = (each for each in fields(kind) if "int" in str(each.type) or "float" in str(each.type))
    return tuple(each.name for each in named if "[" not in str(each.type))


_PARTS: dict[str, tuple[str, ...]] = {
    "kernel": _numbers(KernelEvidence),
    "timeline": _numbers(Timeline),
    "roofline": _numbers(Roofline),
    "energy": ("proxy_pj", "corrected_pj", "millijoules"),
    "evidence": ("time_us",),
}


def _listed(part: str) -> str:
    return ", ".join(_PARTS[part])
