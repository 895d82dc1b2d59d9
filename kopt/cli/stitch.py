"""`mode=compiled`, its end: winners put into their models, gates 3 and 4 on the whole.

The stitched file is a candidate for the model's own problem: it is judged by whoever judges any
candidate, in children, on hidden inputs and weights, against float64 and the compiled baseline.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from kopt.candidate import MAX_SOURCE_BYTES, Candidate, Language
from kopt.cli.compiled import models_folder
from kopt.cli.evaluate import judge
from kopt.compiled.export import exported
from kopt.compiled.record import Apart, Cause, SubKernel, from_json
from kopt.compiled.stitching import (
    Attempt,
    Found,
    ModelReport,
    Placed,
    attempts_of,
    nothing_gained,
    outcome_of,
    placed_in,
    winners_of,
)
from kopt.compiled.wishes import decision_lines
from kopt.config import RunConfig
from kopt.data.atomic import write_bytes
from kopt.data.best import best_folders, rank_candidates
from kopt.data.fold import RunState
from kopt.data.rundir import RunDir
from kopt.errors import ProblemError
from kopt.evaluation import to_json
from kopt.problem import Problem
from kopt.verdict import Correct, Verdict

REPORT = "compiled.json"
"""In the run folder: what became of each model."""
STITCHED = "stitched.py"
"""In a model's folder."""


def stitch_models(config: RunConfig, run: RunDir, state: RunState) -> list[ModelReport]:
    """Put the winners of a run into its models, judge each whole, and write the report.

    Raises:
        StoreError: a record cannot be read, or a file not be written.
        ConfigError: the device asked for is not here.
    """
    found = found_programs(run, state)
    reports = []
    for folder in sorted(path.parent for path in models_folder(run).glob("*/order.json")):
        model = Problem(**json.loads((folder / "order.json").read_bytes())["problem"])
        reports.append(_stitch(config, run, folder, model, found=found))
    text = json.dumps([asdict(report) for report in reports], indent=1)
    write_bytes(run.path / REPORT, text.encode("utf-8"))
    return reports


def found_programs(run: RunDir, state: RunState) -> dict[str, Found]:
    """Return the fastest correct program of each problem that has one, by the problem's name."""
    folders = best_folders(run, state)
    names = {s.started.problem: s.started.problem_name for s in state.searches.values()}
    found = {}
    for problem_id, ranked in rank_candidates(state).items():
        best = ranked[0]
        low, _ = best.evaluation["speedup_ci"] or (0.0, 0.0)
        found[names[problem_id]] = Found(
            source=run.artefacts.get(best.made.source),
            speedup=best.evaluation["speedup"] or 0.0,
            speedup_low=low,
            path=str((folders[problem_id] / "rank1.py").relative_to(run.path)),
        )
    return found


def _stitch(
    config: RunConfig, run: RunDir, folder: Path, model: Problem, *, found: Mapping[str, Found]
) -> ModelReport:
    record = folder / "apart.json"
    if not record.is_file():
        log = (folder / "worker.log").relative_to(run.path)
        return ModelReport(
            model=model.name,
            outcome="fallback",
            cause="timeout",
            reason=f"it was not compiled and cut to the end; {log} has what was said",
        )
    apart = from_json(record.read_bytes(), where=str(record))
    bare = ModelReport(
        model=model.name,
        outcome="synthesis_failed" if apart.cause == "nothing_cut" else "fallback",
        cause=apart.cause,
        reason=apart.reason,
        strategist=apart.strategist,
        decisions=tuple(decision_lines(apart.choices)),
        kernel_share=min(1.0, sum(kernel.share for kernel in apart.kernels)),
    )
    if apart.cause or apart.recipe is None:
        return bare
    tries = attempts_of(placed_in(apart, found), retries=config.compiled.retries)
    if not tries:
        cause, reason = nothing_gained(apart)
        return replace(bare, cause=cause, reason=reason)
    report = bare
    for number, placed in enumerate(tries):
        sys.stderr.write(f"kopt: {model.name}: judging the whole with {len(placed)} replaced\n")
        source, refusal = _text(model, apart, placed, found)
        attempt = Attempt(
            replaced=tuple(each.subkernel for each, _ in placed),
            passed=False,
            cause="not_stitchable",
            reason=refusal,
        )
        if not refusal:
            report, attempt = _judged(config, model, source, report, attempt, apart)
        report = replace(report, attempts=(*report.attempts, attempt))
        if attempt.passed:
            path = folder / STITCHED
            write_bytes(path, source.encode("utf-8"))
            return replace(
                report,
                placed=tuple(each for each, _ in placed),
                path=str(path.relative_to(run.path)),
                reason=f"{attempt.reason}; attempt {number + 1}",
            )
    last = report.attempts[-1]
    return replace(report, outcome="fallback", cause=last.cause, reason=last.reason)


