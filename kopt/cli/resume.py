"""`kopt resume`: go on with an interrupted run, from its own folder alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.cli.output import reserved_stdout
from kopt.config import RunConfig, load
from kopt.data.fleet_file import is_fleet
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError
from kopt.memory.config import NO_MEMORY
from kopt.problem import Problem

if TYPE_CHECKING:
    from kopt.cli.compiled import TakenModel

CHANGEABLE = (
    "cluster",
    "limits",
    "max_in_flight",
    "keep_best",
    "search.iterations",
    "programmer.wait_s",
    "tracker",
)
"""What a resumed run may change: how far the trees grow, not what they become."""


def main(arguments: Sequence[str]) -> int:
    """Go on with a run; exit codes are those of `kopt run`.

    Raises:
        ConfigError: the folder is no run, or an override would change what the run is.
        StoreError: the run folder cannot be used, or another driver has it.
    """
    parser = command_parser(
        "resume",
        description="Go on with a run that was interrupted. What is journalled is not done again.",
        epilog=f"keys that may be changed: {', '.join(CHANGEABLE)} (such as limits.wall_s=600)",
    )
    parser.add_argument("run", metavar="RUN", help="a run folder, such as runs/first; a multirun's")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="Hydra overrides")
    options = parse(parser, arguments)
    if options is None:
        return DONE
    if is_fleet(options.run):
        from kopt.cli.fleet_resume import resume_fleet

        return resume_fleet(Path(options.run), options.overrides, as_json=options.json)
    run = RunDir.open(options.run)
    config = resumed_config(run, options.overrides)
    models = [] if run.problems_folder.is_dir() else unsearched_models(run)
    problems = [] if models else kept_problems(run, config)
    if not options.json:
        return _resume(config, problems, models, run=run, out=None)
    with reserved_stdout() as out:
        return _resume(config, problems, models, run=run, out=out)


def resumed_config(run: RunDir, overrides: Sequence[str]) -> RunConfig:
    """Return the run's own configuration with the overrides applied.

    Raises:
        ConfigError: an override cannot be read, or its key is none of CHANGEABLE.
        StoreError: the manifest is missing or damaged.
    """
    plain: dict[str, Any] = run.read_manifest()["config"]
    plain.setdefault("memory", NO_MEMORY.model_dump(mode="json"))
    for text in overrides:
        _apply(plain, text)
    return load(plain)


def kept_problems(run: RunDir, config: RunConfig) -> list[Problem]:
    """Return the problems as they were when the run began, in the order it asked for them.

    Raises:
        StoreError: one of them is damaged.
        ConfigError: there are none.
    """
    found = [run.problem(path.stem) for path in sorted(run.problems_folder.glob("*.json"))]
    if not found:
        raise ConfigError(f"{run.path}: no problems in it; the run never began, start it anew")
    return sorted(found, key=lambda problem: _place(problem.name, config.problem))


def _place(name: str, patterns: Sequence[str]) -> tuple[int, list[tuple[int, str]]]:
    """Sort key: the pattern that asked for it, then its name with numbers as numbers."""
    asked = (number for number, pattern in enumerate(patterns) if _asks_for(pattern, name))
    parts = re.split(r"(\d+)", name)
    return next(asked, len(patterns)), [
        (int(part), "") if part.isdigit() else (-1, part) for part in parts
    ]


def _asks_for(pattern: str, name: str) -> bool:
    if pattern == name:
        return True
    in_names, folder = _read(pattern)
    if folder is not None and name.startswith(folder):
        return True
    return in_names is not None and in_names.fullmatch(name) is not None


@cache
def _read(pattern: str) -> tuple[re.Pattern[str] | None, str | None]:
    """Return what matches the names that a pattern asks for, and how those of its folder begin.

    Each pattern is held against each name: thousands of both, where a set is given as a list.
    """
    if pattern.endswith(".py"):
        return re.compile(translate(Path(pattern).name.removesuffix(".py"))), None
    is_glob = any(sign in pattern for sign in "*?[")
    return re.compile(translate(pattern)) if is_glob else None, f"{Path(pattern).resolve().name}/"


def _apply(plain: dict[str, Any], text: str) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from kopt.cli.compose import hydra_errors

    with hydra_errors():
        override = OverridesParser.create().parse_override(text)
    path = override.key_or_group.split(".")
    if (
        not {path[0], ".".join(path)} & set(CHANGEABLE)
        or override.is_delete()
        or override.is_sweep_override()
    ):
        raise ConfigError(
            f"override {text!r}: a resumed run may change {', '.join(CHANGEABLE)} only; "
            "for anything else start a new run"
        )
    inner = plain
    for part in path[:-1]:
        inner = inner.setdefault(part, {})
    inner[path[-1]] = override.value()


def unsearched_models(run: RunDir) -> list[TakenModel]:
    """Return the compiled models of a run that stopped before their searches; else none.

    Raises:
        StoreError: a record cannot be read.
    """
    if not (run.path / "compiled").is_dir():
        return []
    from kopt.cli.compiled import begun_models

    models = begun_models(run)
    return models if any(model.apart.problems for model in models) else []


def _resume(
    config: RunConfig,
    problems: Sequence[Problem],
    models: Sequence[TakenModel],
    *,
    run: RunDir,
    out: TextIO | None,
) -> int:
    from kopt.cli.session import run_session

    if models:
        from kopt.cli.compiled_run import run_compiled

        return run_compiled(config, models, run=run, out=out)
    return run_session(config, problems, run=run, out=out)
