"""The close of `mode=compiled`: models stitched and judged, and told of with their sub-kernels."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

from kopt.cli.compiled import models_folder
from kopt.cli.exit_codes import DONE
from kopt.cli.job import Job, write_job_manifest
from kopt.cli.output import write_json
from kopt.cli.stitch import REPORT, stitch_models
from kopt.compiled.record import Apart, from_json
from kopt.compiled.stitching import ModelReport
from kopt.config import RunConfig
from kopt.data.fold import RunState, fold
from kopt.data.rundir import RunDir
from kopt.problem import Problem

LEFT_COLUMNS = 2
"""Columns of words; the others are numbers, but for the last."""


def close_models(
    config: RunConfig, run: RunDir, state: RunState, *, as_text: bool
) -> dict[str, Any]:
    """Stitch the models of a run whose searches are over; return what `--json` adds.

    Args:
        config: of the run.
        run: its folder.
        state: the fold of its journal.
        as_text: print the table on standard output.

    Raises:
        StoreError: a record cannot be read, or a file not be written.
        ConfigError: the device asked for is not here.
    """
    reports = stitch_models(config, run, state)
    if as_text:
        sys.stdout.write(models_text(run, reports))
    return {"models": [asdict(report) for report in reports]}


def close_without_searches(config: RunConfig, run: RunDir, *, out: TextIO | None) -> int:
    """Close a run of whose models nothing could be cut; every baseline is kept.

    Raises:
        StoreError: the run folder cannot be written.
    """
    begin_without_searches(config, run)
    told = close_models(config, run, fold([]), as_text=out is None)
    if out is not None:
        write_json(out, {"run": run.name, "path": str(run.path), "results": [], **told})
    return DONE


def begin_without_searches(config: RunConfig, run: RunDir) -> None:
    """Write the manifest of a run that has nothing to search.

    Raises:
        StoreError: the run folder cannot be written.
    """
    job = Job(config=config, problems=(), run_dir=run, observer=lambda _search, _body: None)
    write_job_manifest(job, secret=0, earlier=None)


def models_text(run: RunDir, reports: Sequence[ModelReport]) -> str:
    """Return the models of a run for a person: what became of each, and of its sub-kernels."""
    lines: list[str] = []
    for report in reports:
        lines += ["", _headline(report)]
        lines += [f"  attempt: {a.reason}" for a in report.attempts if not a.passed]
        record = models_folder(run) / Problem(name=report.model, source="").file_name / "apart.json"
        if record.is_file():
            lines += _subkernels(from_json(record.read_bytes(), where=str(record)), report)
        if report.strategist:
            lines.append(f"  strategist: {report.strategist}")
            lines += [f"    {line}" for line in report.decisions]
        if report.path:
            lines.append(f"stitched: {run.path / report.path}")
    lines.append(f"models: {run.path / REPORT}")
    return "\n".join(lines) + "\n"


def _headline(report: ModelReport) -> str:
    text = f"{report.model}: {report.outcome}"
    if report.speedup is not None and report.speedup_ci is not None:
        low, high = report.speedup_ci
        text += (
            f", {report.speedup:.3f}x [{low:.3f}, {high:.3f}] over {report.baseline} "
            f"({report.time_us:,.1f} us against {report.baseline_us:,.1f} us)"
        )
    elif report.cause:
        text += f" ({report.cause}): {report.reason}"
    return text


def _subkernels(apart: Apart, report: ModelReport) -> list[str]:
    placed = {each.places: each for each in report.placed}
    rows = [("sub-kernel", "operations", "launches", "share", "what became of it")]
    for sub in apart.subkernels:
        got = placed.get(sub.group.places)
        rows.append(
            (
                sub.name,
                ", ".join(sub.operations[:6]) + (", …" if len(sub.operations) > 6 else ""),
                str(len(sub.group.places)),
                f"{sub.share:.1%}",
                f"{got.speedup:.2f}x, in its place"
                if got
                else f"kept: {sub.kept}"
                if sub.kept
                else "kept: nothing faster was found, or the whole did not gain",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    last = len(widths) - 1
    return [
        "  "
        + "  ".join(
            cell
            if column == last
            else cell.ljust(width)
            if column < LEFT_COLUMNS
            else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
