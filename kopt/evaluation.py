"""An evaluation: a verdict with everything that was checked on the way, and its JSON form.

The JSON form is the contract of `kopt eval --json` and of the journal's `verdict` event
(CONTRACTS.md); `to_json` and `from_json` are the only two places that know both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never, cast

from typing_extensions import TypedDict

from kopt.candidate import Language
from kopt.ladder import LadderName
from kopt.timing import Baseline, Timing, TimingProtocol
from kopt.verdict import (
    Cheated,
    CompileFailed,
    Correct,
    Crashed,
    Incorrect,
    NumericError,
    TimedOut,
    Verdict,
    VerdictKind,
)

SCHEMA_VERSION = 1
Track = Literal["kernels", "anything"]
BASELINE_CHECK = "baseline:"
"""How the names of checks on baselines begin."""
CACHED_CHECK = "cached"
"""Name of the check, and of the one entry of the timeline, of an evaluation that was handed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at; a gate of the cascade, or a check within one."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A verdict, and how it came about."""

    verdict: Verdict
    problem: str
    """Problem id (sha256)."""
    candidate: str
    """Candidate id (sha256)."""
    language: Language
    ladder: LadderName
    device: str
    """`cpu`, or the GPU's name."""
    track: Track = "anything"
    """`kernels`: only the candidate's own kernels count; `anything`: library calls too."""
    sandbox: str = "none"
    """What confined the candidate: `none`, `process`, `namespace`, `landlock`, ….."""
    gates: tuple[Check, ...] = ()
    """`static`, `correctness`, `model`, `performance`: only those that ran, in order."""
    checks: tuple[Check, ...] = ()
    """Every check within the gates, in order."""
    library_share: float | None = None
    """Share of device time in library kernels, 0 to 1; None where not measured."""
    degenerate: bool = False
    """The problem's lint tag: a speed-up on it means little."""
    timeline_s: dict[str, float] = field(default_factory=dict)
    """Seconds `queued`, `built`, `forked`, `verified`, `timed`, `profiled`."""

    @property
    def is_handed_on(self) -> bool:
        """Whether it was reached before, for the same text: nothing was run for this candidate."""
        return any(check.name == CACHED_CHECK for check in self.checks)


class CheckJson(TypedDict):
    """A gate or a check, as JSON."""

    name: str
    passed: bool
    detail: str


class ErrorJson(TypedDict):
    """A NumericError, as JSON; a value that is not finite is null."""

    max_abs: float | None
    rel_norm: float | None
    rho: float | None


class TimingJson(TypedDict):
    """The timing fields of the eval JSON: all null unless the candidate is correct."""

    time_us: float | None
    time_ci_us: tuple[float, float] | None
    baseline: Baseline | None
    baseline_us: float | None
    eager_us: float | None
    compile_us: float | None
    max_autotune_us: float | None
    given_us: float | None
    speedup: float | None
    speedup_ci: tuple[float, float] | None
    num_pairs: int | None
    protocol: TimingProtocol | None
    sol_us: float | None
    sol_share: float | None
    samples_us: Sequence[float] | None
    baseline_samples_us: Sequence[float] | None


class EvalJson(TimingJson):
    """The object that `kopt eval --json` prints (CONTRACTS.md)."""

    schema: int
    kind: VerdictKind
    problem: str
    candidate: str
    language: Language
    ladder: LadderName
    device: str
    track: Track
    gates: list[CheckJson]
    checks: list[CheckJson]
    error: ErrorJson | None
    sandbox: str
    library_share: float | None
    degenerate: bool
    stage: str | None
    check: str | None
    detail: str | None
    limit_s: float | None
    reason: str
    log: str | None
    timeline_s: dict[str, float]


def rank(record: EvalJson) -> tuple[float, float]:
    """Return the key by which candidates are ranked, the best last.

    The low end of the interval decides, then the speed-up: of many candidates, the one with the
    highest estimate is too often the one whose noise was kindest. Not correct: -inf.
    """
    speedup, interval = record["speedup"], record["speedup_ci"]
    if record["kind"] != "correct" or speedup is None or interval is None:
        return float("-inf"), float("-inf")
    return interval[0], speedup


def missing_baselines(record: EvalJson) -> list[str]:
    """Return a line for each baseline that could not be measured: `compile: not measured: …`."""
    return [
        f"{check['name'].removeprefix(BASELINE_CHECK)}: {check['detail']}"
        for check in record["checks"]
        if check["name"].startswith(BASELINE_CHECK) and not check["passed"]
    ]


