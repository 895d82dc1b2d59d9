"""From evidence to findings: which tools are asked, what is kept, what is said of the rest.

KernelPro's two stages: the class of the bottleneck decides which tools are asked; each of these
runs, always (proactive). Then, since few true findings help and many harm: findings of one root
cause are one finding, symptoms go where their cause is named, what dominates the call's time comes
first, and at most `max_findings` stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kopt.evidence import BottleneckClass, Evidence
from kopt.finding import SEVERITIES, Finding
from kopt.tools.guards import MEMORY_PCT, SM_PCT, kernels_worth
from kopt.tools.registry import ToolRegistry
from kopt.tools.roofline import classes_asked, measured_class
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.view import MissingFigure, View
from kopt.tools.weight import MOST, bounded, device_share, kernel_share

MAX_FINDINGS = 4
"""In a prompt: raw counters harm, many findings dilute (KernelPro's ablation)."""
_PLUGIN_FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """A tool that could not say anything, and why."""

    tool: str
    missing: tuple[str, ...] = ()
    """Figures that the evidence lacks."""
    fault: str = ""
    """What went wrong in it, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the tools concluded."""

    findings: tuple[Finding, ...] = ()
    """Of speed, the first in rank first."""
    left_out: int = 0
    """Findings of speed beyond the most that are shown."""
    remarks: tuple[Finding, ...] = ()
    """Whether there is headroom at all."""
    energy_notes: tuple[Finding, ...] = ()
    """Waste of energy that time does not show."""
    silent: tuple[Silent, ...] = ()
    """Tools whose evidence is missing, by name."""
    not_asked: tuple[str, ...] = ()
    """Tools for other classes of bottleneck, by name."""
    classes: tuple[BottleneckClass, ...] = ()
    """Classes whose tools were asked; empty: none is known, all were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A finding that is not ranked yet."""

    tool: ProfilingTool
    analysis: Analysis
    finding: Finding
    share: float
    """Of the call's time."""

    @property
    def cause(self) -> str:
        return self.analysis.cause or self.tool.name

    @property
    def rank(self) -> tuple[int, bool, int, float, str]:
        severity = SEVERITIES.index(self.finding.severity)
        rest = self.share < MOST  # what holds most of the call's time goes before
        return (severity, rest, -self.tool.priority, -self.share, self.tool.name)


def diagnose(
    evidence: Evidence,
    *,
    tools: Sequence[ProfilingTool] | None = None,
    max_findings: int | None = MAX_FINDINGS,
) -> Diagnosis:
    """Ask the tools about one candidate.

    Args:
        evidence: what was measured.
        tools: which; None: all that are registered.
        max_findings: most findings of speed that are kept; None: all.

    Raises:
        ConfigError: an entry point names no tool.
    """
    asked_classes = _classes(evidence)
    drafts: list[_Draft] = []
    silent: list[Silent] = []
    not_asked: list[str] = []
    for tool in ToolRegistry.tools() if tools is None else tools:
        if _is_for(tool, asked_classes):
            found, why_silent = _ask(tool, evidence)
            drafts += found
            silent += [] if why_silent is None else [why_silent]
        else:
            not_asked.append(tool.name)
    remarks = _of("headroom", drafts)
    # At the speed of light nothing that a profile shows is worth a change.
    speed = [] if remarks else _kept(_of("speed", drafts))
    shown = speed if max_findings is None else speed[: max(max_findings, 0)]
    return Diagnosis(
        findings=tuple(draft.finding for draft in shown),
        left_out=len(speed) - len(shown),
        remarks=tuple(draft.finding for draft in remarks),
        energy_notes=tuple(draft.finding for draft in _merged(_of("energy", drafts))),
        silent=tuple(silent),
        not_asked=tuple(not_asked),
        classes=tuple(sorted(asked_classes)),
    )


def _classes(evidence: Evidence) -> frozenset[BottleneckClass]:
    """The problem's classes, and that of the candidate's main kernel as it is now."""
    classes = classes_asked(evidence.roofline)
    if not classes:
        return classes
    counted = [
        (kernel.share or 0.0, compute_pct, memory_pct)
        for kernel in evidence.kernels
        if kernel.owner == "user"
        and (compute_pct := kernel.metrics.get(SM_PCT)) is not None
        and (memory_pct := kernel.metrics.get(MEMORY_PCT)) is not None
    ]
    if not counted:
        return classes
    _, compute_pct, memory_pct = max(counted, key=lambda each: each[0])
    return classes | {measured_class(compute_pct, memory_pct=memory_pct)}


def _is_for(tool: ProfilingTool, classes: frozenset[BottleneckClass]) -> bool:
    return not classes or tool.partition != "speed" or bool(classes & set(tool.affinity))


def _ask(tool: ProfilingTool, evidence: Evidence) -> tuple[list[_Draft], Silent | None]:
    """Ask a tool about each kernel, or the call; what it found, and why it could not say more."""
    drafts: list[_Draft] = []
    missing: dict[str, None] = {}
    fault = ""
    whole = View(evidence=evidence)
    views = [whole]
    if tool.scope == "kernel":
        views = [whole.of(kernel) for kernel in kernels_worth(evidence)]
        if not views and not evidence.kernels:
            missing["kernels"] = None
    for view in views:
        try:
            lacking = [name for name in tool.required if view.get(name) is None]
            missing.update(dict.fromkeys(lacking))
            if not lacking and tool.trigger(view):
                drafts.append(_draft(tool, tool.analyze(view), view))
        except MissingFigure as error:
            missing[error.name] = None
        except _PLUGIN_FAULTS as error:
            fault = f"{type(error).__name__}: {error}".splitlines()[0]
    if drafts and not fault:
        return drafts, None
    if not missing and not fault:
        return drafts, None
    return drafts, Silent(tool=tool.name, missing=tuple(missing), fault=fault)


def _draft(tool: ProfilingTool, analysis: Analysis, view: View) -> _Draft:
    share = analysis.call_share
    finding = tool.finding(analysis, view)
    if share is None:
        share = _share(tool, finding.kernel, view)
        finding = replace(finding, severity=bounded(finding.severity, share=share))
    return _Draft(tool=tool, analysis=analysis, finding=finding, share=share)


def _share(tool: ProfilingTool, kernel: str | None, view: View) -> float:
    """The share of the call that a finding is about, by what it looked at."""
    evidence = view.evidence
    looked_at = view.kernel
    if looked_at is None and kernel is not None:
        looked_at = next((each for each in evidence.kernels if each.name == kernel), None)
    if looked_at is not None:
        return kernel_share(evidence, looked_at)
    # Counters and code tell of the time in which the device works, and of no other.
    return device_share(evidence) if tool.source in ("ncu", "sass") else 1.0


def _of(partition: str, drafts: Sequence[_Draft]) -> list[_Draft]:
    found = [draft for draft in drafts if draft.tool.partition == partition]
    return sorted(found, key=lambda draft: draft.rank)


def _kept(ranked: Sequence[_Draft]) -> list[_Draft]:
    """Drop symptoms whose cause is named, then all but the first of each root cause."""
    causes = [draft for draft in ranked if not any(_explains(other, draft) for other in ranked)]
    kept: list[_Draft] = []
    for draft in causes:
        if not any(draft.cause == other.cause and _meet(draft, other) for other in kept):
            kept.append(draft)
    return _merged(kept)


def _explains(cause: _Draft, symptom: _Draft) -> bool:
    if cause is symptom or symptom.cause not in cause.analysis.explains:
        return False
    # Of two that explain each other the one ranked first stays.
    mutual = cause.cause in symptom.analysis.explains
    return _meet(cause, symptom) and not (mutual and symptom.rank < cause.rank)


def _meet(left: _Draft, right: _Draft) -> bool:
    """Whether two findings are about one kernel; the whole call meets every kernel."""
    kernels = (left.finding.kernel, right.finding.kernel)
    return None in kernels or kernels[0] == kernels[1]


def _merged(ranked: Sequence[_Draft]) -> list[_Draft]:
    """Make one finding of a tool's findings on several kernels: of the first, the rest named."""
    by_tool: dict[tuple[str, str], list[_Draft]] = {}
    for draft in ranked:
        by_tool.setdefault((draft.tool.name, draft.cause), []).append(draft)
    merged = []
    for first, *others in by_tool.values():
        names = dict.fromkeys(str(each.finding.kernel) for each in others)
        names.pop(str(first.finding.kernel), None)
        if not names:
            merged.append(first)
            continue
        also = f" Also in {', '.join(f'`{name:.60}`' for name in names)}."
        finding = replace(first.finding, summary=first.finding.summary + also)
        merged.append(replace(first, finding=finding))
    return sorted(merged, key=lambda draft: draft.rank)
