"""A row of the corpus, whole: every column, its texts read and redacted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from kopt.data.corpus.columns import SCHEMA_VERSION
from kopt.data.corpus.gathering import GatheredSearch
from kopt.data.corpus.run_texts import RunTexts
from kopt.data.corpus.trial_row import Judged, TrialRow, findings_json
from kopt.memory.technique import labels_of

_NOT_JUDGED: dict[str, Any] = dict.fromkeys(
    (
        *("verdict", "eval", "cached", "ladder", "track", "device", "speedup", "speedup_lo"),
        *("speedup_hi", "time_us", "baseline_us", "sol_share", "reason"),
        *("samples_us", "baseline_samples_us"),
    )
)


_labels = lru_cache(maxsize=4_096)(labels_of)
AHEAD_ROWS = 256
"""Rows whose texts are read at once."""


def full_rows(
    search: GatheredSearch, rows: Sequence[TrialRow], *, texts: RunTexts
) -> Iterator[dict[str, Any]]:
    """Give every column of each row of a search.

    Args:
        search: that the rows are of.
        rows: of `trial_rows`.
        texts: of the run.
    """
    for start in range(0, len(rows), AHEAD_ROWS):
        part = rows[start : start + AHEAD_ROWS]
        texts.read_ahead(
            (sha256 for row in part for sha256 in _artefacts(row)),
            own=(text for row in part for text in _own_texts(row)),
        )
        for row in part:
            yield full_row(search, row, texts=texts)


def full_row(search: GatheredSearch, row: TrialRow, *, texts: RunTexts) -> dict[str, Any]:
    """Return every column of a row.

    Args:
        search: that the row is of.
        row: of `trial_rows`.
        texts: of the run.
    """
    started, asked, made, answer = search.started, row.expansion, row.made, row.answer
    problem = texts.problem(started["problem"])
    redact = texts.redactor
    strategy = None if made is None else redact.text(made["strategy"])
    profile = row.profile
    trace = texts.tokens(None if answer is None else answer.get("trace"))
    evidence = None if profile is None else profile.evidence
    analysis = None if profile is None or profile.analysis is None else profile.analysis["analysis"]
    findings = None if profile is None else findings_json(profile)
    profiled_s = _profiled_s(row, evidence)
    device: dict[str, Any] = texts.manifest.get("device") or {}
    versions: dict[str, Any] = texts.manifest.get("versions") or {}
    return {
        "schema": SCHEMA_VERSION,
        "run": texts.name,
        "search": search.name,
        "problem": started["problem"],
        "problem_name": started["problem_name"],
        "problem_source": texts.problem_source(started["problem"]),
        "problem_dtype": None if problem is None else problem.dtype,
        "problem_family": "" if problem is None else problem.family,
        "problem_revision": "" if problem is None else redact.text(problem.revision),
        "problem_licence": "" if problem is None else problem.licence,
        "degenerate": (problem is not None and problem.degenerate != "")
        or (row.judged is not None and row.judged.degenerate),
        "arm": started["arm"],
        "policy": started["policy"],
        "seed": started["seed"],
        "expansion": asked["expansion"],
        "mode": asked["mode"],
        "slot": None if made is None else made["index"],
        "completion_index": None if answer is None else answer["index"],
        "node": row.node,
        "parent_node": asked["parent_node"],
        "depth": len(row.lineage) + 1,
        "lineage": list(row.lineage),
        "candidate": row.candidate,
        "parent": asked["parent"] if made is None else made["parent"],
        "source": None if made is None else texts.text(made["source"]),
        "language": None if made is None else made["language"],
        "strategy": strategy,
        "techniques": None if strategy is None else list(_labels(strategy)),
        "programmer": None if made is None else made["programmer"],
        "messages": None if row.prompt is None else texts.chat(row.prompt),
        "completion": _words(answer, "text", texts=texts),
        "reasoning": _words(answer, "reasoning", texts=texts),
        "finish": "" if answer is None else answer.get("finish") or "",
        "fault": "" if answer is None else redact.text(answer.get("fault") or ""),
        "tool_calls": "[]" if answer is None else redact.text(answer["tool_calls"] or "[]"),
        "sampling": redact.optional(row.sampling),
        "prompt_token_ids": trace.get("prompt_token_ids") or None,
        "token_ids": trace.get("token_ids") or None,
        "logprobs": trace.get("logprobs") or None,
        **(_NOT_JUDGED if row.judged is None else _judged(row.judged, texts=texts)),
        "reward": row.reward,
        "energy_reduction": row.energy_reduction,
        "evidence_level": None if evidence is None else evidence["level"],
        "evidence": _words(evidence, "ref", texts=texts),
        "findings": redact.optional(findings),
        "analysis": redact.optional(analysis),
        "tokens_in": answer["tokens_in"] if answer is not None and row.pays else 0,
        "tokens_out": answer["tokens_out"] if answer is not None and row.pays else 0,
        "cost_usd": answer["cost_usd"] if answer is not None and row.pays else 0.0,
        "gpu_s": profiled_s + (0.0 if row.judged is None else row.judged.gpu_s),
        "answered_ns": None if answer is None else answer["time_ns"],
        "arch": device.get("arch"),
        "kopt_version": versions.get("kopt"),
        "software": texts.versions,
        "hardware": texts.hardware,
    }


def _artefacts(row: TrialRow) -> Iterator[str | None]:
    """Every text of a row that is an artefact."""
    yield row.prompt
    if row.answer is not None:
        yield row.answer.get("text")
        yield row.answer.get("reasoning")
    if row.made is not None:
        yield row.made["source"]
    if row.profile is not None:
        yield row.profile.evidence.get("ref")


def _own_texts(row: TrialRow) -> Iterator[str | None]:
    """The texts of a row's events that seldom come again."""
    if row.judged is not None:
        yield row.judged.text
        yield row.judged.reason
    if row.answer is not None:
        yield row.answer.get("fault")
        yield row.answer["tool_calls"]
    if row.made is not None:
        yield row.made["strategy"]
    if row.profile is not None:
        yield findings_json(row.profile)
        yield None if row.profile.analysis is None else row.profile.analysis["analysis"]


def _profiled_s(row: TrialRow, evidence: dict[str, Any] | None) -> float:
    """Seconds of the profile, where it was this row's: a candidate may have several rows."""
    if evidence is None or row.made is None:
        return 0.0
    first, own = (evidence["expansion"], evidence["index"]), row.made
    return float(evidence["profiled_s"]) if first == (own["expansion"], own["index"]) else 0.0


def _words(event: dict[str, Any] | None, key: str, *, texts: RunTexts) -> str | None:
    sha256 = None if event is None else event.get(key)
    return None if sha256 is None else texts.text(sha256)


def _judged(judged: Judged, *, texts: RunTexts) -> dict[str, Any]:
    low, high = judged.speedup_ci or (None, None)
    return {
        "verdict": judged.kind,
        "eval": texts.redactor.text(judged.text),
        "cached": judged.cached,
        "ladder": judged.ladder,
        "track": judged.track,
        "device": judged.device,
        "speedup": judged.speedup,
        "speedup_lo": low,
        "speedup_hi": high,
        "time_us": judged.time_us,
        "baseline_us": judged.baseline_us,
        "samples_us": judged.samples_us or None,
        "baseline_samples_us": judged.baseline_samples_us or None,
        "sol_share": judged.sol_share,
        "reason": texts.redactor.text(judged.reason),
    }
