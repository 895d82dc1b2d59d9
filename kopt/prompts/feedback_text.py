"""Feedback of the profiler as one text, in KernelPro's order (§3.2.3).

SASS, timeline, findings ("Automated bottleneck analysis"), counters by category, energy notes; the
techniques that apply to the class stand beside the findings. Each section is left out where it has
nothing to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from kopt.evidence import Evidence
from kopt.prompts.evidence_text import (
    counters_text,
    host_code_text,
    kernels_text,
    roofline_text,
    rules_text,
    sass_text,
    timeline_text,
)
from kopt.prompts.excerpts import middle_out
from kopt.prompts.finding_text import findings_text
from kopt.prompts.templates import filled
from kopt.tools.diagnosis import Diagnosis
from kopt.tools.feedback import Feedback
from kopt.tools.techniques import techniques_of

MAX_CHARACTERS = 12_000
"""Of a whole feedback; about four make a token."""
FINDINGS_SHARE = 0.6
ENERGY_CHARACTERS = 1_500


def feedback_text(
    evidence: Evidence,
    feedback: Feedback,
    *,
    max_characters: int = MAX_CHARACTERS,
    with_energy: bool = False,
    tools_callable: bool = False,
) -> str:
    """Return what is told of the evidence, as Markdown; empty in mode `none`.

    Args:
        evidence: what was measured.
        feedback: what of it is told.
        max_characters: bound of the whole.
        with_energy: tell the energy notes too (energy=aware).
        tools_callable: the model can call the tools: what they would find is left to it.
    """
    if feedback.mode == "none":
        return ""
    sections: list[tuple[str, str]] = []
    if feedback.mode == "tools" and feedback.diagnosis is not None:
        diagnosis = feedback.diagnosis
        is_gpu = (evidence.arch or "").startswith("sm_")
        code = (
            ("Instructions (SASS)", sass_text(evidence))
            if is_gpu
            else ("Machine code", host_code_text(evidence))
        )
        sections = [
            ("Kernels", kernels_text(evidence)),
            code,
            ("Timeline", "" if evidence.timeline is None else timeline_text(evidence.timeline)),
            (
                "Automated bottleneck analysis",
                _callable(evidence)
                if tools_callable
                else _analysis(
                    evidence, diagnosis, max_characters=int(FINDINGS_SHARE * max_characters)
                ),
            ),
            ("Techniques that apply", _techniques(techniques_of(evidence))),
            ("Counters", counters_text(feedback.counters)),
            ("Energy efficiency notes", _energy(diagnosis) if with_energy else ""),
        ]
    elif feedback.mode == "rules":
        tier = feedback.rules[0].tier if feedback.rules else None
        sections = [
            ("Nsight Compute", rules_text(feedback.rules)),
            ("Techniques that apply", _techniques(techniques_of(evidence, tier=tier))),
        ]
    elif feedback.mode == "raw":
        sections = [("Counters", counters_text(feedback.counters))]
    texts = [f"### {title}\n\n{text}" for title, text in sections if text]
    return middle_out("\n\n".join(texts), max_characters=max_characters)


def _analysis(evidence: Evidence, diagnosis: Diagnosis, *, max_characters: int) -> str:
    """The class, then the findings one level below the section's heading."""
    parts = [roofline_text(evidence)]
    parts += [remark.summary + " " + remark.recommendations[0] for remark in diagnosis.remarks]
    if diagnosis.findings:
        parts.append(
            findings_text(diagnosis.findings, max_characters=max_characters, heading="####")
        )
        if diagnosis.left_out:
            parts.append(f"… {diagnosis.left_out} further findings left out …")
    elif not diagnosis.remarks:
        parts.append("No tool found a bottleneck.")
    return "\n\n".join(filter(None, parts))


def _callable(evidence: Evidence) -> str:
    """The class, and that the rest is to be asked for (the reactive arm)."""
    roofline = roofline_text(evidence)
    return "\n\n".join(filter(None, (roofline, filled("reactive"))))


def _techniques(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _energy(diagnosis: Diagnosis) -> str:
    if not diagnosis.energy_notes:
        return ""
    lines = [
        f"- {note.title}: {note.summary} {note.recommendations[0]} ({note.expected_improvement})"
        for note in diagnosis.energy_notes
    ]
    return middle_out("\n".join(lines), max_characters=ENERGY_CHARACTERS)
