"""A micro-profiling tool: one expert's heuristic as a 5-tuple (KernelPro Eq. 2).

τ = (name, required figures, thresholds, trigger, analyze), with the classes of bottleneck that it
is for and a priority. A tool is a pure function of evidence: it runs without a GPU, on recorded
profiles, and what it needs and does not find keeps it silent.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from kopt.evidence import BottleneckClass
from kopt.finding import Finding, Severity
from kopt.tools.view import View

Source = Literal["ncu", "timeline", "sass", "roofline", "energy"]
"""Where a tool's first figure comes from."""
SOURCES: tuple[Source, ...] = get_args(Source)
Partition = Literal["speed", "headroom", "energy"]
"""Findings; remarks on whether going on is worth it; notes on energy that time does not show."""
PARTITIONS: tuple[Partition, ...] = get_args(Partition)
Scope = Literal["kernel", "call"]
CLASSES: tuple[BottleneckClass, ...] = get_args(BottleneckClass)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What `analyze` makes of figures that triggered: a finding, and how it relates to others."""

    severity: Severity
    summary: str
    """What was seen, with its figures, in a sentence or two."""
    root_cause: str
    recommendations: tuple[str, ...]
    """Ranked, the best first."""
    expected_improvement: str
    observed: Mapping[str, float] = field(default_factory=dict)
    """The figures that decided, under short names with their units."""
    code_example: str | None = None
    cause: str = ""
    """Key of the root cause: of findings of one kernel with one key, the first in rank is kept.
    Empty: the tool's name."""
    explains: frozenset[str] = frozenset()
    """Keys of causes that are but symptoms of this one: such findings of the kernel are dropped."""
    kernel: str | None = None
    """Kernel that it is about, where a tool that looks at the whole call knows it."""
    call_share: float | None = None
    """Of the call's time, what it is about, 0 to 1, where the tool knows it; None: the time of its
    kernel, of all device work for what counters or code tell, else the whole call. A severity
    that a tool without it gives is bounded by what that share can be worth (`weight`)."""


class ProfilingTool(ABC):
    """One tool. Subclass it, fill in the class attributes, `trigger` and `analyze`.

    A tool keeps no state: one instance serves every evidence.
    """

    name: ClassVar[str]
    """Unique; `package/tool` for those of others."""
    title: ClassVar[str]
    """Heading of its findings."""
    source: ClassVar[Source]
    scope: ClassVar[Scope] = "kernel"
    """`kernel`: asked once for each of the candidate's own kernels; `call`: once."""
    partition: ClassVar[Partition] = "speed"
    required: ClassVar[tuple[str, ...]]
    """Figures (see `kopt.tools.view`) without which it is silent."""
    optional: ClassVar[tuple[str, ...]] = ()
    """Figures that it also reads where they are known."""
    thresholds: ClassVar[Mapping[str, float]] = {}
    affinity: ClassVar[tuple[BottleneckClass, ...]] = CLASSES
    """Classes of bottleneck for which it is asked."""
    priority: ClassVar[int] = 50
    """Rank among findings of one severity, the highest first."""

    @abstractmethod
    def trigger(self, view: View) -> bool:
        """Return whether there is something to say; every required figure is known.

        Raises:
            MissingFigure: what else is known does not decide it, and this figure would.
        """

    @abstractmethod
    def analyze(self, view: View) -> Analysis:
        """Return what is to be said; only asked where `trigger` said so."""

    def finding(self, analysis: Analysis, view: View) -> Finding:
        """Return the analysis as a finding."""
        named = analysis.kernel or (view.kernel.name if view.kernel is not None else None)
        return Finding(
            tool=self.name,
            severity=analysis.severity,
            title=self.title,
            summary=analysis.summary,
            root_cause=analysis.root_cause,
            recommendations=tuple(analysis.recommendations),
            expected_improvement=analysis.expected_improvement,
            observed={
                name: value for name, value in analysis.observed.items() if math.isfinite(value)
            },
            thresholds=dict(self.thresholds),
            code_example=analysis.code_example,
            kernel=named,
        )


def graded(value: float, *cuts: tuple[float, Severity]) -> Severity:
    """Return the severity of a value: that of the first cut that it reaches.

    Args:
        value: where more is worse.
        cuts: least value and severity, the greatest first; the last one is the floor.
    """
    for least, severity in cuts:
        if value >= least:
            return severity
    return cuts[-1][1]
