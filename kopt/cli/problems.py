"""`kopt problems`: the problems there are, by set; what their files lack. Loads no torch."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE, FAILED
from kopt.cli.output import write_json
from kopt.data.problems import (
    FolderSource,
    Selection,
    contract_errors,
    input_cases,
    open_sources,
    select,
)
from kopt.data.problems.config import KernelBenchConfig, ProblemsConfig
from kopt.errors import ConfigError
from kopt.problem import Problem
from kopt.prompts.language import language_of

EPILOG = """\
patterns: builtin/softmax, 'kernelbench/level1/*', path/to/file.py, path/to/kernel.cu,
path/to/folder; none: all sets
KernelBench is read from a git clone (KOPT_KERNELBENCH or --kernelbench) or its data set:
  kopt problems --kernelbench ~/KernelBench problems.kernelbench.revision=v0.1
  kopt problems problems.kernelbench.dataset=ScalingIntelligence/KernelBench
  kopt problems problems.folders.mine=path/to/folder 'mine/*'
a lint runs each reference and says what a trivial answer, dead work or chance would get away with:
  kopt problems --lint builtin
  kopt problems --lint 'kernelbench/level1/*' evaluate=kernelbench device=cuda"""
OVERRIDE = re.compile(r"\+{0,2}(problems|evaluate|device)(\.[\w.-]+)?=.*", re.S)
"""What is an override of these sections, and no pattern."""
SHOWN_REVISION = 24
"""Characters of a revision in the table: a release's name and a commit's first digits."""


def main(arguments: Sequence[str]) -> int:
    """List problems; 1 where a file breaks the contract.

    Raises:
        ConfigError: a pattern names nothing, or a set that was named here cannot be read.
    """
    parser = command_parser(
        "problems",
        description="List problems: name, family, revision, and what breaks their contract.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "patterns",
        nargs="*",
        metavar="PATTERN",
        help="name, set, glob, file or folder; or an override, problems.KEY=VALUE",
    )
    parser.add_argument("--kernelbench", metavar="DIR", help="a git clone of KernelBench")
    parser.add_argument("--lint", action="store_true", help="look for degenerate tasks")
    parser.add_argument("--table", metavar="FILE", help="with --lint: write what is found there")
    options = parse(parser, arguments)
    if options is None:
        return DONE
    overrides = [text for text in options.patterns if OVERRIDE.fullmatch(text)]
    patterns = [text for text in options.patterns if text not in overrides]
    if not options.lint:
        _refuse_of_lint(overrides, options.table)
    config = _config(overrides, options.kernelbench)
    named = options.kernelbench is not None or any("kernelbench" in text for text in overrides)
    required = {*config.folders, "kernelbench"} if named else {*config.folders}
    selection, absent = _find(_of_sets(patterns, config), config, required=required)
    if options.lint:
        from kopt.cli.compose import compose_config
        from kopt.cli.lint import lint_problems

        run_config = compose_config(overrides)
        return lint_problems(
            selection.problems, config=run_config, as_json=options.json, table=options.table
        )
    rows = [_row(problem) for problem in selection.problems]
    if options.json:
        record = {"problems": rows, "missing": absent, "skipped": selection.skipped}
        write_json(sys.stdout, record)
    else:
        sys.stdout.write(_table(rows, absent, selection.skipped))
    return FAILED if any(row["errors"] for row in rows) else DONE


def _refuse_of_lint(overrides: list[str], table: str | None) -> None:
    """Refuse what says how a lint is made where none is asked for.

    Raises:
        ConfigError: there is such an argument.
    """
    idle = [text for text in overrides if not text.lstrip("+").startswith("problems")]
    if table is not None:
        idle.append("--table")
    if idle:
        raise ConfigError(f"{idle[0]} says how problems are linted; add --lint")


def _of_sets(patterns: list[str], config: ProblemsConfig) -> list[str]:
    """Patterns with the bare name of a set as all of it: `builtin` as `builtin/*`."""
    return [f"{each}/*" if each in open_sources(config) else each for each in patterns]


def _config(overrides: list[str], clone: str | None) -> ProblemsConfig:
    """The section as it is by default, or as Hydra composes it where there are overrides."""
    config = ProblemsConfig()
    if overrides:
        from kopt.cli.compose import compose_config  # Hydra takes longer than the whole listing

        config = compose_config(overrides).problems
    if clone is None:
        return config
    kernelbench = config.kernelbench
    if kernelbench.dataset is not None:
        raise ConfigError("--kernelbench names a clone, and problems.kernelbench.dataset is set")
    kernelbench = KernelBenchConfig(path=clone, revision=kernelbench.revision)
    return config.model_copy(update={"kernelbench": kernelbench})


def _find(
    patterns: list[str], config: ProblemsConfig, *, required: set[str]
) -> tuple[Selection, dict[str, str]]:
    """The problems asked for (all, where none is), and why a set is not here.

    Raises:
        ConfigError: a pattern names nothing; or all are asked for, and a required set is not here.
    """
    if patterns:
        return select(patterns, config), {}
    problems: list[Problem] = []
    skipped: list[str] = []
    absent: dict[str, str] = {}
    for name, source in open_sources(config).items():
        reason = source.missing()
        if reason is not None and name in required:
            raise ConfigError(f"set {name}: {reason}")
        if reason is not None:
            absent[name] = reason
        problems += [source.load(inner) for inner in source.names()]
        if isinstance(source, FolderSource):
            skipped += source.skipped
    return Selection(problems, skipped), absent


def _row(problem: Problem) -> dict[str, Any]:
    return {
        "name": problem.name,
        "problem": problem.problem_id,
        "family": problem.family,
        "revision": problem.revision,
        "licence": problem.licence,
        "degenerate": problem.degenerate,
        "cases": input_cases(problem.source),
        "given": language_of(problem.given) if problem.given else "",
        "errors": contract_errors(problem.source),
    }


def _table(rows: list[dict[str, Any]], absent: dict[str, str], skipped: list[str]) -> str:
    lines = []
    if rows:
        name_width = max(len(row["name"]) for row in rows)
        family_width = max(len(row["family"]) for row in rows)
        for row in rows:
            cases = "" if row["cases"] == 1 else f"  {row['cases'] or 'several'} input cases"
            revision = row["revision"][:SHOWN_REVISION]
            given = f"  with a {row['given']} kernel" if row["given"] else ""
            line = (
                f"{row['name']:<{name_width}}  {row['family']:<{family_width}}  {revision}"
                f"{cases}{given}"
            )
            lines.append(line.rstrip())
            lines += [f"  broken: {error}" for error in row["errors"]]
    lines += [f"skipped: {line}" for line in skipped]
    lines += [f"{name}: not here: {reason}" for name, reason in absent.items()]
    lines.append(f"{len(rows)} problem(s)")
    return "\n".join(lines) + "\n"