def _text(
    model: Problem,
    apart: Apart,
    placed: Sequence[tuple[Placed, SubKernel]],
    found: Mapping[str, Found],
) -> tuple[str, str]:
    """The stitched file, or why there is none."""
    assert apart.recipe is not None
    words = [
        f"{model.name}, compiled by torch {apart.torch}, with kernels replaced by kopt.",
        *(f"{each.subkernel}: {each.speedup:.2f}x on its own" for each, _ in placed),
    ]
    places = {each.path[0] for each in apart.recipe.given}
    places |= {path[0] for path, _ in apart.recipe.plain}
    try:
        source = exported(
            model.source,
            apart.recipe,
            winners_of(placed, found),
            layouts=apart.layouts,
            num_arguments=len(places),
            mark=model.problem_id[:12],
            words="\n".join(words),
        )
    except ValueError as error:
        return "", str(error)
    size = len(source.encode("utf-8"))
    if size > MAX_SOURCE_BYTES:
        return "", f"the stitched file has {size} bytes; at most {MAX_SOURCE_BYTES} are judged"
    return source, ""


def _judged(
    config: RunConfig,
    model: Problem,
    source: str,
    report: ModelReport,
    attempt: Attempt,
    apart: Apart,
) -> tuple[ModelReport, Attempt]:
    """Gates 3 and 4 on a stitched file."""
    assert apart.recipe is not None
    language: Language = "triton" if apart.recipe.device == "cuda" else "cpp"
    baseline = "compile" if config.evaluate.baseline == "best" else config.evaluate.baseline
    # Its import compiles every kernel of the model, not one.
    limit_s = config.compiled.timeout_s
    timeouts = config.evaluate.timeouts
    timeouts = timeouts.model_copy(
        update={
            "build_s": max(timeouts.build_s, limit_s),
            "load_s": max(timeouts.load_s, limit_s),
        }
    )
    evaluate = config.evaluate.model_copy(update={"baseline": baseline, "timeouts": timeouts})
    candidate = Candidate(source=source, language=language, programmer="stitch")
    try:
        evaluation = judge(
            model, candidate, config=config.model_copy(update={"evaluate": evaluate})
        )
    except ProblemError as error:
        return report, replace(attempt, cause="crash", reason=str(error))
    verdict = evaluation.verdict
    report = replace(report, evaluation=dict(to_json(evaluation)))
    if not isinstance(verdict, Correct):
        return report, replace(attempt, cause=_cause(verdict), reason=f"gate 3: {verdict.reason}")
    timing = verdict.timing
    reached = outcome_of(
        timing.speedup,
        timing.speedup_ci[0],
        has_gate=config.compiled.performance_gate == "on",
    )
    if reached is None:
        return report, replace(attempt, cause="performance", reason=f"gate 4: {verdict.reason}")
    report = replace(
        report,
        outcome=reached[0],
        cause=reached[1],
        speedup=timing.speedup,
        speedup_ci=timing.speedup_ci,
        baseline=timing.baseline,
        baseline_us=timing.baseline_us,
        time_us=timing.time_us,
        eager_us=timing.eager_us,
        compile_us=timing.compile_us,
    )
    return report, replace(attempt, passed=True, cause="", reason=verdict.reason)


def _cause(verdict: Verdict) -> Cause:
    causes: dict[str, Cause] = {"timed_out": "timeout", "crashed": "crash"}
    return causes.get(verdict.kind, "correctness")