def to_json(evaluation: Evaluation) -> EvalJson:
    """Return the JSON form: the union becomes `kind` beside nullable fields."""
    verdict = evaluation.verdict
    error = verdict.error if isinstance(verdict, Correct | Incorrect) else None
    return {
        "schema": SCHEMA_VERSION,
        "kind": verdict.kind,
        "problem": evaluation.problem,
        "candidate": evaluation.candidate,
        "language": evaluation.language,
        "ladder": evaluation.ladder,
        "device": evaluation.device,
        "track": evaluation.track,
        **_timing_json(verdict),
        "gates": [_check_json(gate) for gate in evaluation.gates],
        "checks": [_check_json(check) for check in evaluation.checks],
        "error": None if error is None else _error_json(error),
        "sandbox": evaluation.sandbox,
        "library_share": evaluation.library_share,
        "degenerate": evaluation.degenerate,
        "stage": getattr(verdict, "stage", None),
        "check": getattr(verdict, "check", None),
        "detail": getattr(verdict, "detail", None),
        "limit_s": getattr(verdict, "limit_s", None),
        "reason": verdict.reason,
        "log": getattr(verdict, "log", None),
        "timeline_s": dict(evaluation.timeline_s),
    }


def from_json(record: EvalJson) -> Evaluation:
    """Return what `to_json` was given.

    Raises:
        ValueError: the record's schema version or kind is unknown.
    """
    if record["schema"] != SCHEMA_VERSION:
        raise ValueError(f"eval schema {record['schema']} is not {SCHEMA_VERSION}")
    return Evaluation(
        verdict=_verdict(record),
        problem=record["problem"],
        candidate=record["candidate"],
        language=record["language"],
        ladder=record["ladder"],
        device=record["device"],
        track=record["track"],
        sandbox=record["sandbox"],
        gates=tuple(Check(**gate) for gate in record["gates"]),
        checks=tuple(Check(**check) for check in record["checks"]),
        library_share=record["library_share"],
        degenerate=record["degenerate"],
        timeline_s=dict(record["timeline_s"]),
    )


def _verdict(record: EvalJson) -> Verdict:
    kind = record["kind"]
    stage, check = record["stage"] or "", record["check"] or ""
    detail = record["detail"] or ""
    match kind:
        case "compile_failed":
            return CompileFailed(stage=stage, log=record["log"] or "")
        case "crashed":
            return Crashed(stage=stage, log=record["log"] or "")
        case "timed_out":
            return TimedOut(stage=stage, limit_s=record["limit_s"] or 0.0)
        case "incorrect":
            return Incorrect(check=check, detail=detail, error=_error(record["error"]))
        case "cheated":
            return Cheated(check=check, detail=detail)
        case "correct":
            error = _error(record["error"])
            if error is None:
                raise ValueError("a correct evaluation without `error`")
            return Correct(timing=_timing(record), error=error)
        case _:
            assert_never(kind)


def _timing(record: EvalJson) -> Timing:
    values = cast("dict[str, Any]", record)
    return Timing(
        time_us=values["time_us"],
        time_ci_us=_pair(values["time_ci_us"]),
        baseline=values["baseline"],
        baseline_us=values["baseline_us"],
        speedup=values["speedup"],
        speedup_ci=_pair(values["speedup_ci"]),
        eager_us=values["eager_us"],
        compile_us=values["compile_us"],
        max_autotune_us=values["max_autotune_us"],
        given_us=values.get("given_us"),  # none was measured at first
        sol_us=values["sol_us"],
        num_pairs=values["num_pairs"],
        protocol=values.get("protocol") or "abba",  # the only one before there were others
        samples_us=tuple(values.get("samples_us") or ()),  # were not kept at first
        baseline_samples_us=tuple(values.get("baseline_samples_us") or ()),
    )


def _timing_json(verdict: Verdict) -> TimingJson:
    timing = verdict.timing if isinstance(verdict, Correct) else None
    names = [*Timing.__dataclass_fields__, "sol_share"]
    return cast("TimingJson", {name: getattr(timing, name, None) for name in names})


def _pair(values: list[float]) -> tuple[float, float]:
    low, high = values
    return low, high


def _check_json(check: Check) -> CheckJson:
    return {"name": check.name, "passed": check.passed, "detail": check.detail}


def _error_json(error: NumericError) -> ErrorJson:
    return {
        "max_abs": _finite(error.max_abs),
        "rel_norm": _finite(error.rel_norm),
        "rho": None if error.rho is None else _finite(error.rho),
    }


def _error(record: ErrorJson | None) -> NumericError | None:
    if record is None:
        return None
    inf = float("inf")
    return NumericError(
        max_abs=inf if record["max_abs"] is None else record["max_abs"],
        rel_norm=inf if record["rel_norm"] is None else record["rel_norm"],
        rho=record["rho"],
    )


def _finite(value: float) -> float | None:
    return value if value - value == 0.0 else None
