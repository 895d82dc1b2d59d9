"""What an author is told of its parent's profile: the arm's text, or a model's analysis of it."""

from __future__ import annotations

from dataclasses import replace

from kopt.evidence import Evidence
from kopt.ports import Attempt, Telling
from kopt.profile_analysis import ProfileAnalysis
from kopt.prompts.evidence_text import kernels_text
from kopt.prompts.excerpts import middle_out, short_line
from kopt.prompts.feedback_text import feedback_text
from kopt.prompts.verdict_text import light_us
from kopt.tools.diagnosis import Diagnosis
from kopt.tools.feedback import Feedback, feedback
from kopt.tools.techniques import techniques_of
from kopt.verdict import Correct

MAX_STEPS = 6
MAX_STEP = 500
"""Characters of one step of an analysis."""


def profile_text(attempt: Attempt, *, telling: Telling, max_characters: int) -> str:
    """Return the text; empty without evidence, and in the arm `none`.

    Where a model has condensed the profile, its words take the place of what they were made from
    (KernelPro Alg. 1: the feedback is the analysis).

    Args:
        attempt: with its profile.
        telling: the arm.
        max_characters: bound of the whole.
    """
    evidence = attempt.evidence
    if evidence is None or telling.feedback == "none":
        return ""
    if attempt.analysis is not None:
        techniques = "\n".join(f"- {text}" for text in techniques_of(evidence))
        sections = [
            ("Kernels", kernels_text(evidence)),
            ("Analysis", analysis_text(attempt.analysis)),
            ("Techniques that apply", techniques),
        ]
        texts = [f"### {title}\n\n{text}" for title, text in sections if text]
        return middle_out("\n\n".join(texts), max_characters=max_characters)
    return feedback_text(
        evidence,
        told_of(attempt, telling=telling),
        max_characters=max_characters,
        with_energy=telling.energy,
        tools_callable=telling.orchestration == "reactive",
    )


def beside_the_result(attempt: Attempt) -> Attempt:
    """Leave the speed of light out of an attempt's evidence where its result's table has one.

    The roofs were probed again for the profile; on a CPU, where they are measured, the two differ,
    and a prompt would contradict itself.
    """
    verdict, evidence = attempt.evaluation.verdict, attempt.evidence
    if not isinstance(verdict, Correct) or light_us(verdict.timing) is None:
        return attempt
    if evidence is None or evidence.roofline is None:
        return attempt
    roofline = replace(evidence.roofline, sol_us=None)
    return replace(attempt, evidence=replace(evidence, roofline=roofline))


def apart_from_the_race(evidence: Evidence) -> str:
    """Say of a profile that has times that they are not those of the result; a paragraph."""
    if evidence.timeline is None and all(each.time_us is None for each in evidence.kernels):
        return ""
    return "Times here are of a run under the profiler, apart from the race.\n\n"


def told_of(attempt: Attempt, *, telling: Telling) -> Feedback:
    """Return what the arm tells of an attempt's evidence, by the findings that were made of it.

    Raises:
        ValueError: it has no evidence.
    """
    if attempt.evidence is None:
        raise ValueError("expected an attempt with evidence")
    made = Diagnosis(
        findings=attempt.findings,
        left_out=attempt.left_out,
        remarks=attempt.remarks,
        energy_notes=attempt.energy_notes,
    )
    return feedback(
        attempt.evidence,
        mode=telling.feedback,
        max_findings=telling.max_findings,
        diagnosis=made,
    )


def analysis_text(analysis: ProfileAnalysis) -> str:
    """Return an analysis in words: the class, how bad it is, and the steps in their order."""
    head = f"Bottleneck: {analysis.bottleneck}, {analysis.severity}."
    if analysis.summary:
        head += f" {short_line(' '.join(analysis.summary.split()), max_characters=MAX_STEP)}"
    steps = [
        f"{rank}. {short_line(' '.join(step.split()), max_characters=MAX_STEP)}"
        for rank, step in enumerate(analysis.steps[:MAX_STEPS], start=1)
    ]
    return "\n".join([head, *steps])
