"""What a command on one candidate file works on: a problem and the candidate."""

from __future__ import annotations

from pathlib import Path

from kopt.candidate import Candidate, Language
from kopt.config import RunConfig
from kopt.data.problems import check_contracts, resolve
from kopt.data.problems.file_source import read_source
from kopt.errors import ConfigError
from kopt.problem import Problem
from kopt.prompts.language import language_of


def read_subject(
    problem: str, candidate: str, *, config: RunConfig, language: Language | None, verb: str
) -> tuple[Problem, Candidate]:
    """Return the problem of a name, and the candidate of a file.

    Args:
        problem: a name (set/id) or a file.
        candidate: a file that defines ModelNew.
        config: for where problems come from.
        language: of its kernels; None tells it from the source.
        verb: the command, for errors.

    Raises:
        ConfigError: a file or a problem cannot be used, or the name is of several problems.
    """
    problems = resolve([problem], config.problems)
    if len(problems) > 1:
        raise ConfigError(f"{problem!r} names {len(problems)} problems; {verb} takes one")
    check_contracts(problems)
    source = read_source(Path(candidate))
    return problems[0], Candidate(
        source=source, language=language or language_of(source), programmer="file"
    )
