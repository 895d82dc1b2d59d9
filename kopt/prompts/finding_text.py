"""Findings of the profiler in words: what was seen, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.finding import SEVERITIES, Finding
from kopt.prompts.evidence_text import named
from kopt.prompts.excerpts import fenced, middle_out


def findings_text(findings: Sequence[Finding], *, max_characters: int, heading: str = "###") -> str:
    """Return the findings, the most severe first, as many as fit; the rest are counted.

    The first one is shown whatever its size, cut to the bound.

    Args:
        findings: in order of rank; equal severities keep it.
        max_characters: bound of the whole.
        heading: mark of each finding's title.
    """
    ordered = sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    shown: list[str] = []
    used = 0
    for finding in ordered:
        text = middle_out(_finding(finding, heading=heading), max_characters=max_characters)
        if shown and used + len(text) > max_characters:
            break
        shown.append(text)
        used += len(text)
    left_out = len(ordered) - len(shown)
    if left_out:
        shown.append(f"… {left_out} less severe left out …")
    return "\n\n".join(shown)


def _finding(finding: Finding, *, heading: str) -> str:
    where = f" (kernel {named(finding.kernel)})" if finding.kernel else ""
    lines = [f"{heading} {finding.title}, {finding.severity}{where}", "", finding.summary]
    if finding.observed:
        figures = ", ".join(f"{name} = {value:g}" for name, value in finding.observed.items())
        lines.append(f"Observed: {figures}.")
    if finding.root_cause:
        lines.append(f"Cause: {finding.root_cause}")
    lines += [f"{rank}. {each}" for rank, each in enumerate(finding.recommendations, start=1)]
    if finding.expected_improvement:
        lines.append(f"Expected: {finding.expected_improvement}")
    if finding.code_example:
        lines += ["", fenced(finding.code_example)]
    return "\n".join(lines)
