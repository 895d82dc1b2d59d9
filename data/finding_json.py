"""Findings and analyses as JSON values in the journal, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kopt.errors import StoreError
from kopt.finding import Finding
from kopt.profile_analysis import ProfileAnalysis

_FINDINGS = TypeAdapter(tuple[Finding, ...])
_ANALYSIS = TypeAdapter(ProfileAnalysis)


def findings_to_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as plain values; `findings_from_json` gives them back."""
    return [asdict(finding) for finding in findings]


def findings_from_json(values: Sequence[object]) -> tuple[Finding, ...]:
    """Return the findings of a journal event.

    Raises:
        StoreError: they are none.
    """
    try:
        return _FINDINGS.validate_python(values)
    except ValidationError as error:
        raise StoreError("journal", f"not findings: {error.errors()[0]['msg']}") from error


def analysis_to_json(analysis: ProfileAnalysis) -> dict[str, Any]:
    """Return an analysis as plain values; `analysis_from_json` gives it back."""
    return asdict(analysis)


def analysis_from_json(value: object) -> ProfileAnalysis:
    """Return the analysis of a journal event.

    Raises:
        StoreError: it is none.
    """
    try:
        return _ANALYSIS.validate_python(value)
    except ValidationError as error:
        raise StoreError("journal", f"not an analysis: {error.errors()[0]['msg']}") from error
