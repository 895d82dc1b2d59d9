"""A run made ready: its problems, its seeds, and all that could be wrong found before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kopt.config import RunConfig
from kopt.data.problems import check_contracts, resolve
from kopt.errors import ConfigError
from kopt.problem import Problem

if TYPE_CHECKING:
    from kopt.data.seeds import Seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run that can start."""

    config: RunConfig
    problems: Sequence[Problem]
    seeds: Seeds
    number: int = 0
    """Of the job in its multirun."""
    overrides: tuple[str, ...] = ()
    """What tells it from the other jobs of a multirun."""
    folder: Path | None = None
    """Where a job of a multirun lies; None: a run makes its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A job of a multirun that cannot run, and why."""

    number: int
    overrides: tuple[str, ...]
    lines: tuple[str, ...]


def why_refused(refused: Sequence[Refused]) -> list[tuple[str, str]]:
    """Return for each reason once the jobs that it refuses (`job 3`, `jobs 0-8, 12`), and itself.

    Args:
        refused: in order of their numbers.
    """
    numbers: dict[str, list[int]] = {}
    for job in refused:
        for line in dict.fromkeys(job.lines):
            numbers.setdefault(line, []).append(job.number)
    return [(_jobs(each), line) for line, each in numbers.items()]


def _jobs(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"job {numbers[0]}"
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return "jobs " + ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans)


Known = dict[tuple[tuple[str, ...], str], tuple[Problem, ...]]
"""Problems that were resolved, by patterns and the section `problems`."""


def prepare(config: RunConfig, *, known: Known | None = None) -> Prepared:
    """Find what a run needs; nothing is started or made.

    Args:
        config: of the run.
        known: problems of other jobs of the same multirun; added to.

    Raises:
        ConfigError: a problem, a seed, a key or a recording cannot be found, a problem breaks its
            contract, this machine lacks what the arm needs, or kopt does.
        StoreError: the run that a seed is the best of is damaged.
    """
    from kopt.cli.ahead import look_ahead
    from kopt.cli.hardware import check_hardware

    if config.lacks:
        raise ConfigError("\n".join(config.lacks))
    check_hardware(config)
    problems = _problems(config, {} if known is None else known)
    return Prepared(config=config, problems=problems, seeds=look_ahead(config, problems))


def _problems(config: RunConfig, known: Known) -> tuple[Problem, ...]:
    key = (config.problem, config.problems.model_dump_json())
    if key not in known:
        problems = resolve(config.problem, config.problems)
        check_contracts(problems)
        known[key] = tuple(problems)
    return known[key]
