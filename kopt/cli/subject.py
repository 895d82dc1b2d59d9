"""What a command on one candidate file works on: a problem, the candidate, the configuration."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

from kopt.candidate import LANGUAGES, Candidate
from kopt.cli.arguments import Parser
from kopt.cli.compose import compose_config
from kopt.config import RunConfig
from kopt.data.problems import check_contracts, resolve
from kopt.data.problems.file_source import read_source
from kopt.errors import ConfigError
from kopt.foreign_language import known_language
from kopt.problem import Problem
from kopt.prompts.language import language_of


class Subject(NamedTuple):
    """What a command was told to work on."""

    problem: Problem
    candidate: Candidate
    config: RunConfig


def add_subject(parser: Parser) -> None:
    """Add the arguments that `read_subject` takes."""
    parser.add_argument("problem", metavar="PROBLEM", help="a name (set/id) or a file")
    parser.add_argument("candidate", metavar="CANDIDATE", help="a file that defines ModelNew")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="Hydra overrides")
    parser.add_argument(
        "--language",
        metavar="NAME",
        help=f"of its kernels: {', '.join(LANGUAGES)}, or one of evaluate.languages; told from the "
        "source by default",
    )


def read_subject(options: Namespace, *, verb: str) -> Subject:
    """Return the problem of a name, and the candidate of a file.

    Args:
        options: of `add_subject`.
        verb: the command, for errors.

    Raises:
        ConfigError: an override, a file, a problem or a language cannot be used, or the name is of
            several problems.
    """
    config = compose_config(options.overrides)  # knows the languages that it names from here on
    problems = resolve([options.problem], config.problems)
    if len(problems) > 1:
        raise ConfigError(f"{options.problem!r} names {len(problems)} problems; {verb} takes one")
    check_contracts(problems)
    named = None if options.language is None else known_language(options.language)
    source = read_source(Path(options.candidate))
    candidate = Candidate(source=source, language=named or language_of(source), programmer="file")
    return Subject(problems[0], candidate, config)
