"""`kopt problems --lint`: what a lint finds of each problem, a row as soon as it is known."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from kopt.cli.exit_codes import DONE, FAILED
from kopt.cli.output import reserved_stdout, write_json
from kopt.config import RunConfig
from kopt.data.atomic import write_bytes
from kopt.data.lint import (
    LINT_TAGS,
    MEANINGS,
    LintRemark,
    LintRow,
    row_to_json,
    table_text,
)
from kopt.data.problems import contract_errors
from kopt.environment import cache_dir
from kopt.problem import Problem

FAILING = ("broken", "not_finite")
"""Tags of problems that nothing can be measured on."""

Look = Callable[[Problem], LintRow]


def lint_problems(
    problems: Sequence[Problem], *, config: RunConfig, as_json: bool, table: str | None = None
) -> int:
    """Lint problems and show what is found; 1 where one of them does not run.

    Interrupted, what was found so far is shown.

    Args:
        problems: to look at, in order.
        config: its `evaluate` and `device` sections say how.
        as_json: print one object, last; rows are then told on standard error.
        table: file that the rows are written to, as the table of the built-in set is; None: none.

    Raises:
        ConfigError: the device asked for is not here.
        StoreError: the table cannot be written.
        KeyboardInterrupt: the user stopped it.
    """
    rows: list[LintRow] = []
    try:
        if as_json:
            with reserved_stdout() as out, _linter(config) as look:
                try:
                    _look_at_all(problems, look, rows, show=sys.stderr)
                finally:
                    write_json(out, lint_json(rows, asked=len(problems)))
        else:
            with _linter(config) as look:
                try:
                    _look_at_all(problems, look, rows, show=sys.stdout)
                finally:
                    sys.stdout.write(closing_text(rows, asked=len(problems)))
    finally:
        if table is not None and len(rows) == len(problems):
            write_bytes(Path(table), table_text(rows).encode("utf-8"))
    return FAILED if any(set(row.tags) & set(FAILING) for row in rows) else DONE


def lint_json(rows: Sequence[LintRow], *, asked: int) -> dict[str, Any]:
    """Return what `kopt problems --lint --json` prints.

    Args:
        rows: found.
        asked: problems that there were to look at; more than rows where it was interrupted.
    """
    return {
        "problems": [row_to_json(row) for row in rows],
        "asked": asked,
        "degenerate": [row.name for row in rows if row.degenerate],
        "tags": {tag: sum(tag in row.tags for row in rows) for tag in LINT_TAGS},
        "meanings": dict(MEANINGS),
    }


def row_text(row: LintRow, *, width: int, seconds: float) -> str:
    """Return a row for a person: name and tags, then a line for each remark and note."""
    tags = " ".join(row.tags) or "clean"
    mark = "  DEGENERATE" if row.degenerate else ""
    lines = [f"{row.name:<{width}}  {row.ladder:<11}  {seconds:6.1f} s  {tags}{mark}"]
    lines += [f"  {remark.tag}: {remark.line}" for remark in row.remarks]
    lines += [f"  note: {note}" for note in row.notes]
    return "\n".join(lines) + "\n"


def closing_text(rows: Sequence[LintRow], *, asked: int) -> str:
    """Return the closing lines: how many of what."""
    counts = Counter(tag for row in rows for tag in row.tags)
    lines = [f"{counts[tag]:4d}  {tag:<17}  {MEANINGS[tag]}" for tag in LINT_TAGS if counts[tag]]
    clean = sum(not row.remarks for row in rows)
    degenerate = sum(bool(row.degenerate) for row in rows)
    stopped = "" if len(rows) == asked else f" (of {asked} asked for)"
    lines.append(
        f"{len(rows)} problem(s) linted{stopped}: {clean} without remarks, {degenerate} degenerate"
    )
    return "\n".join(lines) + "\n"


def _look_at_all(
    problems: Sequence[Problem], look: Look, rows: list[LintRow], *, show: TextIO
) -> None:
    width = max((len(problem.name) for problem in problems), default=0)
    for problem in problems:
        began_s = time.monotonic()
        rows.append(look(problem))
        seconds = time.monotonic() - began_s
        show.write(row_text(rows[-1], width=width, seconds=seconds))
        show.flush()


@contextmanager
def _linter(config: RunConfig) -> Iterator[Look]:
    from kopt.actors.lint.linter import Linter
    from kopt.cli.evaluate import first_device

    linter = Linter(config.evaluate, device=first_device(config), cache_dir=cache_dir())

    def look(problem: Problem) -> LintRow:
        errors = contract_errors(problem.source)
        if not errors:
            return linter.lint(problem)
        return LintRow(
            name=problem.name,
            problem=problem.problem_id,
            ladder=config.evaluate.ladder,
            remarks=(LintRemark(tag="broken", line="; ".join(errors)),),
        )

    try:
        yield look
    finally:
        linter.close()
