"""`kopt problems`: the problems there are, by set; what their files lack. Loads no torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE, FAILED
from kopt.cli.output import write_json
from kopt.data.problems import contract_errors, open_sources, resolve
from kopt.data.problems.config import KernelBenchConfig, ProblemsConfig
from kopt.problem import Problem


def main(arguments: Sequence[str]) -> int:
    """List problems; 1 where a file breaks the contract.

    Raises:
        ConfigError: a pattern names nothing.
    """
    parser = command_parser(
        "problems",
        description="List problems: name, family, revision, and what breaks their contract.",
        epilog="patterns: builtin/softmax, 'kernelbench/level1/*', path/to/file.py; none: all sets",
    )
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="name, glob or file")
    parser.add_argument("--kernelbench", metavar="DIR", help="a local clone of KernelBench")
    options = parse(parser, arguments)
    if options is None:
        return DONE
    config = ProblemsConfig()
    if options.kernelbench is not None:
        config = ProblemsConfig(kernelbench=KernelBenchConfig(path=options.kernelbench))
    problems, absent = _find(options.patterns, config)
    rows = [_row(problem) for problem in problems]
    if options.json:
        write_json(sys.stdout, {"problems": rows, "missing": absent})
    else:
        sys.stdout.write(_table(rows, absent))
    return FAILED if any(row["errors"] for row in rows) else DONE


def _find(patterns: list[str], config: ProblemsConfig) -> tuple[list[Problem], dict[str, str]]:
    """The problems asked for (all, where none is), and why a set is not here."""
    if patterns:
        return resolve(patterns, config), {}
    problems: list[Problem] = []
    absent: dict[str, str] = {}
    for name, source in open_sources(config).items():
        reason = source.missing()
        if reason is not None:
            absent[name] = reason
        problems += [source.load(inner) for inner in source.names()]
    return problems, absent


def _row(problem: Problem) -> dict[str, Any]:
    return {
        "name": problem.name,
        "problem": problem.problem_id,
        "family": problem.family,
        "revision": problem.revision,
        "licence": problem.licence,
        "errors": contract_errors(problem.source),
    }


def _table(rows: list[dict[str, Any]], absent: dict[str, str]) -> str:
    lines = []
    if rows:
        name_width = max(len(row["name"]) for row in rows)
        family_width = max(len(row["family"]) for row in rows)
        for row in rows:
            revision = row["revision"][:24]
            lines.append(
                f"{row['name']:<{name_width}}  {row['family']:<{family_width}}  {revision}".rstrip()
            )
            lines += [f"  broken: {error}" for error in row["errors"]]
    lines += [f"{name}: not here: {reason}" for name, reason in absent.items()]
    lines.append(f"{len(rows)} problem(s)")
    return "\n".join(lines) + "\n"
